// PreTokenizer: cuts a stretch of normalized text into the pieces that BPE works on.
//
// Supported: Sequence, Split (String or Regex, all behaviours), Digits, and ByteLevel as the last
// step. Pieces stay bytes of the text; ByteLevel's byte symbols are never written out, the model
// works on bytes instead.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "alignment.hpp"
#include "json_view.hpp"
#include "qwen2_scanner.hpp"
#include "regex.hpp"

namespace dovetail::bpe {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// GPT-2's pattern, which ByteLevel applies when it is asked to split.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// What one thread needs to cut.
struct CutScratch {
  RegexScratch regex;
  std::vector<RegexMatch> matches;
  std::vector<Piece> pieces, next;
  std::string prefixed;
};

class PreTokenizer {
 public:
  PreTokenizer();  // cuts nothing
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;

  /// Reads the pre_tokenizer section; `path` is its place in the file. A null section cuts nothing.
  static PreTokenizer from_json(const JsonView& section, const std::string& path);

  // The same by hand, for the trainer and tests.
  enum class Engine { kAuto, kRegex };  // kAuto takes a hand scanner where there is one
  void add_split_regex(std::string_view pattern, SplitBehavior behavior, bool invert,
                       Engine engine = Engine::kAuto);
  void add_split_string(std::string_view literal, SplitBehavior behavior, bool invert);
  void add_digits(bool individual);
  void set_byte_level(bool add_prefix_space, bool use_regex);

  /// True when pieces are to be read as bytes (the pre-tokenizer ends with ByteLevel).
  bool byte_level() const { return byte_level_; }

  /// Cuts `text` (valid UTF-8, under 4 GiB) into scratch->pieces, without empty ones. Returns the
  /// text that pieces refer to: `text`, or scratch->prefixed when prefix spaces were put in; then
  /// `alignment` maps that back to `text`.
  /// threads  reentrant, with a scratch of one's own.
  std::string_view cut(std::string_view text, CutScratch* scratch, Alignment* alignment) const;

 private:
  struct Step;

  void read(const JsonView& section, const std::string& path, int depth);
  void read_split(const JsonView& section, const std::string& path);

  std::vector<std::unique_ptr<Step>> steps_;
  bool byte_level_ = false;
  bool add_prefix_space_ = false;
  std::unique_ptr<Step> byte_level_split_;
};

}  // namespace dovetail::bpe
