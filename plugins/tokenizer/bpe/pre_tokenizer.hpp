// PreTokenizer: cuts a stretch of normalized text into the pieces that the model works on.
//
// Supported are all types of the reference. Pieces stay bytes of the text. Where ByteLevel is the last
// step its byte symbols are not written out: the caller is told so, and lets the model work on bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json_view.hpp"
#include "mapped_text.hpp"
#include "regex.hpp"
#include "split_scanner.hpp"

namespace dovetail::bpe {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// What one thread needs to cut.
struct CutScratch {
  RegexScratch regex;
  std::vector<RegexMatch> matches;
  std::vector<Piece> pieces, next;
};

class PreTokenizer {
 public:
  /// What a step works on: pieces of a text, none of them empty.
  struct State {
    MappedText text;
    LayerStack* layers;
    CutScratch* scratch;  // pieces are the text's; next is free to use
  };
  class Step {
   public:
    virtual ~Step() = default;
    virtual void apply(State* state) const = 0;
  };

  PreTokenizer();  // cuts nothing
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;

  /// Reads the pre_tokenizer section; `path` is its place in the file. A null section cuts nothing.
  /// errors  kFormat, kUnsupported, with the path.
  static PreTokenizer from_json(const JsonView& section, const std::string& path);

  // The same by hand, for the trainer and tests.
  enum class Engine { kAuto, kRegex };  // kAuto takes a hand scanner where there is one
  void add_split_regex(std::string_view pattern, SplitBehavior behavior, bool invert,
                       Engine engine = Engine::kAuto);
  void add_split_string(std::string_view literal, SplitBehavior behavior, bool invert);
  void add_digits(bool individual);
  void add_byte_level(bool add_prefix_space, bool use_regex);

  /// True when pieces are to be read as bytes: the last step is ByteLevel and its symbols are left out.
  bool byte_level() const { return byte_level_; }
  /// Has the symbols of a last ByteLevel written after all, for a model that needs them.
  void write_byte_symbols();

  /// Cuts `text` (valid UTF-8, under 4 GiB) into scratch->pieces, without empty ones. Returns the
  /// text that pieces refer to: `text`, or the top of `layers` when a step rewrote it.
  /// errors   kInvalid: a pattern that needs too many steps.
  /// threads  reentrant, with layers and a scratch of one's own.
  MappedText cut(const MappedText& text, LayerStack* layers, CutScratch* scratch) const;

 private:
  void read(const JsonView& section, const std::string& path, int depth);
  void read_split(const JsonView& section, const std::string& path);
  void add(std::unique_ptr<Step> step);

  std::vector<std::unique_ptr<Step>> steps_;
  bool byte_level_ = false;
};

}  // namespace dovetail::bpe
