#include "replacer.hpp"

#include <vector>

#include "error.hpp"
#include "rewrite.hpp"

namespace dovetail::bpe {

Replacer Replacer::from_json(const JsonView& section, const std::string& path) {
  Replacer r;
  r.content_ = section.get_string("content", path);
  const JsonView pattern = section.find("pattern");
  if (const JsonView literal = pattern.find("String"); literal.is_string()) {
    r.literal_ = literal.as_string();
    return r;
  }
  const std::string_view regex = pattern.get_string("Regex", path + ".pattern");
  try {
    r.regex_ = std::make_unique<Regex>(regex);
  } catch (const Error& e) {
    throw Error(e.kind(), path + ".pattern.Regex: " + e.what());
  }
  return r;
}

bool Replacer::rewrite(std::string_view text, RegexScratch* scratch, Layer* layer) const {
  Rewrite result(text, layer);
  if (regex_ != nullptr) {
    std::vector<RegexMatch> matches;
    regex_->find_all(text, scratch, &matches);
    for (const RegexMatch& m : matches) result.replace(m.begin, m.end, content_);
  } else if (!literal_.empty()) {
    for (size_t pos = text.find(literal_); pos != std::string_view::npos;
         pos = text.find(literal_, pos + literal_.size())) {
      result.replace(pos, pos + literal_.size(), content_);
    }
  }
  return result.finish();
}

}  // namespace dovetail::bpe
