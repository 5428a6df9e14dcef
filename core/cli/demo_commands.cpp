// demo tokens|next|cache|fast: the pipeline opened up, one stage at a time.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "core/base/json.hpp"
#include "core/cli/command.hpp"
#include "core/cli/demo_chart.hpp"
#include "core/cli/demo_decoder.hpp"
#include "core/cli/piece_json.hpp"
#include "core/cli/report_text.hpp"
#include "core/cli/session.hpp"
#include "core/text/prompt.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kDefaultText = "It is a truth universally acknowledged, that";

struct DemoOptions {
  ModelOptions model;
  std::vector<std::string> words;  // [CONFIG] [TEXT]
  std::string svg;
  uint32_t n_tokens = 0;
  uint32_t repeats = 3;
};

struct Demo {
  std::unique_ptr<Session> session;
  std::string text;
  std::vector<TokenId> ids;
};

Result<Demo> open(const std::string& program, DemoOptions& o) {
  Demo demo;
  demo.text = kDefaultText;
  DVT_TRY(split_words(o.words, o.model.config, demo.text));
  DVT_TRY(demo.session, Session::open(program, o.model));
  const Model& model = demo.session->model();
  if (!model.tokenizer()) return invalid("this model has no tokenizer; the demo needs one");
  DVT_TRY(demo.ids, encode_text(*model.tokenizer(), demo.text));
  if (demo.ids.empty()) return invalid("the text is empty; give one as the last argument");
  if (static_cast<int64_t>(demo.ids.size() + o.n_tokens) > model.max_seq_len())
    return invalid("text and " + std::to_string(o.n_tokens) + " new tokens are " +
                   std::to_string(demo.ids.size() + o.n_tokens) + " tokens, the context holds " +
                   std::to_string(model.max_seq_len()) + "; give fewer with -n");
  return demo;
}

std::string fixed(double value, int digits) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

Status tokens(const std::string& program, DemoOptions o) {
  DVT_TRY(const Demo demo, open(program, o));
  Node list = Node::make_list();
  std::string table = padded("id", 8) + "  piece\n";
  for (TokenId id : demo.ids) {
    DVT_TRY(const std::string piece, demo.session->model().tokenizer()->piece(id));
    table += padded(std::to_string(id), 8) + "  " + to_json(Node::make_string(piece)) + "\n";
    Node entry = Node::make_map();
    entry.set("id", Node::make_int(id));
    set_piece(entry, piece);
    list.items().push_back(std::move(entry));
  }
  table += std::to_string(demo.text.size()) + " bytes are " + std::to_string(demo.ids.size()) +
           " tokens\n";
  return print(o.model.json ? to_json(list, 2) + "\n" : table);
}

Status next(const std::string& program, DemoOptions o) {
  DVT_TRY(const Demo demo, open(program, o));
  Model& model = demo.session->model();
  DemoDecoder decoder(model, demo.session->settings());
  DVT_TRY(const std::vector<float> logits, decoder.logits_after(demo.ids));
  Node list = Node::make_list();
  std::string chart;
  for (const TokenProbability& t : likeliest(logits, 5, model.tokenizer()->n_ids())) {
    DVT_TRY(const std::string piece, model.tokenizer()->piece(t.id));
    chart += padded(fixed(100 * t.probability, 1), 6) + " %  " + bar(t.probability, 30) + "  " +
             to_json(Node::make_string(piece)) + "\n";
    Node entry = Node::make_map();
    entry.set("id", Node::make_int(t.id));
    set_piece(entry, piece);
    entry.set("probability", Node::make_float(t.probability));
    list.items().push_back(std::move(entry));
  }
  return print(o.model.json ? to_json(list, 2) + "\n" : demo.text + " ...\n" + chart);
}

Node numbers(const std::vector<double>& values) {
  Node out = Node::make_list();
  for (double v : values) out.items().push_back(Node::make_float(v));
  return out;
}

Status different(const char* a, const char* b) {
  return internal_error(std::string("decoding ") + a + " and " + b +
                        " gave different tokens; they must be the same");
}

Status cache(const std::string& program, DemoOptions o) {
  DVT_TRY(const Demo demo, open(program, o));
  DemoDecoder decoder(demo.session->model(), demo.session->settings());
  DVT_TRY(const Decoded cached, decoder.with_cache(demo.ids, o.n_tokens));
  DVT_TRY(const Decoded uncached, decoder.without_cache(demo.ids, o.n_tokens));
  if (cached.ids != uncached.ids) return different("with the cache", "without it");
  const Chart chart{"seconds until the n-th token",
                    {{"cached", cached.seconds}, {"uncached", uncached.seconds}}};
  if (!o.svg.empty()) DVT_TRY(write_file(o.svg, chart_svg(chart)));
  if (o.model.json) {
    Node out = Node::make_map();
    out.set("tokens", Node::make_int(o.n_tokens));
    out.set("cached_s", numbers(cached.seconds));
    out.set("uncached_s", numbers(uncached.seconds));
    return print(to_json(out) + "\n");
  }
  const double a = cached.seconds.back(), b = uncached.seconds.back();
  return print(chart_text(chart) + std::to_string(o.n_tokens) + " tokens: " + fixed(a, 3) +
               " s with the cache, " + fixed(b, 3) + " s without (" + fixed(b / a, 1) +
               " times as long); the tokens are the same\n");
}

// What `dovetail run` does for every token: a step of the engine, the token and its text to the host,
// then the next.
Result<Decoded> plain_loop(Session& session, const std::vector<TokenId>& prompt, uint32_t n) {
  const std::unique_ptr<Engine> engine = session.make_engine();
  RequestParams params = session.request_params();
  params.prompt = prompt;
  params.max_tokens = n;
  params.stop.clear();  // as many tokens as the other loop
  params.stop_ids.clear();
  Decoded out;
  const Clock::time_point start = Clock::now();
  DVT_TRY(engine->add(std::move(params), [&out, start](const RequestEvent& e) {
    if (!e.token) return;
    out.ids.push_back(*e.token);
    out.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }));
  for (bool more = true; more;) {
    if (interrupted()) return Status(Code::kCancelled, "interrupted");
    DVT_TRY(more, engine->step());
  }
  for (const Completion& done : engine->take_completions())
    if (done.finish == FinishReason::kError) return done.error;
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Status fast(const std::string& program, DemoOptions o) {
  o.model.sets.push_back("sampler=[greedy]");  // the one choice that both loops can make
  DVT_TRY(const Demo demo, open(program, o));
  DemoDecoder decoder(demo.session->model(), demo.session->settings());
  std::vector<double> plain_rates, fast_rates;
  for (uint32_t i = 0; i < o.repeats; ++i) {  // alternating: a busy moment meets both
    DVT_TRY(const Decoded plain, plain_loop(*demo.session, demo.ids, o.n_tokens));
    DVT_TRY(const Decoded quick, decoder.on_device(demo.ids, o.n_tokens));
    if (plain.ids != quick.ids) return different("through the engine", "without a round trip");
    plain_rates.push_back(o.n_tokens / plain.seconds.back());
    fast_rates.push_back(o.n_tokens / quick.seconds.back());
  }
  const double plain = median(plain_rates), quick = median(fast_rates);
  if (o.model.json) {
    Node out = Node::make_map();
    out.set("tokens", Node::make_int(o.n_tokens));
    out.set("plain_tokens_per_s", Node::make_float(plain));
    out.set("fast_tokens_per_s", Node::make_float(quick));
    out.set("ratio", Node::make_float(quick / plain));
    return print(to_json(out, 2) + "\n");
  }
  const double most = std::max(plain, quick);
  return print("plain loop: every token to the host and back  " + padded(fixed(plain, 1), 9) +
               " tokens/s  " + bar(plain / most, 30) + "\n" +
               "no round trip: ids stay with the backend      " + padded(fixed(quick, 1), 9) +
               " tokens/s  " + bar(quick / most, 30) + "\n" + fixed(quick / plain, 2) +
               " times as fast on " + demo.session->model().backend_name() +
               " (greedy, prompt of " + std::to_string(demo.ids.size()) + " and " +
               std::to_string(o.n_tokens) + " new tokens, medians of " + std::to_string(o.repeats) +
               "); the tokens are the same\n");
}

}  // namespace

void add_demo_commands(Cli& cli) {
  CLI::App* demo = cli.app.add_subcommand(
      "demo", "The pipeline opened up: tokens, the next token, the cache, a faster loop");
  demo->require_subcommand(1);
  demo->footer(
      "Examples:\n  dovetail demo next \"Mr. Darcy was\"\n  dovetail demo cache -n 64 --svg "
      "cache.svg");
  const auto add = [&](const char* name, const char* help,
                       Status (*action)(const std::string&, DemoOptions), uint32_t n_tokens) {
    auto o = std::make_shared<DemoOptions>();
    o->n_tokens = n_tokens;
    CLI::App* command = demo->add_subcommand(name, help);
    command->add_option("words", o->words, "told apart as in dovetail run")
        ->expected(0, -1)
        ->option_text("[CONFIG] [TEXT]");
    command->add_option("--set", o->model.sets, "override one key of the config")
        ->allow_extra_args(false);
    command->add_flag("--json", o->model.json, "print JSON");
    if (n_tokens > 0)
      command->add_option("-n,--tokens", o->n_tokens, "tokens to generate")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
    if (action == &cache) command->add_option("--svg", o->svg, "write the chart as SVG too");
    if (action == &fast)
      command->add_option("--repeats", o->repeats, "measurements, of which the median counts")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
    command->footer(std::string("Example:\n  dovetail demo ") + name + " \"It was a dark night\"");
    command->callback(
        [&cli, o, action] { cli.action = [&cli, o, action] { return action(cli.program, *o); }; });
  };
  add("tokens", "Ids and pieces of a text", &tokens, 0);
  add("next", "The five likeliest next tokens", &next, 0);
  add("cache", "Time with and without the KV cache as the output grows", &cache, 64);
  add("fast", "The plain loop against one without a round trip to the host per token", &fast, 128);
}

}  // namespace dovetail::core
