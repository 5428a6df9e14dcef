#include "tools/gpu_check/session.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dovetail::gpu_check {

namespace k = kernels::cuda;

// ---------------------------------------------------------------- Lab

float* Lab::noise(int64_t n, float scale) {
  float* p = floats(n);
  fill(stream(), p, n, seed_ += 7, scale);
  return p;
}
Matrix Lab::matrix(MatrixNumbers numbers, int64_t n_rows, int64_t k_len) {
  void* p = bytes(matrix_bytes(numbers, n_rows, k_len));
  fill_matrix(stream(), p, numbers, n_rows, k_len, seed_ += 7);
  return {p, numbers, n_rows, k_len};
}
void Lab::add(const Found* g_found, int64_t n) {
  Found found{};
  machine_.copy_out(&found, g_found, sizeof found);
  const auto greater = [](float& most, uint32_t bits) {
    most = std::max(most, std::bit_cast<float>(bits));
  };
  greater(outcome_.greatest_error, found.greatest_error);
  greater(outcome_.greatest_share, found.greatest_share);
  if (found.n_beyond > 0 && outcome_.n_beyond == 0) outcome_.first_beyond = n - found.first_beyond;
  outcome_.n_beyond += found.n_beyond;
  outcome_.n_compared += n;
}
void Lab::hold(const float* g_got, const Expected& expected, int64_t n) {
  auto* g_found = zeros<Found>(1);
  compare(stream(), g_found, g_got, expected, n);
  add(g_found, n);
}
void Lab::hold_bytes(const void* g_got, const void* g_expected, int64_t n) {
  auto* g_found = zeros<Found>(1);
  compare_bytes(stream(), g_found, static_cast<const uint8_t*>(g_got),
                static_cast<const uint8_t*>(g_expected), n);
  add(g_found, n);
}
void Lab::hold_same(const float* g_got, const float* g_expected, int64_t n) {
  const Expected same = expected(n);
  expect_same(stream(), same, g_expected, n);
  hold(g_got, same, n);
}

// ---------------------------------------------------------------- Session

Session::Session(Machine& machine, Options options)
    : machine_(machine), options_(std::move(options)), begin_(std::chrono::steady_clock::now()) {}

double Session::seconds_left() const {
  return options_.seconds -
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}
bool Session::is_wanted(const std::string& name, const std::string& shape) {
  if ((name + " " + shape).find(options_.only) == std::string::npos) return false;
  if (seconds_left() > 0 && !is_lost_) return true;
  skipped.push_back(name + " " + shape + (is_lost_ ? ": the device is lost" : ": no time left"));
  return false;
}
std::string Session::attempt(Lab& lab, const std::function<void(Lab&)>& run) {
  try {
    run(lab);
    machine_.wait();
    return {};
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::exception& error) {
    try {
      machine_.wait();
    } catch (const MachineError&) {  // it stays: the device's state is gone, and its memory
      lab.forget();
      is_lost_ = !machine_.reset();
    }
    return error.what();
  }
}
void Session::check(const std::string& name, const std::string& shape,
                    const std::function<void(Lab&)>& run) {
  if (!is_wanted(name, shape)) return;
  Lab lab(machine_);
  CheckRow row{name, shape, {}, {}};
  try {
    row.failure = attempt(lab, run);
  } catch (const OutOfMemory& error) {
    skipped.push_back(name + " " + shape + ": " + error.what());
    return;
  }
  row.outcome = lab.outcome();
  if (row.failure.empty() && row.outcome.n_beyond > 0)
    row.failure = std::to_string(row.outcome.n_beyond) + " of " +
                  std::to_string(row.outcome.n_compared) + " beyond their bounds, first " +
                  std::to_string(row.outcome.first_beyond);
  if (row.failure.empty() && row.outcome.n_compared == 0) row.failure = "nothing was compared";
  checks.push_back(std::move(row));
}
void Session::measure(const std::string& name, const std::string& shape,
                      const std::function<void(Lab&)>& run) {
  if (!is_wanted(name, shape)) return;
  Lab lab(machine_);
  try {
    const std::string failure = attempt(lab, run);
    if (!failure.empty()) failed.push_back(name + " " + shape + ": " + failure);
  } catch (const OutOfMemory& error) {
    skipped.push_back(name + " " + shape + ": " + error.what());
  }
}
void Session::time(
    const std::string& name, const std::string& shape, double bytes, double flops,
    const std::function<std::function<void(int64_t)>(Lab&, int64_t n_copies)>& prepare) {
  measure(name, shape, [&](Lab& lab) {
    // As many copies as do not fit in the second-level cache, three times over.
    const auto l2 = static_cast<double>(machine_.info().l2_bytes);
    const int64_t n_copies =
        is_tiny() ? 1 : std::clamp<int64_t>(static_cast<int64_t>(3 * l2 / bytes) + 1, 1, 64);
    const auto launch = prepare(lab, n_copies);
    launch(0);
    machine_.wait();
    const double once = machine_.microseconds_of([&] { launch(1 % n_copies); });
    const int64_t n_launches =
        is_tiny() ? 1
                  : std::clamp<int64_t>(static_cast<int64_t>(3000 / std::max(once, 1.0)), 4, 64);
    const double us = median_us(machine_, n_launches, [&](int64_t i) { launch(i % n_copies); });
    times.push_back({name, shape, us, bytes, flops});
  });
}

double median_us(Machine& machine, int64_t n_launches, const std::function<void(int64_t)>& launch) {
  constexpr int kReplays = 7;
  const Recording recording = machine.record([&] {
    for (int64_t i = 0; i < n_launches; ++i) launch(i);
  });
  machine.replay(recording);
  machine.wait();
  std::vector<double> us;
  for (int i = 0; i < kReplays; ++i)
    us.push_back(machine.microseconds_of([&] { machine.replay(recording); }));
  std::sort(us.begin(), us.end());
  return us[kReplays / 2] / static_cast<double>(n_launches);
}

// ---------------------------------------------------------------- words and caches

std::string name_of(MatrixNumbers numbers) {
  switch (numbers) {
    case MatrixNumbers::kFloat32:
      return "float32";
    case MatrixNumbers::kBf16:
      return "bf16";
    case MatrixNumbers::kF16:
      return "f16";
    case MatrixNumbers::kInt8:
      return "int8";
    case MatrixNumbers::kInt4:
      return "int4";
    case MatrixNumbers::kInt4q:
      return "int4q";
    case MatrixNumbers::kInt6:
      return "int6";
  }
  return "?";
}
std::string name_of(CacheNumbers cache) {
  return cache == CacheNumbers::kFloat32 ? "float32"
         : cache == CacheNumbers::kBf16  ? "bf16"
                                         : "int8";
}

CachedStep cached_step(Lab& lab, const std::vector<Part>& parts, CacheNumbers cache,
                       int64_t n_kv_heads, int64_t n_group_heads, int64_t head_dim,
                       int64_t page_len) {
  std::vector<int32_t> positions;
  std::vector<uint32_t> page_begin, pages;
  std::vector<AttendTile> tiles;
  CachedStep out;
  const int64_t tile_len = k::attend_tile_len(n_group_heads);
  for (const Part& part : parts) {
    const auto begin = static_cast<uint32_t>(pages.size());
    const int64_t len = part.n_cached + part.n_tokens;
    for (int64_t i = 0; i < len; i += page_len)
      pages.push_back(static_cast<uint32_t>(pages.size()));
    for (int64_t t = 0; t < part.n_tokens; t += tile_len)
      tiles.push_back({static_cast<int32_t>(positions.size()) + static_cast<int32_t>(t),
                       static_cast<int32_t>(std::min(tile_len, part.n_tokens - t))});
    for (int64_t t = 0; t < part.n_tokens; ++t) {
      positions.push_back(static_cast<int32_t>(part.n_cached + t));
      page_begin.push_back(begin);
    }
    out.longest = std::max(out.longest, len);
  }
  std::reverse(pages.begin(), pages.end());
  const bool is_int8 = cache == CacheNumbers::kInt8;
  const int64_t row_len = is_int8 ? (head_dim + 3) / 4 * 4 + 4 : head_dim;
  out.layout = {n_kv_heads, head_dim, page_len, n_kv_heads * page_len * row_len};
  out.cache_bytes = static_cast<int64_t>(pages.size()) * out.layout.page_stride *
                    (is_int8                        ? 1
                     : cache == CacheNumbers::kBf16 ? 2
                                                    : 4);
  out.rows = {lab.copied(positions), lab.copied(page_begin), lab.copied(pages),
              static_cast<int64_t>(positions.size())};
  out.g_tiles = lab.copied(tiles);
  out.n_tiles = static_cast<int64_t>(tiles.size());
  return out;
}
void* noise_cache(Lab& lab, const CachedStep& step, CacheNumbers cache, uint32_t seed) {
  void* g_base = lab.bytes(step.cache_bytes);
  const int64_t row_bytes = (step.layout.head_dim + 3) / 4 * 4 + 4;
  if (cache == CacheNumbers::kInt8)
    fill_int8_rows(lab.stream(), g_base, step.cache_bytes / row_bytes, row_bytes, seed);
  else if (cache == CacheNumbers::kBf16)
    fill_matrix(lab.stream(), g_base, MatrixNumbers::kBf16, 1, step.cache_bytes / 2, seed);
  else
    fill(lab.stream(), static_cast<float*>(g_base), step.cache_bytes / 4, seed, 1.0F);
  return g_base;
}

void cache_write_of(Stream stream, void* g_base, CacheNumbers cache, const KvLayout& layout,
                    const StepRows& step, const float* g_rows) {
  if (cache == CacheNumbers::kFloat32)
    return k::cache_write(stream, static_cast<float*>(g_base), layout, step, g_rows);
  if (cache == CacheNumbers::kBf16)
    return k::cache_write(stream, static_cast<uint16_t*>(g_base), layout, step, g_rows);
  k::cache_write(stream, static_cast<int8_t*>(g_base), layout, step, g_rows);
}
void attend_of(Stream stream, const k::AttendArgs& args, CacheNumbers cache, const KvLayout& layout,
               const StepRows& step, const void* g_k, const void* g_v) {
  const auto attend = [&]<class Element>(const Element*) {
    k::attend(stream, args, layout, step, static_cast<const Element*>(g_k),
              static_cast<const Element*>(g_v));
  };
  if (cache == CacheNumbers::kFloat32) return attend(static_cast<const float*>(nullptr));
  if (cache == CacheNumbers::kBf16) return attend(static_cast<const uint16_t*>(nullptr));
  attend(static_cast<const int8_t*>(nullptr));
}

}  // namespace dovetail::gpu_check
