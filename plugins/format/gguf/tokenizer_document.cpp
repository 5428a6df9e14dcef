#include "tokenizer_document.hpp"

#include <unordered_set>

#include "json_text.hpp"
#include "pre_tokenizers.hpp"
#include "sentencepiece_merges.hpp"

namespace dovetail::gguf {
namespace {

constexpr std::string_view kPre = "tokenizer.ggml.pre", kModel = "tokenizer.ggml.model";
constexpr std::string_view kWordBegin = "\xe2\x96\x81";  // U+2581, the space of SentencePiece

bool is_sentencepiece(const Metadata& metadata) {
  const auto model = metadata.string(kModel);
  if (model == "llama") return true;
  if (model == "gpt2") return false;
  throw Error(
      metadata.file().name() + ": " +
          (model ? "key \"tokenizer.ggml.model\" is " + quote(*model)
                 : "has no key \"tokenizer.ggml.model\"") +
          ", expected gpt2 or llama; give tokenizer.path a folder with the model's tokenizer.json",
      DVT_EUNSUPPORTED);
}

// Null where the file does not say.
const PreTokenizer* pre_tokenizer_of(const Metadata& metadata) {
  const auto name = metadata.string(kPre);
  if (!name || *name == "default") return nullptr;
  const PreTokenizer* const found = find_pre_tokenizer(*name);
  if (!found)
    throw Error(metadata.file().name() + ": key \"tokenizer.ggml.pre\" is " + quote(*name) +
                    ", expected " + std::string(known_pre_tokenizers()) +
                    "; give tokenizer.path a folder with the model's tokenizer.json",
                DVT_EUNSUPPORTED);
  return found;
}

std::string with_word_begins(std::string_view token) {
  std::string out;
  for (const char c : token)
    if (c == ' ')
      out += kWordBegin;
    else
      out += c;
  return out;
}

// Cut out of the text before anything else, so listed among the added tokens.
bool is_added(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown ||
         type == TokenType::kUserDefined;
}

void write_added_tokens(const Vocabulary& v, bool is_spm, JsonText& out) {
  out.key("added_tokens").begin_list();
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    if (!is_added(v.types[id]) || v.tokens[id].empty() || !seen.insert(v.tokens[id]).second)
      continue;
    // Runs of spaces: the text's spaces have become U+2581 when they are looked for.
    if (is_spm && v.tokens[id].find(' ') != std::string_view::npos) continue;
    out.begin_map().key("id").integer(static_cast<int64_t>(id)).key("content").string(v.tokens[id]);
    for (const char* no : {"single_word", "lstrip", "rstrip", "normalized"})
      out.key(no).flag(false);
    out.key("special").flag(v.types[id] != TokenType::kUserDefined).end_map();
  }
  out.end_list();
}

// The first of tokens that are spelled alike has the spelling.
void write_vocabulary(const Vocabulary& v, bool is_spm, const Host& host, const Metadata& metadata,
                      JsonText& out) {
  out.key("vocab").begin_map();
  std::unordered_set<std::string> seen;
  size_t n_repeated = 0;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    if (v.types[id] == TokenType::kUnused || v.tokens[id].empty()) continue;
    const bool has_spaces = is_spm && v.types[id] == TokenType::kUserDefined;
    std::string token = has_spaces ? with_word_begins(v.tokens[id]) : std::string(v.tokens[id]);
    const auto [at, is_new] = seen.insert(std::move(token));
    n_repeated += is_new ? 0 : 1;
    if (is_new) out.key(*at).integer(static_cast<int64_t>(id));
  }
  out.end_map();
  if (n_repeated > 0)
    host.log(DVT_LOG_WARN, "",
             metadata.file().name() + ": " + std::to_string(n_repeated) +
                 " tokens are spelled like one before them and are not used");
}

// [ByteLevel,] then bos and eos about the text.
void write_post_processor(const Metadata& metadata, const Vocabulary& v, bool is_spm,
                          JsonText& out) {
  const auto bos_id = metadata.integer("tokenizer.ggml.bos_token_id"),
             eos_id = metadata.integer("tokenizer.ggml.eos_token_id");
  const std::string_view bos = adds_bos(metadata) ? v.token(bos_id) : std::string_view(),
                         eos = adds_eos(metadata) ? v.token(eos_id) : std::string_view();
  const auto byte_level = [&] {
    out.begin_map().key("type").string("ByteLevel");
    for (const char* no : {"add_prefix_space", "trim_offsets", "use_regex"})
      out.key(no).flag(false);
    out.end_map();
  };
  out.key("post_processor");
  if (bos.empty() && eos.empty()) {
    if (is_spm)
      out.null();
    else
      byte_level();
    return;
  }
  const auto token = [&](std::string_view name) {
    if (!name.empty())
      out.begin_map()
          .key("SpecialToken")
          .begin_map()
          .key("id")
          .string(name)
          .key("type_id")
          .integer(0)
          .end_map()
          .end_map();
  };
  const auto text = [&](const char* id) {
    out.begin_map()
        .key("Sequence")
        .begin_map()
        .key("id")
        .string(id)
        .key("type_id")
        .integer(0)
        .end_map()
        .end_map();
  };
  if (!is_spm) {
    out.begin_map().key("type").string("Sequence").key("processors").begin_list();
    byte_level();
  }
  out.begin_map().key("type").string("TemplateProcessing");
  out.key("single").begin_list();
  token(bos), text("A"), token(eos);
  out.end_list().key("pair").begin_list();
  token(bos), text("A"), token(eos), token(bos), text("B"), token(eos);
  out.end_list().key("special_tokens").begin_map();
  for (const auto& [name, id] :
       {std::pair(bos, bos_id), std::pair(eos == bos ? std::string_view() : eos, eos_id)})
    if (!name.empty()) {
      out.key(name)
          .begin_map()
          .key("id")
          .string(name)
          .key("ids")
          .begin_list()
          .integer(*id)
          .end_list();
      out.key("tokens").begin_list().string(name).end_list().end_map();
    }
  out.end_map().end_map();
  if (!is_spm) out.end_list().end_map();
}

// ---------------------------------------------------------------- byte-level BPE

void write_pre_tokenizer(const PreTokenizer& pre, JsonText& out) {
  out.key("pre_tokenizer")
      .begin_map()
      .key("type")
      .string("Sequence")
      .key("pretokenizers")
      .begin_list();
  if (pre.splits_digits)
    out.begin_map().key("type").string("Digits").key("individual_digits").flag(true).end_map();
  for (const std::string_view pattern : pre.patterns)
    if (!pattern.empty()) {
      out.begin_map()
          .key("type")
          .string("Split")
          .key("pattern")
          .begin_map()
          .key("Regex")
          .string(pattern)
          .end_map();
      out.key("behavior").string("Isolated").key("invert").flag(false).end_map();
    }
  out.begin_map().key("type").string("ByteLevel").key("add_prefix_space").flag(false);
  out.key("trim_offsets")
      .flag(false)
      .key("use_regex")
      .flag(pre.is_gpt2)
      .end_map()
      .end_list()
      .end_map();
}

// "a b": a token may begin with a space of its own, so the first character is never the separator.
void write_merges(const Metadata& metadata, JsonText& out) {
  const Value* const merges = metadata.array("tokenizer.ggml.merges", ValueType::kString);
  if (!merges)
    refuse(metadata.file(),
           "has no key \"tokenizer.ggml.merges\", which tokenizer.ggml.model gpt2 needs");
  out.key("merges").begin_list();
  Strings left(*merges);
  for (uint64_t i = 0; i < left.size(); ++i) {
    const std::string_view merge = left.next();
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size())
      refuse(metadata.file(), "tokenizer.ggml.merges[" + std::to_string(i) + "] is " +
                                  quote(merge) + ", expected two tokens with a space between");
    out.begin_list().string(merge.substr(0, space)).string(merge.substr(space + 1)).end_list();
  }
  out.end_list();
}

void write_byte_level(const Metadata& metadata, const Vocabulary& v, const Host& host,
                      JsonText& out) {
  static constexpr PreTokenizer kGuess{.is_gpt2 = true};
  const PreTokenizer* pre = pre_tokenizer_of(metadata);
  if (!pre) {
    host.log(DVT_LOG_WARN, "",
             metadata.file().name() +
                 ": does not say how text is cut into tokens (tokenizer.ggml.pre); it is cut as "
                 "for gpt-2, which may "
                 "cost quality");
    pre = &kGuess;
  }
  out.key("normalizer");
  if (pre->nfc)
    out.begin_map().key("type").string("NFC").end_map();
  else
    out.null();
  write_pre_tokenizer(*pre, out);
  write_post_processor(metadata, v, /*is_spm=*/false, out);
  out.key("decoder").begin_map().key("type").string("ByteLevel");
  for (const char* no : {"add_prefix_space", "trim_offsets", "use_regex"}) out.key(no).flag(false);
  out.end_map();
  out.key("model").begin_map().key("type").string("BPE");
  for (const char* none :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
    out.key(none).null();
  out.key("fuse_unk")
      .flag(false)
      .key("byte_fallback")
      .flag(false)
      .key("ignore_merges")
      .flag(pre->ignores_merges);
  write_vocabulary(v, /*is_spm=*/false, host, metadata, out);
  write_merges(metadata, out);
  out.end_map();
}

// ---------------------------------------------------------------- SentencePiece BPE

void write_replace(std::string_view from, std::string_view to, JsonText& out) {
  out.begin_map()
      .key("type")
      .string("Replace")
      .key("pattern")
      .begin_map()
      .key("String")
      .string(from)
      .end_map();
  out.key("content").string(to).end_map();
}

void write_sentencepiece(const Metadata& metadata, const Vocabulary& v, const Host& host,
                         JsonText& out) {
  const Value* const scores = metadata.array("tokenizer.ggml.scores", ValueType::kF32);
  if (!scores || scores->n != v.tokens.size())
    refuse(metadata.file(), "has " + std::to_string(scores ? scores->n : 0) +
                                " tokenizer.ggml.scores, expected " +
                                std::to_string(v.tokens.size()) + ", one for each token");
  const bool adds_space = metadata.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  out.key("normalizer").begin_map().key("type").string("Sequence").key("normalizers").begin_list();
  if (adds_space)
    out.begin_map().key("type").string("Prepend").key("prepend").string(kWordBegin).end_map();
  write_replace(" ", kWordBegin, out);
  out.end_list().end_map();
  out.key("pre_tokenizer").null();
  write_post_processor(metadata, v, /*is_spm=*/true, out);
  out.key("decoder").begin_map().key("type").string("Sequence").key("decoders").begin_list();
  write_replace(kWordBegin, " ", out);
  out.begin_map().key("type").string("ByteFallback").end_map();
  out.begin_map().key("type").string("Fuse").end_map();
  if (adds_space) {
    out.begin_map().key("type").string("Strip").key("content").string(" ");
    out.key("start").integer(1).key("stop").integer(0).end_map();
  }
  out.end_list().end_map();

  std::vector<std::string> mergeable;  // what pieces of text can be
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const bool is_text =
        v.types[id] == TokenType::kNormal || v.types[id] == TokenType::kUserDefined;
    mergeable.push_back(is_text ? with_word_begins(v.tokens[id]) : std::string());
  }
  out.key("model").begin_map().key("type").string("BPE").key("dropout").null();
  out.key("unk_token");
  if (const std::string_view unk = v.token(metadata.integer("tokenizer.ggml.unknown_token_id"));
      !unk.empty())
    out.string(unk);
  else
    out.null();
  out.key("continuing_subword_prefix").null().key("end_of_word_suffix").null();
  out.key("fuse_unk").flag(true).key("byte_fallback").flag(true).key("ignore_merges").flag(false);
  write_vocabulary(v, /*is_spm=*/true, host, metadata, out);
  out.key("merges").begin_list();
  for (const Merge& m : merges_by_score(metadata, mergeable, *scores))
    out.begin_list().string(m.left).string(m.right).end_list();
  out.end_list().end_map();
}

}  // namespace

std::string_view Vocabulary::token(std::optional<int64_t> id) const {
  const bool is_one = id && *id >= 0 && static_cast<uint64_t>(*id) < tokens.size();
  return is_one ? tokens[static_cast<size_t>(*id)] : std::string_view();
}

Vocabulary read_vocabulary(const Metadata& metadata) {
  Vocabulary v;
  const Value* const tokens = metadata.array("tokenizer.ggml.tokens", ValueType::kString);
  if (!tokens) return v;
  Strings left(*tokens);
  for (uint64_t i = 0; i < left.size(); ++i) v.tokens.push_back(left.next());
  v.types.assign(v.tokens.size(), TokenType::kNormal);
  const Value* const types = metadata.find("tokenizer.ggml.token_type");
  if (!types) return v;
  if (types->type != ValueType::kArray || types->n != tokens->n)
    metadata.refuse_value("tokenizer.ggml.token_type", "an array of " + std::to_string(tokens->n) +
                                                           " whole numbers, one for each token");
  for (uint64_t i = 0; i < types->n; ++i) {
    const std::optional<int64_t> type = integer_at(*types, i);
    if (!type) metadata.refuse_value("tokenizer.ggml.token_type", "an array of whole numbers");
    if (*type >= 1 && *type <= 6)
      v.types[i] = static_cast<TokenType>(*type);  // others: as normal ones
  }
  return v;
}

bool adds_bos(const Metadata& metadata) {
  if (const auto said = metadata.flag("tokenizer.ggml.add_bos_token")) return *said;
  if (metadata.string(kModel) == "llama") return true;
  const PreTokenizer* const pre = find_pre_tokenizer(metadata.string(kPre).value_or(""));
  return pre && pre->adds_bos;
}

bool adds_eos(const Metadata& metadata) {
  return metadata.flag("tokenizer.ggml.add_eos_token").value_or(false);
}

std::string tokenizer_json(const Metadata& metadata, const Host& host) {
  if (const auto whole = metadata.string("tokenizer.huggingface.json")) return std::string(*whole);
  const Vocabulary v = read_vocabulary(metadata);
  if (v.tokens.empty()) return {};
  const bool is_spm = is_sentencepiece(metadata);
  JsonText out;
  out.begin_map().key("version").string("1.0").key("truncation").null().key("padding").null();
  write_added_tokens(v, is_spm, out);
  if (is_spm)
    write_sentencepiece(metadata, v, host, out);
  else
    write_byte_level(metadata, v, host, out);
  return out.end_map().text();
}

}  // namespace dovetail::gguf
