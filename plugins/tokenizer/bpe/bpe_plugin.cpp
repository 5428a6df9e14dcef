// tokenizer/bpe: Hugging Face's tokenizer.json with all its models, and the trainer of byte-level BPE.
//
// This file is the edge to the host; the tokenizer itself starts in tokenizer.hpp.
#include <dovetail/tokenizer.hpp>

#include <algorithm>
#include <memory>

#include "doc_source.hpp"
#include "tokenizer.hpp"
#include "trainer.hpp"

namespace dovetail::bpe {
namespace {

// Runs fn() with the tokenizer's own errors turned into the interface's.
template <class Fn>
auto translated(const std::string& prefix, Fn&& fn) {
  try {
    return fn();
  } catch (const Error& e) {
    const dvt_code code = e.kind() == Error::Kind::kInvalid       ? DVT_EINVAL
                          : e.kind() == Error::Kind::kUnsupported ? DVT_EUNSUPPORTED
                                                                  : DVT_EFORMAT;
    throw dovetail::Error(prefix + e.what(), code);
  }
}

class BpeTokenizer {
 public:
  explicit BpeTokenizer(const TokenizerOpen& in) {
    const DocSource source(in.host);
    translated(file_of(in.definition) + ": ", [&] {
      tokenizer_ = std::make_unique<Tokenizer>(JsonView(&source, in.definition.handle()));
    });
    const std::vector<std::string>& warnings = tokenizer_->added_tokens().warnings();
    constexpr size_t kShown = 3;  // a file that is wrong in one is mostly wrong in many
    for (size_t i = 0; i < std::min(kShown, warnings.size()); ++i) {
      const size_t n_more = i + 1 == kShown ? warnings.size() - kShown : 0;
      in.host.log(
          DVT_LOG_WARN, "tokenizer/bpe",
          warnings[i] + (n_more > 0 ? "; so have " + std::to_string(n_more) + " more" : ""));
    }
  }

  dvt_tokenizer_info info() const {
    const Decoder& d = tokenizer_->decoder();
    return {sizeof(dvt_tokenizer_info), 0, d.n_ids(),
            static_cast<uint32_t>(tokenizer_->added_tokens().all().size()), d.max_step_bytes()};
  }

  void encode(std::string_view text, std::span<const dvt_range> literal, uint32_t flags,
              std::vector<dvt_tok>& out) const {
    std::vector<ByteRange> ranges;
    for (const dvt_range& r : literal) ranges.push_back({r.begin, r.end});
    EncodeOptions options;
    options.matching = (flags & DVT_ENC_ADDED_LITERAL)     ? AddedMatching::kNone
                       : (flags & DVT_ENC_SPECIAL_LITERAL) ? AddedMatching::kNotSpecial
                                                           : AddedMatching::kAll;
    options.literal = ranges;
    options.add_special = (flags & DVT_ENC_ADD_SPECIAL) != 0;
    options.strict_utf8 = (flags & DVT_ENC_STRICT_UTF8) != 0;
    translated("", [&] { tokenizer_->encode(text, options, &out); });
  }

  std::string decode(std::span<const uint32_t> ids, uint32_t flags) const {
    return tokenizer_->decoder().decode(ids, (flags & DVT_DEC_SKIP_SPECIAL) != 0);
  }

  std::string piece(uint32_t id, uint32_t& flags) const {
    const Decoder& d = tokenizer_->decoder();
    if (!d.has(id)) {
      throw dovetail::Error("no token has id " + std::to_string(id) + ", ids go up to " +
                            std::to_string(int64_t{d.n_ids()} - 1));
    }
    flags = (d.is_added(id) ? kTokenAdded : 0) | (d.is_special(id) ? kTokenSpecial : 0);
    return d.piece(id);
  }

  uint32_t find(std::string_view content) const {
    const uint32_t id = tokenizer_->find(content);
    if (id == kNoId) throw dovetail::Error("no token is exactly " + quote(content));
    return id;
  }

  std::array<uint8_t, 32> identity() const { return tokenizer_->identity(); }

  class Stream {
   public:
    Stream(const BpeTokenizer& t, uint32_t flags)
        : stream_(t.tokenizer_->decoder(), (flags & DVT_DEC_SKIP_SPECIAL) != 0) {}
    std::string step(uint32_t id) { return stream_.step(id); }
    std::string flush() { return stream_.flush(); }

   private:
    DecodeStream stream_;
  };

 private:
  // "tokenizer.json" of "tokenizer.json:1:1": the messages name the place inside by its path.
  static std::string file_of(const Doc& definition) {
    std::string where = definition.where();
    for (int i = 0; i < 2; ++i) where.resize(std::min(where.rfind(':'), where.size()));
    return where.empty() ? "tokenizer.json" : where;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

// ---- the trainer

TrainOptions train_options(const dvt_train_options& in) {
  TrainOptions options;
  options.vocab_size = in.vocab_size;
  options.min_frequency = in.min_frequency;
  if (in.pattern.n > 0) options.pattern = to_view(in.pattern);
  const std::string_view normalizer = to_view(in.normalizer);
  if (!normalizer.empty() && normalizer != "nfc" && normalizer != "none") {
    throw dovetail::Error("the normalizer is " + quote(normalizer) + ", expected nfc or none");
  }
  options.nfc = normalizer != "none";
  for (uint64_t i = 0; i < in.n_special_tokens; ++i) {
    options.special_tokens.emplace_back(to_view(in.special_tokens[i]));
  }
  const uint64_t least = 256 + in.n_special_tokens;
  if (options.vocab_size < least || options.vocab_size > kMaxIds) {
    throw dovetail::Error("vocab_size is " + std::to_string(options.vocab_size) + ", expected " +
                          std::to_string(least) + " (256 bytes and the special tokens) to " +
                          std::to_string(kMaxIds));
  }
  return options;
}

void feed_file(const dvt_host_v1& host, const Call& call, dvt_file file, Trainer* trainer) {
  constexpr uint64_t kLinesPerCheck = 4096;
  uint64_t size = 0;
  call.check(host.file_size(host.self, file, &size));
  std::string text(size, '\0');
  call.check(host.file_read(host.self, call.frame(), file, 0, text.data(), size));
  std::string_view left = text;
  while (!left.empty()) {
    uint64_t end = 0;
    for (uint64_t i = 0; i < kLinesPerCheck && end != left.size(); ++i) {
      const size_t newline = left.find('\n', end);
      end = newline == std::string_view::npos ? left.size() : newline + 1;
    }
    trainer->feed_lines(left.substr(0, end));
    left.remove_prefix(end);
    call.check_cancelled();
    call.progress(size - left.size(), size, "bytes read");
  }
}

dvt_code train(void* plugin, dvt_call* frame, const dvt_train_options* in, const dvt_file* files,
               uint64_t n_files, const dvt_sink* out) noexcept {
  return guard(frame, [&] {
    translated("", [&] {
      const dvt_host_v1& host = *host_of(plugin).table();
      const Call call(frame);
      Trainer trainer(train_options(*in));
      for (uint64_t i = 0; i < n_files; ++i) feed_file(host, call, files[i], &trainer);
      const auto trained = trainer.train([&](uint64_t done, uint64_t total) {
        call.progress(done, total, "tokens");
        return !call.cancelled();
      });
      if (!trained) throw dovetail::Error("cancelled", DVT_ECANCELLED);
      const std::string json = to_tokenizer_json(*trained, trainer.options());
      call.check(out->write(out->self, frame, {json.data(), json.size()}));
    });
  });
}

constexpr dvt_tokenizer_trainer_v1 kTrainer = {sizeof(dvt_tokenizer_trainer_v1), 0, train};

const void* find_interface(std::string_view name) {
  if (name == "dovetail.tokenizer/1") return &TokenizerTable<BpeTokenizer>::table;
  if (name == "dovetail.tokenizer_trainer/1") return &kTrainer;
  return nullptr;
}

}  // namespace
}  // namespace dovetail::bpe

DVT_EXPORT_TOKENIZER(dovetail::bpe::BpeTokenizer,
                     ("dovetail.tokenizer/1", "dovetail.tokenizer_trainer/1"), ("tokenizer.json"),
                     dovetail::bpe::find_interface)
