// bench: speed of prefill and decode, and their share of what the machine can do.
#include <algorithm>
#include <cstring>
#include <random>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/pages.hpp"
#include "core/cli/command.hpp"
#include "core/cli/session.hpp"

namespace dovetail::core {
namespace {

struct BenchOptions {
  ModelOptions model;
  uint32_t n_prompt = 128, n_decode = 32, n_streams = 1, n_repeats = 3;
};

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v.size() % 2 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}
double quantile(std::vector<double> v, double q) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, static_cast<size_t>(q * static_cast<double>(v.size())))];
}
double seconds(Clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

struct Bandwidth {
  double small_pages = 0, huge_pages = 0;  // bytes per second, medians
  size_t bytes = 0;
  double best() const { return std::max(small_pages, huge_pages); }
};

// Streams through memory that no cache holds, as large as the weights, with the backend's own loop.
Result<Bandwidth> measure_bandwidth(Model& model, uint32_t repeats, Progress& progress) {
  constexpr size_t kLeast = size_t{1} << 30, kMost = size_t{2} << 30;
  Bandwidth out;
  out.bytes = std::clamp<size_t>(model.weights().bytes_per_token(), kLeast, kMost);
  out.bytes = std::min<size_t>(out.bytes, available_memory() / 4) & ~size_t{4095};
  for (const bool huge : {false, true}) {
    progress.update("measuring memory bandwidth", huge ? 1 : 0, 2);
    const Pages pages(out.bytes, huge ? Pages::Size::kHuge : Pages::Size::kSmall);
    if (!pages)
      return Status(Code::kNoMemory,
                    "no memory for a bandwidth measurement of " + bytes_text(out.bytes));
    std::memset(pages.data(), 1, out.bytes);
    std::vector<double> rates;
    for (uint32_t i = 0; i < repeats + 2; ++i) {
      if (interrupted()) return Status(Code::kCancelled, "interrupted");
      DVT_TRY(const double s, model.read_bandwidth(pages.data(), out.bytes));
      rates.push_back(static_cast<double>(out.bytes) / s);
    }
    (huge ? out.huge_pages : out.small_pages) = median(rates);
  }
  return out;
}

struct Timing {
  std::vector<double> prefill_s, ttft_s, gaps_s, decode_tokens_per_s;
};

// One round: n_streams requests with random prompts; the prompts are read first, then all decode,
// one token of each in a step.
Status round(Session& session, const BenchOptions& o, uint32_t seed, Timing& out) {
  Model& model = session.model();
  const std::unique_ptr<Engine> engine = session.make_engine();
  std::mt19937 random(seed);
  const auto vocab = static_cast<uint32_t>(
      model.tokenizer() ? std::min<int64_t>(model.tokenizer()->n_ids(), model.vocab_size())
                        : model.vocab_size());
  std::vector<std::vector<Clock::time_point>> times(o.n_streams);
  const auto start = Clock::now();
  for (uint32_t s = 0; s < o.n_streams; ++s) {
    RequestParams params = session.request_params();
    params.stop_ids.clear();
    params.stop.clear();
    params.max_tokens = o.n_decode + 1;
    params.seed = seed + s;
    for (uint32_t i = 0; i < o.n_prompt; ++i) params.prompt.push_back(random() % vocab);
    auto& mine = times[s];
    DVT_TRY(engine->add(std::move(params), [&mine](const RequestEvent& e) {
      if (e.token) mine.push_back(Clock::now());
    }));
  }
  for (bool more = true; more;) {
    if (interrupted()) return {Code::kCancelled, "interrupted"};
    DVT_TRY(more, engine->step());
  }
  for (const Completion& c : engine->take_completions())
    if (c.finish == FinishReason::kError) return c.error;
  Clock::time_point first_last{}, second_first = Clock::time_point::max(), last{};
  size_t n_decoded = 0;
  for (const auto& t : times) {
    if (t.size() < 2)
      return internal_error("a bench request gave " + std::to_string(t.size()) + " tokens");
    out.ttft_s.push_back(seconds(t[0] - start));
    for (size_t i = 1; i < t.size(); ++i) out.gaps_s.push_back(seconds(t[i] - t[i - 1]));
    first_last = std::max(first_last, t[0]);
    second_first = std::min(second_first, t[1]);
    last = std::max(last, t.back());
    n_decoded += t.size() - 1;
  }
  if (second_first < first_last)
    return internal_error("a bench request decoded before the last prompt was read");
  out.prefill_s.push_back(seconds(first_last - start));
  out.decode_tokens_per_s.push_back(static_cast<double>(n_decoded) / seconds(last - first_last));
  return Status::ok();
}

// Tokens in a step. Several prompts are read in one: the scheduler lets decoding go first, so the
// streams would end at different times, and fewer than all would decode in most steps.
uint32_t step_tokens(const BenchOptions& o) {
  const uint32_t n =
      o.n_streams > 1 ? o.n_prompt * o.n_streams : std::min<uint32_t>(o.n_prompt, 512);
  return std::max<uint32_t>(n, 64);
}

Status run(const std::string& program, const BenchOptions& o) {
  ModelOptions options = o.model;
  options.sets.push_back("scheduler.prefill_chunk=" +
                         std::to_string(std::max<uint32_t>(o.n_prompt, 1)));
  options.sets.push_back("scheduler.max_batch_tokens=" + std::to_string(step_tokens(o)));
  options.sets.push_back("scheduler.max_seqs=" + std::to_string(o.n_streams));
  options.sets.push_back("kv_cache.max_tokens=" +
                         std::to_string((o.n_prompt + o.n_decode + 64) * o.n_streams));
  SessionOptions session_options;
  session_options.least_context = int64_t{o.n_prompt} + o.n_decode + 1;
  DVT_TRY(const std::unique_ptr<Session> session, Session::open(program, options, session_options));
  Model& model = session->model();
  if (session_options.least_context > model.max_seq_len())
    return invalid("a prompt of " + std::to_string(o.n_prompt) + " tokens and " +
                   std::to_string(o.n_decode + 1) + " more need a context of " +
                   std::to_string(session_options.least_context) + ", this one holds " +
                   std::to_string(model.max_seq_len()) +
                   (session->settings().max_seq_len ? "; set `context` higher, or leave it out"
                                                    : ", the most the model was made for"));
  model.settle();
  Progress progress;
  DVT_TRY(const Bandwidth bandwidth, measure_bandwidth(model, o.n_repeats, progress));
  Timing timing;
  Timing warm_up;
  DVT_TRY(round(*session, o, 1, warm_up));
  for (uint32_t i = 0; i < o.n_repeats; ++i) {
    progress.update("measuring the model", i, o.n_repeats);
    DVT_TRY(round(*session, o, 100 + i, timing));
  }
  progress.finish();

  const double prefill_s = median(timing.prefill_s);
  const double prompt_tokens = static_cast<double>(o.n_prompt) * o.n_streams;
  const double decode_rate = median(timing.decode_tokens_per_s);
  // A step of n streams reads the weights once, and each stream's own cache.
  const double kv_bytes =
      static_cast<double>(model.memory().bytes_per_token) * (o.n_prompt + o.n_decode / 2.0);
  const double bytes_per_token =
      static_cast<double>(model.weights().bytes_per_token()) / o.n_streams + kv_bytes;
  const Model::Flops flops = model.linear_flops();
  const double prefill_flops = static_cast<double>(flops.per_token) * prompt_tokens +
                               static_cast<double>(flops.per_row) * o.n_streams;
  const double prefill_bytes =
      static_cast<double>(model.weights().bytes_per_token()) / static_cast<double>(o.n_prompt);
  const double share = bandwidth.best() > 0 ? decode_rate * bytes_per_token / bandwidth.best() : 0;

  Node out = Node::make_map(), machine = Node::make_map(), prefill = Node::make_map(),
       decode = Node::make_map(), latency = Node::make_map();
  machine.set("read_bandwidth", Node::make_float(bandwidth.best()));
  machine.set("read_bandwidth_4k_pages", Node::make_float(bandwidth.small_pages));
  machine.set("read_bandwidth_2m_pages", Node::make_float(bandwidth.huge_pages));
  machine.set("threads", Node::make_int(session->runtime().pool().n_lanes()));
  machine.set("backend", Node::make_string(model.backend_name()));
  machine.set("variant", Node::make_string(model.backend_variant()));
  prefill.set("tokens", Node::make_int(static_cast<int64_t>(prompt_tokens)));
  prefill.set("tokens_per_s", Node::make_float(prompt_tokens / prefill_s));
  prefill.set("gflop_per_s", Node::make_float(prefill_flops / prefill_s / 1e9));
  prefill.set("bytes_per_token", Node::make_float(prefill_bytes));
  prefill.set("bandwidth_share",
              Node::make_float(prompt_tokens / prefill_s * prefill_bytes / bandwidth.best()));
  decode.set("tokens_per_s", Node::make_float(decode_rate));
  decode.set("streams", Node::make_int(o.n_streams));
  decode.set("bytes_per_token", Node::make_float(bytes_per_token));
  decode.set("bandwidth_share", Node::make_float(share));
  decode.set("ceiling_tokens_per_s", Node::make_float(bandwidth.best() / bytes_per_token));
  latency.set("time_to_first_token_s", Node::make_float(median(timing.ttft_s)));
  latency.set("inter_token_s", Node::make_float(median(timing.gaps_s)));
  latency.set("inter_token_p95_s", Node::make_float(quantile(timing.gaps_s, 0.95)));
  out.set("model", Node::make_string(session->runtime().config_name()));
  out.set("machine", machine);
  out.set("prefill", prefill);
  out.set("decode", decode);
  out.set("latency", latency);
  out.set("memory", model.memory().node());
  out.set("weights_in_huge_pages", Node::make_int(static_cast<int64_t>(model.promoted_bytes())));
  if (o.model.json) return print(to_json(out, 2) + "\n");

  char text[1600];
  std::snprintf(text, sizeof text,
                "%s on %s (%s, %u threads), medians of %u\n"
                "  memory read     %6.1f GB/s from 4 KiB pages, %.1f GB/s from 2 MiB pages\n"
                "  weights         %9s a token, %s of the weights moved to 2 MiB pages\n"
                "  prefill %5u    %7.1f tokens/s  %6.1f GFLOP/s\n"
                "  decode  %5u    %7.1f tokens/s  %5.1f %% of the read bandwidth (%s a token; "
                "ceiling %.1f tokens/s)%s\n"
                "  first token     %7.1f ms\n"
                "  between tokens  %7.2f ms, 95 %% under %.2f ms\n",
                session->runtime().config_name().c_str(), model.backend_name().c_str(),
                model.backend_variant().c_str(), session->runtime().pool().n_lanes(), o.n_repeats,
                bandwidth.small_pages / 1e9, bandwidth.huge_pages / 1e9,
                bytes_text(model.weights().bytes_per_token()).c_str(),
                bytes_text(model.promoted_bytes()).c_str(), o.n_prompt, prompt_tokens / prefill_s,
                prefill_flops / prefill_s / 1e9, o.n_decode, decode_rate, share * 100,
                bytes_text(static_cast<uint64_t>(bytes_per_token)).c_str(),
                bandwidth.best() / bytes_per_token,
                o.n_streams > 1 ? (", " + std::to_string(o.n_streams) + " streams").c_str() : "",
                median(timing.ttft_s) * 1e3, median(timing.gaps_s) * 1e3,
                quantile(timing.gaps_s, 0.95) * 1e3);
  const char* cached = "  over 100 %: what a token reads stays in part in the processor's caches\n";
  return print(std::string(text) + (share > 1 ? cached : ""));
}

}  // namespace

void add_bench_command(Cli& cli) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* command = cli.app.add_subcommand(
      "bench",
      "Measure prefill and decode speed, latency, and their share of the memory bandwidth");
  o->model.add_to(*command, false);
  command->add_option("-p,--prompt-tokens", o->n_prompt, "tokens of the prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("-n,--tokens", o->n_decode, "tokens to generate")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--streams", o->n_streams, "requests at once; decode is of all together")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--repeats", o->n_repeats, "rounds; figures are medians")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->footer("Example:\n  dovetail bench models/qwen3-0.6b -p 512 -n 64 --json");
  command->callback([&cli, o] { cli.action = [&cli, o] { return run(cli.program, *o); }; });
}

}  // namespace dovetail::core
