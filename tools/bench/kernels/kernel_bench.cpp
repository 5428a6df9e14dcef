// Speed of the CPU kernels on the shapes of Qwen3-0.6B, beside the read bandwidth of the same run.
//
//   kernel_bench [--isa portable|avx2|avx512|neon] [--threads N] [--repeats N] [SECTION ...]
// Sections: decode, decode_huge (weights in 2 MiB pages), decode_f32, decode_quantized (int8, int6,
// int4, int4q and those of GGUF in 2 MiB pages), prefill, prefill_quantized, quantize, attend, pointwise.
//
// A decode line multiplies every weight matrix of the model once (1.19 GB in bf16, far past any
// cache) by one token, between two readings of the same memory: the share says how much of the
// machine's bandwidth the kernel reached. Lanes meet at the end of a pass only: this measures
// kernels, not barriers. Best of the repeats, which on a busy machine is the fairest to both sides.
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <kernels/cached_rows.hpp>
#include <kernels/cpu.hpp>

namespace {

using dovetail::kernels::AttendTask;
using dovetail::kernels::CpuKernels;
using dovetail::kernels::gguf_packed_bytes;
using dovetail::kernels::GgufPacked;
using dovetail::kernels::kPackedRows;
using dovetail::kernels::KvLayout;
using dovetail::kernels::LinearQuantizedFn;
using dovetail::kernels::packed_bytes;
using dovetail::kernels::quantized_row_bytes;
using dovetail::kernels::QuantizeRowsFn;
using dovetail::kernels::WeightFormat;

/// Threads that run one job together: lane 0 is the caller, the others spin for the next job.
class Team {
 public:
  explicit Team(int n_lanes) : n_lanes_(n_lanes) {
    for (int lane = 1; lane < n_lanes; ++lane) threads_.emplace_back([this, lane] { serve(lane); });
    while (n_up_.load() != n_lanes - 1) std::this_thread::yield();
    pin_to_cpu(0);
  }
  ~Team() {
    stop_ = true;
    job_id_.fetch_add(1);
    for (std::thread& thread : threads_) thread.join();
  }
  void run(const std::function<void(int lane, int n_lanes)>& job) {
    job_ = &job;
    n_done_ = 0;
    job_id_.fetch_add(1);
    job(0, n_lanes_);
    while (n_done_.load() != n_lanes_ - 1) {
    }
  }

 private:
  /// One lane to a processor, as an inference thread pool would have it. Failure only adds noise.
  static void pin_to_cpu(int cpu) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    (void)sched_setaffinity(0, sizeof only, &only);
  }

  void serve(int lane) {
    pin_to_cpu(lane);
    n_up_.fetch_add(1);
    for (int seen = 0;;) {
      while (job_id_.load() == seen) {
      }
      ++seen;
      if (stop_) return;
      (*job_)(lane, n_lanes_);
      n_done_.fetch_add(1);
    }
  }

  int n_lanes_;
  const std::function<void(int, int)>* job_ = nullptr;
  std::atomic<int> job_id_{0};
  std::atomic<int> n_up_{0};
  std::atomic<int> n_done_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// Memory full of one small number, in 2 MiB pages where asked (and where the system gives them).
class Memory {
 public:
  Memory(size_t n_bytes, bool huge) : n_bytes_(n_bytes) {
    data_ = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) {
      std::fprintf(stderr, "kernel_bench: cannot map %zu bytes\n", n_bytes);
      std::exit(1);
    }
    madvise(data_, n_bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    std::memset(data_, 0x3C, n_bytes);
  }
  ~Memory() { munmap(data_, n_bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  size_t n_bytes_;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double best(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

double median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

std::vector<float> noise(size_t n) {
  std::vector<float> values(n);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31F;
  }
  return values;
}

struct Matrix {
  int64_t n_rows;
  int64_t row_len;
};

std::vector<Matrix> model_matrices() {
  std::vector<Matrix> all;
  for (int layer = 0; layer < 28; ++layer) {
    const Matrix layer_matrices[] = {{4096, 1024}, {1024, 2048}, {6144, 1024}, {1024, 3072}};
    all.insert(all.end(), std::begin(layer_matrices), std::end(layer_matrices));
  }
  all.push_back({151936, 1024});
  return all;
}

int64_t share_begin(int64_t n, int lane, int n_lanes) {
  return n * lane / n_lanes;
}

struct Bench {
  const CpuKernels& kernels;
  Team& team;
  int n_threads;
  int repeats;
};

/// Reads the memory once in each way that the row has, and gives the better time.
double read_seconds(const Bench& bench, const void* data, int64_t n_bytes) {
  static std::atomic<uint64_t> sink;
  std::vector<double> seconds;
  for (auto* read : {bench.kernels.read_stream, bench.kernels.read_stream_ahead}) {
    const auto pass = [&](int lane, int n_lanes) {
      const int64_t begin = share_begin(n_bytes / 64, lane, n_lanes) * 64;
      const int64_t end = share_begin(n_bytes / 64, lane + 1, n_lanes) * 64;
      sink += read(static_cast<const char*>(data) + begin, end - begin);
    };
    seconds.push_back(seconds_of([&] { bench.team.run(pass); }));
  }
  return best(seconds);
}

/// Every matrix of the model by n_tokens rows; lanes own stripes of output rows.
template <class Weight>
double model_seconds(const Bench& bench, const std::vector<Matrix>& matrices, const Weight* weights,
                     const float* x, float* y, int64_t n_tokens) {
  const auto pass = [&](int lane, int n_lanes) {
    const Weight* w = weights;
    for (const Matrix& m : matrices) {
      const int64_t begin = share_begin(m.n_rows / 8, lane, n_lanes) * 8;
      const int64_t end = share_begin(m.n_rows / 8, lane + 1, n_lanes) * 8;
      if constexpr (sizeof(Weight) == 2) {
        bench.kernels.linear_bf16(y, m.n_rows, x, m.row_len, w, n_tokens, m.row_len, begin, end);
      } else {
        bench.kernels.linear_f32(y, m.n_rows, x, m.row_len, w, n_tokens, m.row_len, begin, end);
      }
      w += m.n_rows * m.row_len;
    }
  };
  return seconds_of([&] { bench.team.run(pass); });
}

template <class Weight>
void bench_decode(const Bench& bench, const char* format, bool huge) {
  const std::vector<Matrix> matrices = model_matrices();
  int64_t n_elements = 0;
  for (const Matrix& m : matrices) n_elements += m.n_rows * m.row_len;
  const auto n_bytes = static_cast<int64_t>(sizeof(Weight)) * n_elements;
  const Memory weights(static_cast<size_t>(n_bytes), huge);
  const std::vector<float> x = noise(3072 * 16);
  std::vector<float> y(151936 * 16);

  std::vector<double> read;
  for (const int n_tokens : {1, 2, 4, 8, 16}) {
    std::vector<double> model;
    for (int i = 0; i < bench.repeats; ++i) {
      read.push_back(read_seconds(bench, weights.as<void>(), n_bytes));
      model.push_back(
          model_seconds(bench, matrices, weights.as<Weight>(), x.data(), y.data(), n_tokens));
    }
    const double rate = static_cast<double>(n_bytes) / best(model);
    const double read_rate = static_cast<double>(n_bytes) / best(read);
    std::printf(
        "decode  %-4s %s pages  %d threads  %2d tokens  %6.2f GB/s of %6.2f read = %3.0f %%"
        "  %6.1f GFLOP/s  %6.1f tok/s\n",
        format, huge ? "2 MiB" : "4 KiB", bench.n_threads, n_tokens, rate * 1e-9, read_rate * 1e-9,
        100 * rate / read_rate, 2e-9 * static_cast<double>(n_elements * n_tokens) / best(model),
        n_tokens / best(model));
    if (n_tokens == 1) read.clear();
  }
}

template <class Weight>
void bench_prefill(const Bench& bench, const char* format) {
  for (const Matrix m :
       {Matrix{2048, 1024}, Matrix{3072, 1024}, Matrix{1024, 2048}, Matrix{1024, 3072}}) {
    const Memory weights(static_cast<size_t>(m.n_rows * m.row_len) * sizeof(Weight), false);
    for (const int64_t n_tokens : {33, 128, 512}) {
      const std::vector<float> x = noise(static_cast<size_t>(n_tokens * m.row_len));
      std::vector<float> y(static_cast<size_t>(n_tokens * m.n_rows));
      std::vector<double> seconds;
      for (int i = 0; i < bench.repeats; ++i) {
        seconds.push_back(
            model_seconds(bench, {m}, weights.as<Weight>(), x.data(), y.data(), n_tokens));
      }
      std::printf("prefill %-4s %d threads  K %4ld  N %4ld  %3ld tokens  %6.1f GFLOP/s\n", format,
                  bench.n_threads, static_cast<long>(m.row_len), static_cast<long>(m.n_rows),
                  static_cast<long>(n_tokens),
                  2e-9 * static_cast<double>(m.n_rows * m.row_len * n_tokens) / best(seconds));
    }
  }
}

/// A format of packed weights: its name, what it takes, and what multiplies and makes it.
struct Format {
  const char* name;
  int64_t (*bytes)(int64_t n_rows, int64_t k_len);
  LinearQuantizedFn* CpuKernels::*linear;
  QuantizeRowsFn* CpuKernels::*quantize;  // null for those that files bring along
};
template <WeightFormat kFormat>
int64_t bytes_of(int64_t n_rows, int64_t k_len) {
  return packed_bytes(kFormat, n_rows, k_len);
}
template <GgufPacked kFormat>
int64_t gguf_bytes_of(int64_t n_rows, int64_t k_len) {
  return gguf_packed_bytes(kFormat, n_rows, k_len);
}
constexpr Format kFormats[] = {
    {"int8", bytes_of<WeightFormat::kInt8>, &CpuKernels::linear_int8,
     &CpuKernels::quantize_rows_int8},
    {"int6", bytes_of<WeightFormat::kInt6>, &CpuKernels::linear_int6,
     &CpuKernels::quantize_rows_int6},
    {"int4", bytes_of<WeightFormat::kInt4>, &CpuKernels::linear_int4,
     &CpuKernels::quantize_rows_int4},
    {"int4q", bytes_of<WeightFormat::kInt4q>, &CpuKernels::linear_int4q,
     &CpuKernels::quantize_rows_int4q},
    {"q8_0", gguf_bytes_of<GgufPacked::kQ8_0>, &CpuKernels::linear_q8_0, nullptr},
    {"q6_k", gguf_bytes_of<GgufPacked::kQ6_K>, &CpuKernels::linear_q6_k, nullptr},
    {"q4_k", gguf_bytes_of<GgufPacked::kQ4_K>, &CpuKernels::linear_q4_k, nullptr},
    {"q4_0", gguf_bytes_of<GgufPacked::kQ4_0>, &CpuKernels::linear_q4_0, nullptr},
};

/// Activations of n_tokens rows in the form that the products read.
std::vector<uint8_t> quantized_noise(const Bench& bench, int64_t n_tokens, int64_t k_len) {
  const std::vector<float> x = noise(static_cast<size_t>(n_tokens * k_len));
  std::vector<uint8_t> xq(static_cast<size_t>(n_tokens * quantized_row_bytes(k_len)));
  bench.kernels.quantize_activations(xq.data(), x.data(), k_len, n_tokens, k_len);
  return xq;
}

/// As model_seconds; the activations of a matrix are quantised once, by the first lane's thread,
/// before the pass is timed: in a model that is one of several products' share.
double quantized_seconds(const Bench& bench, const Format& format,
                         const std::vector<Matrix>& matrices, const uint8_t* weights, float* y,
                         int64_t n_tokens) {
  std::map<int64_t, std::vector<uint8_t>> x_of_len;
  for (const Matrix& m : matrices) {
    auto& xq = x_of_len[m.row_len];
    if (xq.empty()) xq = quantized_noise(bench, n_tokens, m.row_len);
  }
  const auto pass = [&](int lane, int n_lanes) {
    const uint8_t* w = weights;
    for (const Matrix& m : matrices) {
      const int64_t n_groups = m.n_rows / kPackedRows;
      const int64_t begin = share_begin(n_groups, lane, n_lanes) * kPackedRows;
      const int64_t end = share_begin(n_groups, lane + 1, n_lanes) * kPackedRows;
      (bench.kernels.*format.linear)(y, m.n_rows, x_of_len.at(m.row_len).data(), w, n_tokens,
                                     m.n_rows, m.row_len, begin, end);
      w += format.bytes(m.n_rows, m.row_len);
    }
  };
  return seconds_of([&] { bench.team.run(pass); });
}

void bench_decode_quantized(const Bench& bench, const Format& format) {
  const std::vector<Matrix> matrices = model_matrices();
  int64_t n_elements = 0;
  int64_t n_bytes = 0;
  for (const Matrix& m : matrices) {
    n_elements += m.n_rows * m.row_len;
    n_bytes += format.bytes(m.n_rows, m.row_len);
  }
  const Memory weights(static_cast<size_t>(n_bytes), true);
  std::vector<float> y(151936 * 16);
  for (const int n_tokens : {1, 2, 4, 8, 16}) {
    std::vector<double> read;
    std::vector<double> model;
    for (int i = 0; i < bench.repeats; ++i) {
      read.push_back(read_seconds(bench, weights.as<void>(), n_bytes));
      model.push_back(
          quantized_seconds(bench, format, matrices, weights.as<uint8_t>(), y.data(), n_tokens));
    }
    const double rate = static_cast<double>(n_bytes) / best(model);
    const double read_rate = static_cast<double>(n_bytes) / best(read);
    std::printf(
        "decode  %-5s 2 MiB pages  %d threads  %2d tokens  %6.2f GB/s of %6.2f read = %3.0f %%"
        "  (medians %3.0f %%)  %6.1f GOP/s  %6.1f tok/s\n",
        format.name, bench.n_threads, n_tokens, rate * 1e-9, read_rate * 1e-9,
        100 * rate / read_rate, 100 * median(read) / median(model),
        2e-9 * static_cast<double>(n_elements * n_tokens) / best(model), n_tokens / best(model));
  }
}

void bench_prefill_quantized(const Bench& bench, const Format& format) {
  for (const Matrix m :
       {Matrix{2048, 1024}, Matrix{3072, 1024}, Matrix{1024, 2048}, Matrix{1024, 3072}}) {
    const Memory weights(static_cast<size_t>(format.bytes(m.n_rows, m.row_len)), false);
    for (const int64_t n_tokens : {33, 128, 512}) {
      std::vector<float> y(static_cast<size_t>(n_tokens * m.n_rows));
      std::vector<double> seconds;
      for (int i = 0; i < bench.repeats; ++i) {
        seconds.push_back(
            quantized_seconds(bench, format, {m}, weights.as<uint8_t>(), y.data(), n_tokens));
      }
      std::printf("prefill %-5s %d threads  K %4ld  N %4ld  %3ld tokens  %6.1f GOP/s\n",
                  format.name, bench.n_threads, static_cast<long>(m.row_len),
                  static_cast<long>(m.n_rows), static_cast<long>(n_tokens),
                  2e-9 * static_cast<double>(m.n_rows * m.row_len * n_tokens) / best(seconds));
    }
  }
}

/// Weights to packed form, as a load does it, and activations, as every step does it.
void bench_quantize(const Bench& bench) {
  constexpr int64_t kRows = 8192;
  constexpr int64_t kLen = 1024;
  const std::vector<float> w = noise(kRows * kLen);
  for (const Format& format : kFormats) {
    if (format.quantize == nullptr) continue;
    std::vector<uint8_t> packed(static_cast<size_t>(format.bytes(kRows, kLen)));
    const auto pass = [&](int lane, int n_lanes) {
      const int64_t begin = share_begin(kRows / kPackedRows, lane, n_lanes) * kPackedRows;
      const int64_t end = share_begin(kRows / kPackedRows, lane + 1, n_lanes) * kPackedRows;
      (bench.kernels.*format.quantize)(packed.data(), w.data() + begin * kLen, begin, end - begin,
                                       kRows, kLen);
    };
    std::vector<double> seconds;
    for (int i = 0; i < bench.repeats; ++i) {
      seconds.push_back(seconds_of([&] { bench.team.run(pass); }));
    }
    const double rate = kRows * kLen / best(seconds);
    std::printf("quantize %-5s %d threads  %6.1f M weights/s  (596 M in %.2f s)\n", format.name,
                bench.n_threads, rate * 1e-6, 596e6 / rate);
  }
  std::vector<uint8_t> xq(static_cast<size_t>(512 * quantized_row_bytes(kLen)));
  std::vector<double> seconds;
  for (int i = 0; i < 5 * bench.repeats; ++i) {
    seconds.push_back(seconds_of(
        [&] { bench.kernels.quantize_activations(xq.data(), w.data(), kLen, 512, kLen); }));
  }
  std::printf("quantize_activations  1 thread  %.3f ns an element\n",
              1e9 * best(seconds) / (512 * kLen));
}

void attend(const CpuKernels& kernels, const AttendTask& task, const KvLayout& layout,
            const uint16_t* k, const uint16_t* v, const uint32_t* page_table) {
  kernels.attend_bf16(task, layout, k, v, page_table);
}
void attend(const CpuKernels& kernels, const AttendTask& task, const KvLayout& layout,
            const int8_t* k, const int8_t* v, const uint32_t* page_table) {
  kernels.attend_int8(task, layout, k, v, page_table);
}

/// One step's attention of the whole model: 28 layers of 8 kv heads with 2 query heads each.
template <class Element>
void bench_attend(const Bench& bench, int64_t context, int64_t n_tokens) {
  constexpr int64_t kLayers = 28;
  constexpr bool kIsInt8 = dovetail::kernels::kHasScale<Element>;
  const int64_t row_len = kIsInt8 ? dovetail::kernels::int8_row_bytes(128) : 128;
  const KvLayout layout{8, 128, 16, int64_t{8} * row_len * 16};
  const int64_t n_pages = (context + layout.page_len - 1) / layout.page_len;
  const int64_t layer_len = n_pages * layout.page_stride;
  const auto n_bytes = static_cast<int64_t>(sizeof(Element)) * layer_len * kLayers * 2;
  const Memory cache(static_cast<size_t>(n_bytes), false);
  std::vector<uint32_t> page_table(static_cast<size_t>(n_pages));
  for (int64_t i = 0; i < n_pages; ++i) {
    page_table[static_cast<size_t>(i)] = static_cast<uint32_t>(i * 7919 % n_pages);
  }
  const std::vector<float> q = noise(static_cast<size_t>(n_tokens * 16 * 128));
  std::vector<float> out(q.size());

  std::vector<double> read;
  std::vector<double> seconds;
  for (int i = 0; i < bench.repeats; ++i) {
    read.push_back(read_seconds(bench, cache.as<void>(), n_bytes));
    const auto pass = [&](int lane, int n_lanes) {
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        const Element* k = cache.as<Element>() + 2 * layer * layer_len;
        for (int64_t g = lane; g < layout.n_kv_heads; g += n_lanes) {
          const AttendTask task{out.data(),         16 * 128, q.data(), 16 * 128,  n_tokens,
                                context - n_tokens, g,        2,        INT64_MAX, 0.088F};
          attend(bench.kernels, task, layout, k, k + layer_len, page_table.data());
        }
      }
    };
    seconds.push_back(seconds_of([&] { bench.team.run(pass); }));
  }
  const auto bytes = static_cast<double>(n_bytes);
  const double pairs = static_cast<double>(n_tokens) * static_cast<double>(context) -
                       static_cast<double>(n_tokens * (n_tokens - 1)) / 2;
  std::printf(
      "attend  %s %d threads  context %4ld  %3ld tokens  %6.2f GB/s of %6.2f read = %3.0f %%"
      "  %6.1f GFLOP/s  %.2f ms\n",
      kIsInt8 ? "int8" : "bf16", bench.n_threads, static_cast<long>(context),
      static_cast<long>(n_tokens), bytes / best(seconds) * 1e-9, bytes / best(read) * 1e-9,
      100 * best(read) / best(seconds), 4e-9 * pairs * 128 * 16 * kLayers / best(seconds),
      1e3 * best(seconds));
}

void bench_pointwise(const Bench& bench) {
  const std::vector<float> a = noise(3072 * 64);
  std::vector<float> out(a.size());
  const auto n = static_cast<int64_t>(a.size());
  const auto report = [&](const char* name, const std::function<void()>& work) {
    std::vector<double> seconds;
    for (int i = 0; i < 5 * bench.repeats; ++i) seconds.push_back(seconds_of(work));
    std::printf("%-9s 1 thread  %.3f ns an element\n", name,
                1e9 * best(seconds) / static_cast<double>(n));
  };
  const CpuKernels& k = bench.kernels;
  const std::vector<float> weight = noise(1024);
  report("silu_mul", [&] { k.silu_mul(out.data(), a.data(), a.data(), n); });
  report("rms_norm",
         [&] { k.rms_norm(out.data(), a.data(), weight.data(), n / 1024, 1024, 1e-6F, 0.0F); });
  report("add", [&] { k.add(out.data(), a.data(), a.data(), n); });
  report("softmax", [&] { k.softmax(out.data(), a.data(), 1, n); });
  report("argmax", [&] { k.argmax(a.data(), n); });
}

int usage() {
  std::fprintf(stderr,
               "usage: kernel_bench [--isa portable|avx2|avx512|neon] [--threads N] [--repeats N]"
               " [decode decode_huge decode_f32 decode_quantized prefill prefill_quantized"
               " quantize attend pointwise]\n");
  return 2;
}

const std::set<std::string> kAllSections = {"decode",           "decode_huge", "decode_f32",
                                            "decode_quantized", "prefill",     "prefill_quantized",
                                            "quantize",         "attend",      "pointwise"};

struct Options {
  dovetail::kernels::Isa isa = dovetail::kernels::detect_isa();
  int n_threads = 2;
  int repeats = 5;
  std::set<std::string> sections;
};

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key.rfind("--", 0) != 0) {
      if (kAllSections.count(key) == 0) return false;
      options.sections.insert(key);
      continue;
    }
    if (++i == argc) return false;
    if (key == "--isa") {
      const auto found = dovetail::kernels::find_isa(argv[i]);
      if (!found || !dovetail::kernels::can_run(*found)) return false;
      options.isa = *found;
    } else if (key == "--threads") {
      options.n_threads = std::max(1, std::atoi(argv[i]));
    } else if (key == "--repeats") {
      options.repeats = std::max(1, std::atoi(argv[i]));
    } else {
      return false;
    }
  }
  if (options.sections.empty()) options.sections = kAllSections;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) return usage();
  const CpuKernels& row = dovetail::kernels::cpu_kernels(options.isa);
  Team team(options.n_threads);
  const Bench bench{row, team, options.n_threads, options.repeats};
  const auto wanted = [&](const char* section) { return options.sections.count(section) != 0; };
  std::printf("isa %s, %d threads, best of %d\n", row.name, options.n_threads, options.repeats);
  if (wanted("decode")) bench_decode<uint16_t>(bench, "bf16", false);
  if (wanted("decode_huge")) bench_decode<uint16_t>(bench, "bf16", true);
  if (wanted("decode_f32")) bench_decode<float>(bench, "f32", false);
  if (wanted("prefill")) {
    bench_prefill<uint16_t>(bench, "bf16");
    bench_prefill<float>(bench, "f32");
  }
  for (const Format& format : kFormats) {
    if (wanted("decode_quantized")) bench_decode_quantized(bench, format);
    if (wanted("prefill_quantized")) bench_prefill_quantized(bench, format);
  }
  if (wanted("quantize")) bench_quantize(bench);
  if (wanted("attend")) {
    bench_attend<uint16_t>(bench, 2048, 1);
    bench_attend<int8_t>(bench, 2048, 1);
    bench_attend<uint16_t>(bench, 2048, 64);
    bench_attend<int8_t>(bench, 2048, 64);
    bench_attend<uint16_t>(bench, 512, 512);
    bench_attend<int8_t>(bench, 512, 512);
  }
  if (wanted("pointwise")) bench_pointwise(bench);
  return 0;
}
