// tokenize: text to ids and back, for people and for programs. train-tokenizer: a tokenizer.json
// from text files.
#include <filesystem>
#include <iostream>

#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/cli/command.hpp"
#include "core/cli/piece_json.hpp"
#include "core/cli/request_json.hpp"
#include "core/cli/session.hpp"
#include "core/config/check_value.hpp"
#include "core/config/load.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

// What configs/defaults.yaml (or DOVETAIL_SET) says; no plugin's name is written in code.
Result<std::string> default_plugin(const std::string& program) {
  const fs::path path = fs::path(program).parent_path().parent_path() / "share" / "dovetail" /
                        "configs" / "defaults.yaml";
  DVT_TRY(const Node defaults, load_config(path.string()));
  const Node* tokenizer = defaults.find("tokenizer");
  const Node* name = tokenizer ? tokenizer->find("plugin") : nullptr;
  if (!name || !name->is_string())
    return invalid(path.string() +
                   ": tokenizer.plugin is missing; it names the plugin that reads tokenizer.json");
  return name->as_string();
}

// A tokenizer alone, without the model it belongs to.
struct OpenTokenizer {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<HostScope> scope;        // of a tokenizer.json
  std::unique_ptr<Checkpoint> checkpoint;  // of one inside a model's file
  std::unique_ptr<Tokenizer> tokenizer;
};

bool has_tokenizer_json(const fs::path& where) {
  std::error_code error;
  return fs::is_directory(where, error) ? fs::exists(where / "tokenizer.json", error)
                                        : where.extension() == ".json";
}

// The document of tokenizer.json, in that file or in one of a model.
Result<const Node*> read_definition(const fs::path& where, OpenTokenizer& out) {
  const bool is_of_a_model = out.runtime->settings().model.path == where.string();
  if (is_of_a_model && !has_tokenizer_json(where)) {
    DVT_TRY(out.checkpoint, out.runtime->take_checkpoint());
    DVT_TRY(const Node* definition, out.checkpoint->document("tokenizer"));
    if (!definition)
      return bad_format(where.string() + ": has no tokenizer; tokenizer.path names one");
    return definition;
  }
  std::string file = "tokenizer.json";
  fs::path folder = where;
  std::error_code error;
  if (fs::is_regular_file(folder, error)) {
    file = folder.filename().string();
    folder = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  }
  DVT_TRY(Folder opened, Folder::open(folder));
  out.scope = std::make_unique<HostScope>(std::move(opened));
  DVT_TRY(const std::string text, out.scope->folder()->read(file));
  DVT_TRY(Node definition, parse_json(text, (folder / file).string()));
  return doc_node(out.scope->keep(std::move(definition)));
}

// `where` is a folder with tokenizer.json, that file, a model's file with a tokenizer in it or its folder, or a
// config whose checkpoint has one.
Result<OpenTokenizer> open_tokenizer(const std::string& program, const std::string& where) {
  OpenTokenizer out;
  fs::path folder = where;
  std::string plugin_name;
  Node params = Node::make_map();
  std::error_code error;
  const bool is_gguf = where.ends_with(".gguf") ||  // or a folder of nothing else
                       (fs::is_directory(where, error) && !has_tokenizer_json(where) &&
                        !fs::exists(folder / "config.json", error) && names_a_config(where));
  if (where.ends_with(".yaml") || where.ends_with(".yml") || is_gguf) {
    ModelOptions options;
    options.config = where;
    DVT_TRY(out.runtime, Runtime::open(program, options));
    const Settings& s = out.runtime->settings();
    folder = s.tokenizer.path.empty() ? s.model.path : s.tokenizer.path;
    plugin_name = s.tokenizer.plugin.name;
    params = s.tokenizer.plugin.params;
  } else {
    DVT_TRY(out.runtime, Runtime::open_plugins_only(program));
    DVT_TRY(plugin_name, default_plugin(program));
  }
  DVT_TRY(const Node* definition, read_definition(folder, out));
  DVT_TRY(LoadedPlugin * plugin, out.runtime->plugins().load("tokenizer", plugin_name));
  const auto* table = plugin->interface<dvt_tokenizer_v1>("dovetail.tokenizer/1");
  if (!table)
    return unsupported("plugin \"" + plugin_name + "\" has no interface dovetail.tokenizer/1");
  DVT_TRY(out.tokenizer, Tokenizer::open(table, plugin->self, *definition,
                                         out.checkpoint ? out.checkpoint->dir() : out.scope->dir(),
                                         std::move(params)));
  return out;
}

struct TokenizeOptions {
  std::string tokenizer;
  std::optional<std::string> text;
  bool jsonl = false, decode = false, special = false, json = false;
};

uint32_t encode_flags(bool special) {
  return DVT_ENC_ADD_SPECIAL | (special ? 0u : uint32_t{DVT_ENC_SPECIAL_LITERAL});
}

Result<bool> flag_of(const Node& line, const char* key) {
  const Node* flag = line.find(key);
  if (!flag) return false;
  if (!flag->is_bool())
    return invalid(std::string("\"") + key + "\" is " + flag->kind_name() +
                   ", expected true or false");
  return flag->as_bool();
}

Result<Node> encode_line(const Tokenizer& tokenizer, const Node& line, bool special) {
  const Node* text = line.find("text");
  if (!text || !text->is_string())
    return invalid(std::string("expected {\"text\": a string}, got ") +
                   (text ? text->kind_name() : "no \"text\"") + "; for ids to text add --decode");
  DVT_TRY(const bool special_too, flag_of(line, "special"));
  DVT_TRY(const std::vector<dvt_tok> tokens,
          tokenizer.encode(text->as_string(), {}, encode_flags(special || special_too)));
  Node ids = Node::make_list(), out = Node::make_map();
  for (const dvt_tok& t : tokens) ids.items().push_back(Node::make_int(t.id));
  out.set("ids", std::move(ids));
  return out;
}

Result<Node> decode_line(const Tokenizer& tokenizer, const Node& line) {
  const Node* list = line.find("ids");
  if (!list || !list->is_list())
    return invalid(std::string("expected {\"ids\": a list}, got ") +
                   (list ? list->kind_name() : "no \"ids\""));
  std::vector<uint32_t> ids;
  for (const Node& id : list->items()) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX)
      return invalid("ids[" + std::to_string(ids.size()) + "] is " + describe_value(id) +
                     ", expected a token id");
    if (id.as_int() >= tokenizer.n_ids())  // no text, as in the official implementation
      log_warn("tokenize", "ids[" + std::to_string(ids.size()) + "] is " + describe_value(id) +
                               ", the tokenizer has ids below " +
                               std::to_string(tokenizer.n_ids()) + "; it is left out");
    ids.push_back(static_cast<uint32_t>(id.as_int()));
  }
  DVT_TRY(const bool skip,
          flag_of(line, line.find("skip_special") ? "skip_special" : "skip_special_tokens"));
  DVT_TRY(std::string text, tokenizer.decode(ids, skip ? uint32_t{DVT_DEC_SKIP_SPECIAL} : 0u));
  Node out = Node::make_map();
  out.set("text", Node::make_string(std::move(text)));
  return out;
}

Status convert_lines(const Tokenizer& tokenizer, const TokenizeOptions& o) {
  std::string text;
  for (uint64_t n = 1; std::getline(std::cin, text); ++n) {
    if (interrupted()) return {Code::kCancelled, "interrupted"};
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = "line " + std::to_string(n) + " of standard input";
    DVT_TRY(const Node line, parse_request(text, where));
    const Result<Node> out =
        o.decode ? decode_line(tokenizer, line) : encode_line(tokenizer, line, o.special);
    if (!out) return out.status().in(where);
    DVT_TRY(print(to_json(*out) + "\n"));
  }
  return Status::ok();
}

Status tokenize(const std::string& program, const TokenizeOptions& o) {
  DVT_TRY(const OpenTokenizer open, open_tokenizer(program, o.tokenizer));
  const Tokenizer& tokenizer = *open.tokenizer;
  if (o.jsonl) return convert_lines(tokenizer, o);
  std::string text = o.text ? *o.text : std::string(std::istreambuf_iterator<char>(std::cin), {});
  if (o.decode) {
    Node ids = Node::make_list(), line = Node::make_map();
    for (size_t at = 0; (at = text.find_first_not_of(" ,\t\r\n", at)) != std::string::npos;) {
      const size_t end = std::min(text.find_first_of(" ,\t\r\n", at), text.size());
      DVT_TRY(Node id, parse_request(std::string_view(text).substr(at, end - at), "ids"));
      ids.items().push_back(std::move(id));
      at = end;
    }
    line.set("ids", std::move(ids));
    DVT_TRY(const Node out, decode_line(tokenizer, line));
    return print((o.json ? to_json(out) : out.find("text")->as_string()) + "\n");
  }
  DVT_TRY(const std::vector<dvt_tok> tokens, tokenizer.encode(text, {}, encode_flags(o.special)));
  Node list = Node::make_list();
  std::string table;
  for (const dvt_tok& t : tokens) {
    DVT_TRY(const std::string piece, tokenizer.piece(t.id));
    std::string id = std::to_string(t.id);
    id.insert(0, id.size() < 8 ? 8 - id.size() : 0, ' ');
    // Half a character shows as U+FFFD.
    const std::string quoted = to_json(Node::make_string(piece));
    table += id + "  " + quoted + "\n";
    Node entry = Node::make_map();
    entry.set("id", Node::make_int(t.id));
    set_piece(entry, piece);
    entry.set("begin", Node::make_int(static_cast<int64_t>(t.begin)));
    entry.set("end", Node::make_int(static_cast<int64_t>(t.end)));
    list.items().push_back(std::move(entry));
  }
  return print(o.json ? to_json(list) + "\n" : table);
}

struct TrainOptions {
  std::vector<std::string> files, special;
  std::string output, pattern;
  uint32_t vocab_size = 0;
  uint64_t min_frequency = 0;
  bool no_nfc = false;
};

Status train(const std::string& program, const TrainOptions& o) {
  DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open_plugins_only(program));
  DVT_TRY(const std::string name, default_plugin(program));
  DVT_TRY(LoadedPlugin * plugin, runtime->plugins().load("tokenizer", name));
  const auto* trainer = plugin->interface<dvt_tokenizer_trainer_v1>("dovetail.tokenizer_trainer/1");
  if (!trainer)
    return unsupported("plugin \"" + name +
                       "\" cannot train; it has no interface dovetail.tokenizer_trainer/1");

  HostScope scope;
  std::vector<dvt_file> files;
  for (const std::string& path : o.files) {
    DVT_TRY(std::shared_ptr<File> file, File::open(path));
    files.push_back(scope.keep(std::move(file)));
  }
  std::error_code error;
  const fs::path output = fs::is_directory(o.output, error) ? fs::path(o.output) / "tokenizer.json"
                                                            : fs::path(o.output);
  std::vector<dvt_str> special;
  for (const std::string& token : o.special) special.push_back(abi_text(token));
  dvt_train_options options{};
  options.struct_size = sizeof options;
  options.vocab_size = o.vocab_size;
  options.min_frequency = o.min_frequency;
  options.pattern = abi_text(o.pattern);
  options.normalizer = abi_text(o.no_nfc ? "none" : "nfc");
  options.special_tokens = special.data();
  options.n_special_tokens = special.size();

  std::string definition;
  dvt_sink sink{};
  sink.struct_size = sizeof sink;
  sink.self = &definition;
  sink.write = [](void* self, dvt_call*, dvt_bytes part) noexcept -> dvt_code {
    try {
      static_cast<std::string*>(self)->append(reinterpret_cast<const char*>(part.p), part.n);
      return DVT_OK;
    } catch (const std::bad_alloc&) {
      return DVT_ENOMEM;
    }
  };
  Progress progress;
  CallFrame call(interrupt_flag(),
                 [&progress](uint64_t done, uint64_t total, std::string_view what) {
                   progress.update(what, done, total);
                 });
  DVT_TRY(
      call.check(trainer->train(plugin->self, call, &options, files.data(), files.size(), &sink)));
  progress.finish();
  DVT_TRY(write_file(output, definition));
  return print(output.string() + ": " + bytes_text(definition.size()) + "\n");
}

}  // namespace

void add_text_commands(Cli& cli) {
  auto o = std::make_shared<TokenizeOptions>();
  CLI::App* command = cli.app.add_subcommand(
      "tokenize", "Show a text's token ids and pieces, or turn ids into text");
  command->add_option(
      "text", o->text,
      "the text, taken as it is (\\n stays two characters); absent: standard input");
  command
      ->add_option(
          "--tokenizer", o->tokenizer,
          "folder with tokenizer.json (a checkpoint's), that file, a .gguf file, or a YAML config")
      ->required();
  command->add_flag("--special", o->special,
                    "special tokens spelled out in the text count as such");
  command->add_flag("--decode", o->decode, "ids to text");
  command->add_flag("--jsonl", o->jsonl,
                    "read JSON lines with \"text\" (and \"special\"), write lines with \"ids\"; "
                    "with --decode the other way round");
  command->add_flag("--json", o->json, "print JSON instead of a table");
  command->footer(
      "Examples:\n  dovetail tokenize --tokenizer models/Qwen3-0.6B \"Hello world\"\n"
      "  echo '{\"text\": \"Hello\"}' | dovetail tokenize --tokenizer models/Qwen3-0.6B --jsonl\n"
      "  dovetail tokenize --tokenizer models/Qwen3-0.6B --decode 9707,1879");
  command->callback([&cli, o] { cli.action = [&cli, o] { return tokenize(cli.program, *o); }; });

  auto t = std::make_shared<TrainOptions>();
  CLI::App* trainer = cli.app.add_subcommand(
      "train-tokenizer", "Make a byte-level BPE tokenizer.json from text files");
  trainer->add_option("files", t->files, "text files in UTF-8")->required();
  trainer->add_option("-o,--output", t->output, "tokenizer.json to write, or a folder for it")
      ->required();
  trainer
      ->add_option("--vocab-size", t->vocab_size,
                   "ids at most, special tokens and the 256 bytes included")
      ->required()
      ->check(CLI::PositiveNumber);
  trainer->add_option("--min-frequency", t->min_frequency, "pairs rarer than this are not merged")
      ->default_val(2)
      ->check(integer_up_to(INT64_MAX));
  trainer
      ->add_option("--special", t->special, "a special token; repeat for more, ids in this order")
      ->allow_extra_args(false);
  trainer
      ->add_option("--pattern", t->pattern,
                   "how text is split before merging: qwen2, gpt2 or a regular expression")
      ->default_val("qwen2");
  trainer->add_flag("--no-nfc", t->no_nfc, "do not normalise to NFC");
  trainer->footer(
      "Example:\n  dovetail train-tokenizer book.txt -o tokenizer.json --vocab-size 4096 --special "
      "\"<|endoftext|>\"");
  trainer->callback([&cli, t] { cli.action = [&cli, t] { return train(cli.program, *t); }; });
}

}  // namespace dovetail::core
