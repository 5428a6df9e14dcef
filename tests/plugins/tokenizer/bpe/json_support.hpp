// What the tokenizer's tests share: tokenizer.json through the core's own JSON reader, the vector
// files, and the real Qwen3 tokenizer.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/node.hpp"
#include "plugins/tokenizer/bpe/bpe_model.hpp"
#include "plugins/tokenizer/bpe/json_view.hpp"
#include "plugins/tokenizer/bpe/tokenizer.hpp"

namespace dovetail::bpe::test {

using core::Node;

/// The core's document tree as a JsonSource; handles are node addresses.
class NodeSource : public JsonSource {
 public:
  static const Node& node(uint64_t handle) { return *reinterpret_cast<const Node*>(handle); }
  static uint64_t handle(const Node* n) { return reinterpret_cast<uint64_t>(n); }

  JsonKind kind(uint64_t h) const override { return static_cast<JsonKind>(node(h).kind()); }
  uint64_t len(uint64_t h) const override {
    const Node& n = node(h);
    return n.is_list() ? n.items().size() : n.is_map() ? n.entries().size() : 0;
  }
  uint64_t find(uint64_t h, std::string_view key) const override {
    return handle(node(h).find(key));
  }
  uint64_t at(uint64_t h, uint64_t i, std::string_view* key) const override {
    const Node& n = node(h);
    if (n.is_list()) return handle(&n.items()[i]);
    if (key != nullptr) *key = n.entries()[i].first;
    return handle(&n.entries()[i].second);
  }
  std::string_view as_string(uint64_t h) const override { return node(h).as_string(); }
  int64_t as_int(uint64_t h) const override { return node(h).as_int(); }
  double as_float(uint64_t h) const override { return node(h).as_float(); }
  bool as_bool(uint64_t h) const override { return node(h).as_bool(); }
};

inline JsonView view(const Node& node) {
  static const NodeSource source;
  return {&source, NodeSource::handle(&node)};
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot open %s\n", path.c_str());
    std::abort();
  }
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline Node parse(std::string_view text, const std::string& name = "test") {
  auto result = core::parse_json(text, name);
  if (!result) {
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    std::abort();
  }
  return std::move(result).value();
}

/// One document per line of tests/data/tokenizer/<name>.
inline std::vector<Node> vectors(const std::string& name) {
  std::istringstream lines(read_file("tests/data/tokenizer/" + name));
  std::vector<Node> out;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) out.push_back(parse(line, name));
  }
  return out;
}

inline std::vector<uint32_t> ids_of(const Node& list) {
  std::vector<uint32_t> ids;
  for (const Node& n : list.items()) ids.push_back(static_cast<uint32_t>(n.as_int()));
  return ids;
}

inline std::vector<uint32_t> encode(const Tokenizer& t, std::string_view text,
                                    const EncodeOptions& options = {}) {
  std::vector<Token> tokens;
  t.encode(text, options, &tokens);
  std::vector<uint32_t> ids;
  for (const Token& token : tokens) ids.push_back(token.id);
  return ids;
}

/// The Qwen3 tokenizer, loaded once; the build unpacks it from tests/data/qwen3-tokenizer.
inline const Tokenizer& qwen3() {
  static const Tokenizer* tokenizer = [] {
    const Node root =
        parse(read_file(std::string(DVT_BUILD_DIR) + "/test-data/qwen3-tokenizer/tokenizer.json"));
    return new Tokenizer(view(root));
  }();
  return *tokenizer;
}

inline const BpeModel& qwen3_model() {
  return dynamic_cast<const BpeModel&>(qwen3().model());
}

}  // namespace dovetail::bpe::test
