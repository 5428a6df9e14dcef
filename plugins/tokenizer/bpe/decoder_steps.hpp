// DecoderSteps: the decoder section of tokenizer.json as a chain of steps over a stream of tokens.
//
// A step takes tokens one after another, each in one part or in several, and passes on tokens of its
// own; what it must hold back until it knows more is in its state. Decoding at once is decoding a
// stream and flushing it, so both give the same text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json_view.hpp"

namespace dovetail::bpe {

/// Part of a token on its way: [starts] ... [ends].
struct TokenPart {
  std::string_view text;
  bool starts = true;
  bool ends = true;
};

class DecoderStep {
 public:
  /// What a stream keeps for one step.
  struct State {
    virtual ~State() = default;
  };
  /// Where a step passes its tokens on to.
  class Next {
   public:
    virtual void put(const TokenPart& part) = 0;

   protected:
    ~Next() = default;
  };

  virtual ~DecoderStep() = default;
  virtual std::unique_ptr<State> begin() const = 0;
  virtual void feed(State* state, const TokenPart& part, Next* next) const = 0;
  /// No token follows: passes on what was held back.
  virtual void finish(State*, Next*) const {}

  /// Most bytes that one token of n bytes makes this step pass on, with what it held back.
  virtual uint64_t max_bytes(uint64_t n) const = 0;
};

/// Steps in order; the text is what comes out of the last one, joined.
class DecoderSteps {
 public:
  DecoderSteps();
  ~DecoderSteps();
  DecoderSteps(DecoderSteps&&) noexcept;
  DecoderSteps& operator=(DecoderSteps&&) noexcept;

  /// Supported: ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, WordPiece, BPEDecoder, CTC,
  /// Sequence; null joins the tokens with a space between.
  /// errors  kFormat, kUnsupported with the path; so also for an order of steps that could give no
  ///         text before the last token.
  static DecoderSteps from_json(const JsonView& section, const std::string& path);

  /// Most bytes that a token of so many becomes.
  /// errors  kUnsupported: more than there is room for.
  uint64_t max_bytes(uint64_t token_bytes) const;

  class Stream {
   public:
    explicit Stream(const DecoderSteps& steps);
    ~Stream();
    /// Appends what the token completes.
    void feed(std::string_view token, std::string* out);
    /// Appends what is left, once.
    void finish(std::string* out);

   private:
    class Link;
    const DecoderSteps& steps_;
    std::vector<std::unique_ptr<DecoderStep::State>> states_;
  };

 private:
  void read(const JsonView& section, const std::string& path, int depth);

  std::vector<std::unique_ptr<DecoderStep>> steps_;
  bool fused_ = false;  // after the last step all is one token
};

}  // namespace dovetail::bpe
