// Replacer: `{"pattern": {"String"|"Regex": ...}, "content": ...}`, which the Replace normalizer and
// the Replace decoder share. The content is literal: there are no group references.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "json_view.hpp"
#include "mapped_text.hpp"
#include "regex.hpp"

namespace dovetail::bpe {

class Replacer {
 public:
  /// errors  kFormat, kUnsupported, with the path.
  static Replacer from_json(const JsonView& section, const std::string& path);

  /// Replaces every match in `text`. False: there is none, and `layer` is untouched.
  bool rewrite(std::string_view text, RegexScratch* scratch, Layer* layer) const;

  bool is_literal() const { return regex_ == nullptr; }
  const std::string& literal() const { return literal_; }
  const std::string& content() const { return content_; }

 private:
  std::unique_ptr<Regex> regex_;  // null: the literal
  std::string literal_, content_;
};

}  // namespace dovetail::bpe
