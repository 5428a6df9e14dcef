// quantize: a model's folder with smaller weights, made once instead of at each start.
#include <chrono>
#include <filesystem>

#include "core/base/files.hpp"
#include "core/base/folder_writer.hpp"
#include "core/base/json.hpp"
#include "core/cli/command.hpp"
#include "core/cli/session.hpp"
#include "core/model/quantize.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

struct QuantizeCommand {
  ModelOptions model;
  std::string output, weights;
  bool force = false;
  uint64_t max_file_mib = 4096;
};

// A folder that is there is replaced only if it is asked for and looks like a model's: a slip of the
// hand must not take somebody's documents.
Status check_output(const QuantizeCommand& o) {
  std::error_code error;
  const fs::file_status status = fs::status(o.output, error);
  if (!fs::exists(status)) return Status::ok();
  if (!fs::is_directory(status)) return io_error(o.output + ": is there already and no folder");
  if (fs::is_empty(o.output, error)) return Status::ok();
  if (!o.force) return io_error(o.output + ": is there already; --force replaces it");
  if (!fs::exists(fs::path(o.output) / "config.json", error))
    return io_error(o.output +
                    ": is not replaced: it is no model's folder, config.json is not in it");
  for (const fs::directory_entry& entry : fs::directory_iterator(o.output, error))
    if (!entry.is_regular_file(error) && entry.path().filename() != "additional_chat_templates")
      return io_error(o.output + ": is not replaced: \"" + entry.path().filename().string() +
                      "\" in it is no file");
  return Status::ok();
}

struct Writer {
  const dvt_format_v1* table;
  void* self;
};

// The first of the config's formats that can write.
Result<Writer> find_writer(Runtime& runtime) {
  for (const std::string& name : runtime.settings().model.formats) {
    DVT_TRY(LoadedPlugin * plugin, runtime.plugins().load("format", name));
    const auto* table = plugin->interface<dvt_format_v1>("dovetail.format/1");
    if (DVT_HAS(table, lay_out)) return Writer{table, plugin->self};
  }
  return unsupported("none of the formats in model.format can write");
}

std::string names_text(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 3; ++i) out += (i ? ", " : "") + names[i];
  return names.size() > 3 ? out + " and " + std::to_string(names.size() - 3) + " more" : out;
}

std::string report_text(const QuantizeCommand& o, const QuantizeReport& report, double seconds) {
  std::string text = o.output + ": ";
  for (const auto& [format, sum] : report.formats)
    text += std::to_string(sum.n_tensors) + " of " + format + " (" + bytes_text(sum.bytes) + "), ";
  char time[32];
  std::snprintf(time, sizeof time, "%.1f s", seconds);
  text += bytes_text(report.bytes) + " instead of " + bytes_text(report.bytes_before) + " in " +
          std::to_string(report.files.size()) +
          (report.files.size() == 1 ? " file, " : " files, ") + time + "\n";
  if (!report.left_out.empty())
    text += "left out, as the model does not read it: " + names_text(report.left_out) + "\n";
  return text;
}

Node report_node(const QuantizeCommand& o, const QuantizeReport& report, double seconds) {
  Node out = Node::make_map(), formats = Node::make_map(), files = Node::make_list(),
       left_out = Node::make_list();
  for (const auto& [format, sum] : report.formats) {
    Node item = Node::make_map();
    item.set("tensors", Node::make_int(static_cast<int64_t>(sum.n_tensors)));
    item.set("bytes", Node::make_int(static_cast<int64_t>(sum.bytes)));
    formats.set(format, std::move(item));
  }
  for (const std::string& name : report.files) files.items().push_back(Node::make_string(name));
  for (const std::string& name : report.left_out)
    left_out.items().push_back(Node::make_string(name));
  out.set("output", Node::make_string(o.output));
  out.set("files", std::move(files));
  out.set("formats", std::move(formats));
  out.set("left_out", std::move(left_out));
  out.set("bytes", Node::make_int(static_cast<int64_t>(report.bytes)));
  out.set("bytes_before", Node::make_int(static_cast<int64_t>(report.bytes_before)));
  out.set("seconds", Node::make_float(seconds));
  return out;
}

Status run(const std::string& program, QuantizeCommand o) {
  const auto start = std::chrono::steady_clock::now();
  DVT_TRY(check_output(o));
  if (!o.weights.empty()) o.model.sets.push_back("backend.weights=" + o.weights);
  SessionOptions session_options;
  session_options.plan_only = true;
  DVT_TRY(const std::unique_ptr<Session> session, Session::open(program, o.model, session_options));
  const Settings& settings = session->settings();
  if (settings.backend.weights.empty() && settings.backend.class_weights.empty())
    return invalid("no format is asked for; give one, as --weights int4");
  Model& model = session->model();
  if (!model.checkpoint().folder()) return invalid("this model has no weights to quantise");
  std::error_code error;
  if (fs::equivalent(o.output, model.checkpoint().folder()->path(), error))
    return invalid(o.output + ": is the folder that is read");
  DVT_TRY(const Writer writer, find_writer(session->runtime()));

  DVT_TRY(const std::unique_ptr<FolderWriter> folder, FolderWriter::create(o.output));
  Progress progress;
  QuantizeOptions options;
  options.folder = folder->path();
  options.max_file_bytes = o.max_file_mib << 20;
  options.cancel = interrupt_flag();
  options.progress = [&progress](uint64_t done, uint64_t total, std::string_view what) {
    progress.update(what, done, total);
  };
  DVT_TRY(write_documents(model, settings, folder->path()));
  DVT_TRY(const QuantizeReport report, quantize(model, *writer.table, writer.self, options));
  DVT_TRY(folder->commit(o.force));
  progress.finish();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return print(o.model.json ? to_json(report_node(o, report, seconds), 2) + "\n"
                            : report_text(o, report, seconds));
}

}  // namespace

void add_quantize_command(Cli& cli) {
  auto o = std::make_shared<QuantizeCommand>();
  CLI::App* command = cli.app.add_subcommand(
      "quantize",
      "Write a model's folder with its weights in smaller formats, which starts at once");
  o->model.add_to(*command, true);
  command
      ->add_option("-o,--output", o->output, "folder to write; it must not be there, or be empty")
      ->required();
  command->add_option(
      "--weights", o->weights,
      "a format (int8, int6, int4, int4q; float32 expands what is in blocks), or one "
      "per tensor class: \"{default: int4, embed: int6}\" (backend.weights)");
  command
      ->add_option("--max-file-mib", o->max_file_mib,
                   "MiB of tensors in a file; more are spread over several")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_flag("--force", o->force, "replace a model's folder that is there");
  command->footer(
      "Examples:\n  dovetail quantize models/Qwen3-0.6B -o models/Qwen3-0.6B-int4 --weights int4\n"
      "  dovetail quantize configs/qwen3-8b.yaml -o models/Qwen3-8B-mixed --weights \"{default: "
      "int4q, embed: int6, lm_head: int6, down_proj: int6}\"\n"
      "  dovetail run models/Qwen3-0.6B-int4 \"Why is the sky blue?\"");
  command->callback([&cli, o] { cli.action = [&cli, o] { return run(cli.program, *o); }; });
}

}  // namespace dovetail::core
