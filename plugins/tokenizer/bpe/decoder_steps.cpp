#include "decoder_steps.hpp"

#include <algorithm>

#include "byte_fallback.hpp"
#include "byte_symbols.hpp"
#include "error.hpp"
#include "regex.hpp"
#include "repair_utf8.hpp"
#include "replacer.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

using State = DecoderStep::State;
using Next = DecoderStep::Next;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxSteps = 256;
// Of what a token may become: a stream has room for it.
constexpr uint64_t kMaxTokenBytes = uint64_t{64} << 20;
// A longer run of byte tokens is decided in parts, which bounds what a stream holds back.
constexpr size_t kMaxByteRun = 4096;

void replace_all(std::string* text, std::string_view pattern, std::string_view by) {
  if (pattern.empty()) return;
  size_t pos = text->find(pattern);
  if (pos == std::string::npos) return;
  std::string out;
  size_t done = 0;
  for (; pos != std::string::npos; pos = text->find(pattern, done)) {
    out.append(*text, done, pos - done).append(by);
    done = pos + pattern.size();
  }
  *text = out.append(*text, done);
}

// The clean-up that WordPiece and CTC may ask for, in this order.
void clean_up(std::string* text) {
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kPairs) replace_all(text, from, to);
}

void put_whole(Next* next, std::string_view text) {
  next->put({text, true, true});
}

// ---- steps for which tokens come whole

class WholeTokenStep : public DecoderStep {
 public:
  struct Count : State {
    uint64_t n = 0;    // tokens before this one
    std::string held;  // what the step keeps of tokens before
    std::unique_ptr<RegexScratch> regex;
  };
  std::unique_ptr<State> begin() const override { return std::make_unique<Count>(); }
  void feed(State* state, const TokenPart& part, Next* next) const final {
    auto* count = static_cast<Count*>(state);
    feed_token(count, part.text, next);
    ++count->n;
  }

 private:
  virtual void feed_token(Count* count, std::string_view token, Next* next) const = 0;
};

// Without a decoder: one space between tokens.
class SpacedStep : public WholeTokenStep {
  uint64_t max_bytes(uint64_t n) const override { return n + 1; }
  void feed_token(Count* count, std::string_view token, Next* next) const override {
    put_whole(next, count->n == 0 ? std::string(token) : " " + std::string(token));
  }
};

class ReplaceStep : public WholeTokenStep {
 public:
  explicit ReplaceStep(Replacer replacer) : replacer_(std::move(replacer)) {}
  uint64_t max_bytes(uint64_t n) const override { return n + (n + 1) * replacer_.content().size(); }

 private:
  void feed_token(Count* count, std::string_view token, Next* next) const override {
    if (count->regex == nullptr && !replacer_.is_literal()) {
      count->regex = std::make_unique<RegexScratch>();
    }
    Layer layer;
    put_whole(next, replacer_.rewrite(token, count->regex.get(), &layer) ? layer.text : token);
  }
  Replacer replacer_;
};

class WordPieceStep : public WholeTokenStep {
 public:
  WordPieceStep(std::string_view prefix, bool cleans) : prefix_(prefix), cleans_(cleans) {}
  uint64_t max_bytes(uint64_t n) const override { return n + 1; }

 private:
  void feed_token(Count* count, std::string_view token, Next* next) const override {
    std::string text(token);
    if (count->n > 0) {
      if (text.starts_with(prefix_)) {
        text.erase(0, prefix_.size());
      } else {
        text.insert(0, " ");
      }
    }
    if (cleans_) clean_up(&text);
    put_whole(next, text);
  }
  std::string prefix_;
  bool cleans_;
};

// The suffix becomes a space, but in the last token nothing; so each token waits for the next.
class SuffixStep : public WholeTokenStep {
 public:
  explicit SuffixStep(std::string_view suffix) : suffix_(suffix) {}
  uint64_t max_bytes(uint64_t n) const override { return 2 * n; }
  void finish(State* state, Next* next) const override {
    auto* count = static_cast<Count*>(state);
    if (count->n > 0) pass_on(count, "", next);
  }

 private:
  void feed_token(Count* count, std::string_view token, Next* next) const override {
    if (count->n > 0) pass_on(count, " ", next);
    count->held = token;
  }
  void pass_on(Count* count, std::string_view by, Next* next) const {
    replace_all(&count->held, suffix_, by);
    put_whole(next, count->held);
  }
  std::string suffix_;
};

class CtcStep : public WholeTokenStep {
 public:
  CtcStep(std::string_view pad, std::string_view delimiter, bool cleans)
      : pad_(pad), delimiter_(delimiter), cleans_(cleans) {}
  uint64_t max_bytes(uint64_t n) const override { return 2 * n + 1; }

 private:
  void feed_token(Count* count, std::string_view token, Next* next) const override {
    if (count->n > 0 && count->held == token) return;
    count->held = token;
    std::string text(token);
    replace_all(&text, pad_, "");
    if (cleans_) {
      clean_up(&text);
      replace_all(&text, delimiter_, " ");
    }
    if (!text.empty()) put_whole(next, text);
  }
  std::string pad_, delimiter_;
  bool cleans_;
};

// Runs of <0xHH>: their bytes if those are valid, else one U+FFFD for each.
class ByteFallbackStep : public WholeTokenStep {
 public:
  uint64_t max_bytes(uint64_t n) const override {
    return n + kMaxByteRun * kReplacementChar.size();
  }
  void finish(State* state, Next* next) const override {
    end_run(&static_cast<Count*>(state)->held, next);
  }

 private:
  void feed_token(Count* count, std::string_view token, Next* next) const override {
    const int byte = byte_of_token(token);
    if (byte < 0) {
      end_run(&count->held, next);
      return put_whole(next, token);
    }
    count->held.push_back(static_cast<char>(byte));
    if (count->held.size() == kMaxByteRun) end_part_of_run(&count->held, next);
  }
  static void end_run(std::string* run, Next* next) {
    if (run->empty()) return;
    if (valid_utf8_prefix(*run) == run->size()) {
      put_whole(next, *run);
    } else {
      for (size_t i = 0; i < run->size(); ++i) put_whole(next, kReplacementChar);
    }
    run->clear();
  }
  static void end_part_of_run(std::string* run, Next* next) {
    const size_t valid = valid_utf8_prefix(*run);
    const bool is_cut = valid < run->size() && next_utf8(*run, valid).kind == Utf8Step::Kind::kCut;
    if (!is_cut) return end_run(run, next);
    put_whole(next, std::string_view(*run).substr(0, valid));
    run->erase(0, valid);
  }
};

// ---- steps that also take tokens in parts

// Replacement characters become spaces; in the first token they vanish.
class MetaspaceStep : public DecoderStep {
 public:
  MetaspaceStep(std::string_view replacement, bool strips_first)
      : replacement_(replacement), strips_first_(strips_first) {}
  struct First : State {
    bool is_first = true;
  };
  std::unique_ptr<State> begin() const override { return std::make_unique<First>(); }
  void feed(State* state, const TokenPart& part, Next* next) const override {
    auto* first = static_cast<First*>(state);
    std::string text(part.text);  // parts end between characters, so none holds half a replacement
    replace_all(&text, replacement_, first->is_first && strips_first_ ? "" : " ");
    next->put({text, part.starts, part.ends});
    if (part.ends) first->is_first = false;
  }
  uint64_t max_bytes(uint64_t n) const override { return n; }

 private:
  std::string replacement_;
  bool strips_first_;
};

// All tokens become one.
class FuseStep : public DecoderStep {
 public:
  struct Begun : State {
    bool has_begun = false;
  };
  std::unique_ptr<State> begin() const override { return std::make_unique<Begun>(); }
  void feed(State* state, const TokenPart& part, Next* next) const override {
    auto* begun = static_cast<Begun*>(state);
    next->put({part.text, !begun->has_begun, false});
    begun->has_begun = true;
  }
  void finish(State* state, Next* next) const override {
    next->put({"", !static_cast<Begun*>(state)->has_begun, true});
  }
  uint64_t max_bytes(uint64_t n) const override { return n; }
};

// Byte symbols back to bytes; the bytes of all tokens are one text, repaired where it is broken.
class ByteLevelStep : public DecoderStep {
 public:
  struct Tail : State {
    std::string bytes;
    bool has_begun = false;
  };
  std::unique_ptr<State> begin() const override { return std::make_unique<Tail>(); }
  void feed(State* state, const TokenPart& part, Next* next) const override {
    auto* tail = static_cast<Tail*>(state);
    if (!append_bytes(part.text, &tail->bytes)) tail->bytes.append(part.text);
    std::string out;
    const size_t cut = append_repaired(tail->bytes, &out);
    tail->bytes.erase(0, tail->bytes.size() - cut);
    put(tail, out, false, next);
  }
  void finish(State* state, Next* next) const override {
    auto* tail = static_cast<Tail*>(state);
    put(tail, tail->bytes.empty() ? std::string_view() : kReplacementChar, true, next);
  }
  // Three held bytes and those of the token may each become a U+FFFD.
  uint64_t max_bytes(uint64_t n) const override { return (n + 3) * kReplacementChar.size(); }

 private:
  static void put(Tail* tail, std::string_view text, bool ends, Next* next) {
    next->put({text, !tail->has_begun, ends});
    tail->has_begun = true;
  }
};

// Up to `start` copies of a character off the front of each token, and up to `stop` off its end.
class StripStep : public DecoderStep {
 public:
  StripStep(std::string_view content, uint64_t start, uint64_t stop)
      : content_(content), start_(start), stop_(stop) {}
  struct Place : State {
    uint64_t n_stripped = 0;
    bool at_front = true;
    bool has_begun = false;  // something of this token was passed on
    std::string held;        // copies at the end that may yet be the token's last
  };
  std::unique_ptr<State> begin() const override { return std::make_unique<Place>(); }
  void feed(State* state, const TokenPart& part, Next* next) const override {
    auto* place = static_cast<Place*>(state);
    if (part.starts) *place = Place();
    std::string text = place->held + std::string(part.text);
    if (place->held.empty() && place->at_front) strip_front(place, &text);
    // The copies at the end: all but the last `stop` are sure to stay.
    size_t tail = text.size();
    for (uint64_t n = 0; n < stop_ && std::string_view(text).substr(0, tail).ends_with(content_);
         ++n) {
      tail -= content_.size();
    }
    place->held = part.ends ? "" : text.substr(tail);
    next->put({std::string_view(text).substr(0, tail), !place->has_begun, part.ends});
    place->has_begun = true;
  }
  uint64_t max_bytes(uint64_t n) const override { return n + stop_ * content_.size(); }

 private:
  void strip_front(Place* place, std::string* text) const {
    size_t begin = 0;
    while (place->n_stripped < start_ &&
           std::string_view(*text).substr(begin).starts_with(content_)) {
      begin += content_.size();
      ++place->n_stripped;
    }
    if (begin < text->size()) place->at_front = false;
    text->erase(0, begin);
  }
  std::string content_;
  uint64_t start_, stop_;
};

std::unique_ptr<DecoderStep> read_strip(const JsonView& section, const std::string& path) {
  constexpr int64_t kMaxCopies = 4096;
  const auto count = [&](const char* key) {
    const int64_t n = section.find(key).is_null() ? 0 : section.get_int(key, path);
    if (n < 0 || n > kMaxCopies) {
      fail_format(path + "." + key + " is " + std::to_string(n) + ", expected 0 to " +
                  std::to_string(kMaxCopies));
    }
    return static_cast<uint64_t>(n);
  };
  const std::string_view content = section.get_string("content", path);
  if (content.empty()) fail_format(path + ".content is empty, expected one character");
  return std::make_unique<StripStep>(content, count("start"), count("stop"));
}

std::unique_ptr<DecoderStep> read_metaspace(const JsonView& section, const std::string& path) {
  std::string_view replacement = section.get_string_or_empty("replacement", path);
  if (replacement.empty()) replacement = "\u2581";
  const bool is_never = section.get_string_or_empty("prepend_scheme", path) == "never" ||
                        !section.get_bool("add_prefix_space", true, path);
  return std::make_unique<MetaspaceStep>(replacement, !is_never);
}

// "key" as a string, or `otherwise` when it is absent.
std::string_view string_or(const JsonView& section, const char* key, std::string_view otherwise,
                           const std::string& path) {
  return section.find(key).is_null() ? otherwise : section.get_string(key, path);
}

// A step that needs whole tokens, or null when the type is another's.
std::unique_ptr<DecoderStep> read_whole_token_step(std::string_view type, const JsonView& section,
                                                   const std::string& path) {
  if (type == "Replace") return std::make_unique<ReplaceStep>(Replacer::from_json(section, path));
  if (type == "ByteFallback") return std::make_unique<ByteFallbackStep>();
  if (type == "WordPiece") {
    return std::make_unique<WordPieceStep>(string_or(section, "prefix", "##", path),
                                           section.get_bool("cleanup", true, path));
  }
  if (type == "BPEDecoder") {
    return std::make_unique<SuffixStep>(string_or(section, "suffix", "</w>", path));
  }
  if (type == "CTC") {
    return std::make_unique<CtcStep>(string_or(section, "pad_token", "<pad>", path),
                                     string_or(section, "word_delimiter_token", "|", path),
                                     section.get_bool("cleanup", true, path));
  }
  return nullptr;
}

}  // namespace

DecoderSteps::DecoderSteps() = default;
DecoderSteps::~DecoderSteps() = default;
DecoderSteps::DecoderSteps(DecoderSteps&&) noexcept = default;
DecoderSteps& DecoderSteps::operator=(DecoderSteps&&) noexcept = default;

DecoderSteps DecoderSteps::from_json(const JsonView& section, const std::string& path) {
  DecoderSteps d;
  if (section.is_null()) {
    d.steps_.push_back(std::make_unique<SpacedStep>());
  } else {
    d.read(section, path, 0);
  }
  return d;
}

void DecoderSteps::read(const JsonView& section, const std::string& path, int depth) {
  if (depth > kMaxDepth) fail_format(path + " is nested too deep");
  if (steps_.size() > kMaxSteps) {
    fail_unsupported(path + " is step " + std::to_string(steps_.size() + 1) + ", at most " +
                     std::to_string(kMaxSteps) + " are supported");
  }
  const std::string_view type = section.get_string("type", path);
  if (type == "Sequence") {
    const JsonView list = section.get_list("decoders", path);
    for (uint64_t i = 0; i < list.len(); ++i) {
      read(list.at(i), path + ".decoders[" + std::to_string(i) + "]", depth + 1);
    }
  } else if (type == "Fuse") {
    steps_.push_back(std::make_unique<FuseStep>());
    fused_ = true;
  } else if (type == "ByteLevel") {
    steps_.push_back(std::make_unique<ByteLevelStep>());
    fused_ = true;
  } else if (type == "Metaspace") {
    steps_.push_back(read_metaspace(section, path));
  } else if (type == "Strip") {
    steps_.push_back(read_strip(section, path));
  } else if (auto step = read_whole_token_step(type, section, path)) {
    if (fused_) {
      fail_unsupported(
          path + ": " + std::string(type) +
          " after Fuse or ByteLevel is not supported: it would hold back the whole text");
    }
    steps_.push_back(std::move(step));
  } else {
    fail_unsupported(path + ".type is " + quote(type) +
                     ", which is not supported (supported: ByteLevel, ByteFallback, Fuse, "
                     "Metaspace, Replace, Strip, WordPiece, BPEDecoder, CTC, Sequence)");
  }
}

uint64_t DecoderSteps::max_bytes(uint64_t token_bytes) const {
  for (const auto& step : steps_) {
    token_bytes = step->max_bytes(token_bytes);
    if (token_bytes > kMaxTokenBytes) {
      fail_unsupported("decoder: a token may become a text of " + std::to_string(token_bytes) +
                       " bytes, at most " + std::to_string(kMaxTokenBytes) + " are supported");
    }
  }
  return token_bytes;
}

// Hands tokens to step i and those that it passes on to step i + 1; the last one writes the text.
class DecoderSteps::Stream::Link : public DecoderStep::Next {
 public:
  Link(Stream* stream, size_t i, std::string* out) : stream_(stream), i_(i), out_(out) {}
  void put(const TokenPart& part) override {
    const auto& steps = stream_->steps_.steps_;
    if (i_ == steps.size()) {
      out_->append(part.text);
      return;
    }
    Link next(stream_, i_ + 1, out_);
    steps[i_]->feed(stream_->states_[i_].get(), part, &next);
  }

 private:
  Stream* stream_;
  size_t i_;
  std::string* out_;
};

DecoderSteps::Stream::Stream(const DecoderSteps& steps) : steps_(steps) {
  for (const auto& step : steps.steps_) states_.push_back(step->begin());
}

DecoderSteps::Stream::~Stream() = default;

void DecoderSteps::Stream::feed(std::string_view token, std::string* out) {
  Link(this, 0, out).put({token, true, true});
}

void DecoderSteps::Stream::finish(std::string* out) {
  for (size_t i = 0; i < states_.size(); ++i) {
    Link next(this, i + 1, out);
    steps_.steps_[i]->finish(states_[i].get(), &next);
  }
}

}  // namespace dovetail::bpe
