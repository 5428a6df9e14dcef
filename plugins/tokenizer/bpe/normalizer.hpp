// Normalizer: the normalizer section of tokenizer.json, as steps that rewrite a stretch of text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json_view.hpp"
#include "mapped_text.hpp"
#include "regex.hpp"

namespace dovetail::bpe {

class Normalizer {
 public:
  /// One step. Supported are all types of the reference: NFC, NFD, NFKC, NFKD, Lowercase, Strip,
  /// StripAccents, Replace, Prepend, Nmt, Precompiled, BertNormalizer, ByteLevel.
  class Step {
   public:
    virtual ~Step() = default;
    /// Writes the new text and its alignment into `layer`, which is empty. False: nothing to
    /// change, and what is in the layer means nothing.
    virtual bool rewrite(std::string_view text, Layer* layer, RegexScratch* scratch) const = 0;
  };

  Normalizer();  // changes nothing
  ~Normalizer();
  Normalizer(Normalizer&&) noexcept;
  Normalizer& operator=(Normalizer&&) noexcept;

  /// Reads the section; `path` is its place in the file. A null section changes nothing.
  /// errors  kFormat, kUnsupported, with the path.
  static Normalizer from_json(const JsonView& section, const std::string& path);

  bool empty() const { return steps_.empty(); }

  /// The normalized form of `text` (valid UTF-8): the same when nothing changes, else the top of
  /// `layers`, of which each step may take some.
  /// errors   kInvalid: a Replace pattern that needs too many steps.
  /// threads  reentrant, with layers and a scratch of one's own.
  MappedText apply(MappedText text, LayerStack* layers, RegexScratch* scratch) const;

 private:
  void read(const JsonView& section, const std::string& path, int depth);

  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace dovetail::bpe
