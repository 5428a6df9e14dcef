// pull: a model of a hub becomes a folder that the other commands take.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/cli/command.hpp"
#include "core/cli/progress.hpp"
#include "core/cli/pull_hint.hpp"
#include "core/config/variables.hpp"
#include "core/hub/pull.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

struct PullCommand {
  std::string model, output;
  PullRequest request;
  bool offline = false, json = false;
};

// Bytes a second over the last few seconds.
class Rate {
 public:
  double update(uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!samples_.empty() && done < samples_.back().done) samples_.clear();
    samples_.push_back({now, done});
    constexpr auto kSpan = std::chrono::seconds(5);
    while (samples_.size() > 2 && now - samples_[1].at > kSpan) samples_.pop_front();
    const double seconds = std::chrono::duration<double>(now - samples_.front().at).count();
    return seconds > 0 ? static_cast<double>(done - samples_.front().done) / seconds : 0;
  }

 private:
  struct Sample {
    std::chrono::steady_clock::time_point at;
    uint64_t done;
  };
  std::deque<Sample> samples_;
};

std::string time_text(double seconds) {
  const auto s = static_cast<uint64_t>(seconds);
  if (s < 100) return std::to_string(s) + " s";
  if (s < 6000) return std::to_string(s / 60) + " min";
  return std::to_string(s / 3600) + " h";
}

// "0.6 of 1.4 GiB, 85.0 MiB/s, 10 s left"
std::string detail_text(uint64_t done, uint64_t total, double rate) {
  std::string text = bytes_text(done);
  if (total > 0) text += " of " + bytes_text(total);
  if (rate < 1) return text;
  text += ", " + bytes_text(static_cast<uint64_t>(rate)) + "/s";
  if (total > done) text += ", " + time_text(static_cast<double>(total - done) / rate) + " left";
  return text;
}

const char* state_text(const PulledFile& f) {
  switch (f.before) {
    case FileState::kWhole:
      return "there";
    case FileState::kPartial:
      return f.is_whole ? "fetched" : "begun";
    case FileState::kForeign:
      return f.is_whole ? "fetched" : "other";
    default:
      return f.is_whole ? "fetched" : "missing";
  }
}

std::string names_text(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + printable(name);
  return out;
}

std::string table_text(const PullCommand& o, const PullReport& report) {
  std::string text = o.request.id + ", commit " + report.commit.substr(0, 12) + ", in " +
                     printable(o.request.folder.string()) + "\n";
  for (const PulledFile& f : report.files) {
    std::string size = f.file.size ? bytes_text(*f.file.size) : "?";
    size.insert(0, 12 - std::min<size_t>(12, size.size()), ' ');
    std::string state = state_text(f);
    state.resize(8, ' ');
    text += size + "  " + state + "  " + printable(f.file.name);
    if (f.before == FileState::kPartial) text += " (" + bytes_text(f.n_there) + " of it)";
    text += "\n";
  }
  return text + bytes_text(report.n_bytes()) + " in " + std::to_string(report.files.size()) +
         (report.files.size() == 1 ? " file, " : " files, ") + bytes_text(report.n_missing()) +
         " of it to fetch\n";
}

std::string result_text(const PullCommand& o, const PullReport& report, double seconds) {
  std::string text = printable(o.request.folder.string()) + ": " + o.request.id + ", commit " +
                     report.commit.substr(0, 12) + ", " + std::to_string(report.files.size()) +
                     (report.files.size() == 1 ? " file of " : " files of ") +
                     bytes_text(report.n_bytes());
  if (report.n_fetched() == 0) return text + ", all there\n";
  char time[32];
  std::snprintf(time, sizeof time, " in %.1f s\n", seconds);
  return text + ", fetched " + bytes_text(report.n_fetched()) + time;
}

Node report_node(const PullCommand& o, const PullReport& report, double seconds) {
  Node files = Node::make_list(), refused = Node::make_list(), stale = Node::make_list();
  for (const PulledFile& f : report.files) {
    Node item = Node::make_map();
    item.set("file", Node::make_string(f.file.name));
    if (f.file.size) item.set("bytes", Node::make_int(static_cast<int64_t>(*f.file.size)));
    if (f.file.checksum.kind == Checksum::Kind::kSha256)
      item.set("sha256", Node::make_string(f.file.checksum.hex));
    if (f.file.checksum.kind == Checksum::Kind::kGitSha1)
      item.set("git_sha1", Node::make_string(f.file.checksum.hex));
    item.set("state", Node::make_string(state_text(f)));
    item.set("bytes_there", Node::make_int(static_cast<int64_t>(f.n_there)));
    item.set("bytes_fetched", Node::make_int(static_cast<int64_t>(f.n_fetched)));
    files.items().push_back(std::move(item));
  }
  for (const std::string& name : report.refused) refused.items().push_back(Node::make_string(name));
  for (const std::string& name : report.stale) stale.items().push_back(Node::make_string(name));
  Node out = Node::make_map();
  out.set("model", Node::make_string(o.request.id));
  out.set("commit", Node::make_string(report.commit));
  out.set("folder", Node::make_string(o.request.folder.string()));
  out.set("whole", Node::make_bool(report.is_whole()));
  out.set("files", std::move(files));
  out.set("bytes", Node::make_int(static_cast<int64_t>(report.n_bytes())));
  out.set("bytes_fetched", Node::make_int(static_cast<int64_t>(report.n_fetched())));
  out.set("bytes_missing", Node::make_int(static_cast<int64_t>(report.n_missing())));
  out.set("left_out", std::move(refused));
  out.set("of_earlier_pulls", std::move(stale));
  out.set("seconds", Node::make_float(seconds));
  return out;
}

void warn(const PullReport& report) {
  std::vector<std::string> unchecked;
  for (const PulledFile& f : report.files)
    if (f.n_fetched > 0 && f.file.checksum.kind == Checksum::Kind::kNone)
      unchecked.push_back(f.file.name);
  if (!unchecked.empty())
    log_warn("pull",
             "the hub gives no checksum, the size alone was checked: " + names_text(unchecked));
  if (!report.refused.empty())
    log_warn("pull", "left out, since they can run code when they are loaded: " +
                         names_text(report.refused));
  if (!report.stale.empty())
    log_warn("pull", "of an earlier pull, and no more in this commit: " + names_text(report.stale));
}

// What to type now: the folder, or the first GGUF file of those asked for.
std::string next_step(const PullCommand& o, const PullReport& report) {
  bool has_weights = false;
  std::string path = o.request.folder.string();
  for (const PulledFile& f : report.files) {
    has_weights |=
        f.file.name == "model.safetensors" || f.file.name == "model.safetensors.index.json";
    if (has_weights || !f.file.name.ends_with(".gguf")) continue;
    path = (o.request.folder / f.file.name).string();
    has_weights = true;
    break;
  }
  if (!has_weights) return "";
  return "next: dovetail run " + shell_word(printable(path)) + " \"Why is the sky blue?\"\n";
}

Status report_offline(const PullCommand& o, const PullReport& report) {
  if (report.is_whole()) return Status::ok();
  std::vector<std::string> missing;
  for (const PulledFile& f : report.files)
    if (!f.is_whole) missing.push_back(f.file.name);
  return io_error(o.request.folder.string() +
                  ": not whole, and the hub is not asked (--offline or " +
                  "HF_HUB_OFFLINE): " + names_text(missing));
}

Status run(PullCommand o) {
  const auto start = std::chrono::steady_clock::now();
  take_upper_case_proxy();
  const Environment environment = process_environment();
  DVT_TRY(HubAccess access, hub_access(environment));
  access.is_offline |= o.offline;
  DVT_TRY(o.request.id, model_id(o.model, access));
  o.request.folder = o.output.empty() ? pull_folder(o.request.id, environment) : fs::path(o.output);

  Progress bar;
  Rate rate;
  PullProgress progress;
  progress.interrupted = [] { return interrupted(); };
  progress.note = [&bar](const std::string& text) {
    bar.finish();
    log_warn("pull", text);
  };
  progress.update = [&](std::string_view what, uint64_t done, uint64_t total) {
    const double speed = rate.update(done);
    bar.update(what, done, total, detail_text(done, total, speed));
  };
  DVT_TRY(const PullReport report, pull(o.request, access, progress));
  bar.finish();
  warn(report);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (o.json)
    DVT_TRY(print(to_json(report_node(o, report, seconds), 2) + "\n"));
  else if (o.request.dry_run || !report.is_whole())
    DVT_TRY(print(table_text(o, report)));
  else
    DVT_TRY(print(result_text(o, report, seconds)));
  if (access.is_offline && !o.request.dry_run) DVT_TRY(report_offline(o, report));
  if (!o.json && report.is_whole()) std::fputs(next_step(o, report).c_str(), stderr);
  return Status::ok();
}

}  // namespace

void add_pull_command(Cli& cli) {
  auto o = std::make_shared<PullCommand>();
  PullRequest& r = o->request;
  CLI::App* command = cli.app.add_subcommand("pull", "Download a model from a hub into a folder");
  command->add_option("ORG/NAME", o->model, "the model's name on the hub, or its page there")
      ->required();
  command
      ->add_option(
          "FILES", r.wanted.names,
          "files of it, such as one of several .gguf; without any: the config, the tokenizer, the "
          "chat template and the weights")
      ->expected(0, -1)
      ->option_text("[FILE]...");
  command->add_option("--revision", r.revision, "a branch, a tag or a commit (main)");
  command
      ->add_option("--include", r.wanted.include,
                   "files that match a pattern, instead of those by default: --include \"*Q8_0*\"")
      ->allow_extra_args(false);
  command->add_option("--exclude", r.wanted.exclude, "leave out what matches a pattern")
      ->allow_extra_args(false);
  command->add_option("-o,--output", o->output,
                      "folder to fill (NAME in $DOVETAIL_MODELS, or in models/ without it)");
  command->add_flag("--dry-run", r.dry_run, "only say what is there and what would be fetched");
  command->add_flag("--verify", r.verify, "read the files that are there again, to check them");
  command->add_flag("--force", r.force, "replace files of other content that no pull put there");
  command->add_flag("--offline", o->offline,
                    "ask no hub: say what of an earlier pull is there and what is missing");
  command->add_option("-j,--jobs", r.n_jobs, "files to fetch at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--retries", r.n_retries, "tries more after a failure of the network")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_flag("--json", o->json, "print one JSON object instead of text");
  command->footer(
      "The hub is $HF_ENDPOINT, or https://huggingface.co. A token is taken from $HF_TOKEN or the "
      "file that its "
      "own\ntools keep. A pull that is stopped goes on where it was when the same command is given "
      "again.\n\n"
      "Examples:\n  dovetail pull Qwen/Qwen3-0.6B\n"
      "  dovetail pull Qwen/Qwen3-0.6B-GGUF Qwen3-0.6B-Q8_0.gguf -o models/gguf\n"
      "  dovetail pull Qwen/Qwen3-8B --dry-run");
  command->callback([&cli, o] { cli.action = [o] { return run(*o); }; });
}

}  // namespace dovetail::core
