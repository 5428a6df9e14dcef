// One run of gpu_check: what is left of its time, what to leave out, what was found.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tools/gpu_check/machine.hpp"
#include "tools/gpu_check/reference.hpp"

namespace dovetail::gpu_check {

struct Options {
  bool checks_only = false, tiny = false;
  std::string only;  // a part of names; empty: all
  double seconds = 110;
  std::string json_path;
};

/// Device memory of one check or measurement, which ends with it.
class Lab {
 public:
  explicit Lab(Machine& machine) : machine_(machine) {}
  ~Lab() {
    for (void* p : rooms_) machine_.release(p);
  }
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  Machine& machine() { return machine_; }
  Stream stream() const { return machine_.stream(); }
  void* bytes(int64_t n) { return rooms_.emplace_back(machine_.allocate(n)); }
  template <class T>
  T* room(int64_t n) {
    return static_cast<T*>(bytes(n * static_cast<int64_t>(sizeof(T))));
  }
  float* floats(int64_t n) { return room<float>(n); }
  Expected expected(int64_t n) { return {floats(n), floats(n)}; }
  /// Of a seed of its own.
  float* noise(int64_t n, float scale = 1.0F);
  Matrix matrix(MatrixNumbers numbers, int64_t n_rows, int64_t k_len);
  template <class T>
  T* copied(const std::vector<T>& values) {
    T* p = room<T>(static_cast<int64_t>(values.size()));
    machine_.copy_in(p, values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
    return p;
  }
  template <class T>
  T* zeros(int64_t n) {
    T* p = room<T>(n);
    machine_.zero(p, n * static_cast<int64_t>(sizeof(T)));
    return p;
  }
  /// Forgets memory that is gone with the device's state.
  void forget() { rooms_.clear(); }

  /// What compare() finds, of all of them together.
  void hold(const float* g_got, const Expected& expected, int64_t n);
  void hold_bytes(const void* g_got, const void* g_expected, int64_t n);
  /// The very same floats.
  void hold_same(const float* g_got, const float* g_expected, int64_t n);
  struct Outcome {
    float greatest_error = 0, greatest_share = 0;
    int64_t n_compared = 0, n_beyond = 0, first_beyond = -1;
  };
  const Outcome& outcome() const { return outcome_; }

 private:
  void add(const Found* g_found, int64_t n);

  Machine& machine_;
  std::vector<void*> rooms_;
  uint32_t seed_ = 20250;
  Outcome outcome_;
};

struct CheckRow {
  std::string name, shape, failure;  // failure: empty where it holds
  Lab::Outcome outcome;
};
struct TimeRow {
  std::string name, shape;
  double us = 0, bytes = 0, flops = 0;  // of one launch
};
struct StepRow {
  std::string name;
  int64_t n_tokens = 0, context = 0, n_launches = 0;
  double launches_us = 0, graph_us = 0, bytes = 0;
  std::string target;
};
struct Ceilings {
  double copy_gb_s = 0, read_gb_s = 0, matrix_tflop_s = 0;
};

class Session {
 public:
  Session(Machine& machine, Options options);

  Machine& machine() { return machine_; }
  const Options& options() const { return options_; }
  bool is_tiny() const { return options_.tiny; }
  double seconds_left() const;

  void check(const std::string& name, const std::string& shape,
             const std::function<void(Lab&)>& run);
  /// prepare: gives what launches copy i of n_copies, each over memory of its own, so that no cache has it.
  void time(const std::string& name, const std::string& shape, double bytes, double flops,
            const std::function<std::function<void(int64_t)>(Lab&, int64_t n_copies)>& prepare);
  /// Runs a measurement of another kind, which adds its own rows; its failure is noted.
  void measure(const std::string& name, const std::string& shape,
               const std::function<void(Lab&)>& run);

  std::vector<CheckRow> checks;
  std::vector<TimeRow> times;
  std::vector<StepRow> steps;
  Ceilings ceilings;
  std::vector<std::string> skipped,
      failed;  // what there was no time or memory for; what went wrong, checks apart

 private:
  bool is_wanted(const std::string& name, const std::string& shape);
  /// The reason where it fails.
  std::string attempt(Lab& lab, const std::function<void(Lab&)>& run);

  Machine& machine_;
  Options options_;
  std::chrono::steady_clock::time_point begin_;
  bool is_lost_ = false;  // the device, for good
};

/// The median of repeated replays of some launches, in microseconds a launch.
double median_us(Machine& machine, int64_t n_launches, const std::function<void(int64_t)>& launch);

// The parts of a run, each in a file of its own.
void measure_ceilings(Session& session);
void check_kernels(Session& session);
void check_decode_kernels(Session& session);
void time_kernels(Session& session);
void time_steps(Session& session);

void print_table(const Session& session, const MachineInfo& info);
bool write_json(const Session& session, const MachineInfo& info, const std::string& path);

/// Words for tables.
std::string name_of(MatrixNumbers numbers);
std::string name_of(CacheNumbers cache);
constexpr MatrixNumbers kAllNumbers[] = {
    MatrixNumbers::kFloat32, MatrixNumbers::kBf16, MatrixNumbers::kF16,  MatrixNumbers::kInt8,
    MatrixNumbers::kInt6,    MatrixNumbers::kInt4, MatrixNumbers::kInt4q};
constexpr CacheNumbers kAllCaches[] = {CacheNumbers::kFloat32, CacheNumbers::kBf16,
                                       CacheNumbers::kInt8};

/// A step's tokens in sequences of their own, pages of each in reverse order.
struct Part {
  int64_t n_cached, n_tokens;
};
struct CachedStep {
  KvLayout layout;
  StepRows rows;
  int64_t cache_bytes = 0, longest = 0;  // of keys; the most tokens of a sequence
  const AttendTile* g_tiles = nullptr;
  int64_t n_tiles = 0;
};
CachedStep cached_step(Lab& lab, const std::vector<Part>& parts, CacheNumbers cache,
                       int64_t n_kv_heads, int64_t n_group_heads, int64_t head_dim,
                       int64_t page_len);
/// A cache of noise of such a step's size.
void* noise_cache(Lab& lab, const CachedStep& step, CacheNumbers cache, uint32_t seed);

/// The overloads of a cache's numbers by name.
void cache_write_of(Stream stream, void* g_base, CacheNumbers cache, const KvLayout& layout,
                    const StepRows& step, const float* g_rows);
void attend_of(Stream stream, const kernels::cuda::AttendArgs& args, CacheNumbers cache,
               const KvLayout& layout, const StepRows& step, const void* g_k, const void* g_v);

}  // namespace dovetail::gpu_check
