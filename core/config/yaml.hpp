// YAML text to Node, strictly.
//
// yaml-cpp only splits the text into events; what a scalar means, which keys may stand where and how
// much a document may ask for is decided here, because the library accepts too much.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

inline constexpr size_t kYamlMaxBytes = size_t{1} << 20;         // of a document
inline constexpr size_t kYamlMaxValueBytes = size_t{128} << 10;  // of one scalar, or a look-ahead
inline constexpr size_t kYamlMaxDepth = 64;                      // nested maps and lists
inline constexpr size_t kYamlMaxNodes = 10'000;                  // anchors and aliases written out
inline constexpr size_t kYamlMaxKeyBytes = 256;

/// Parses one YAML document: YAML 1.2's core schema, one document, unique keys that are scalars, no
/// tags, no merge keys. Aliases are copied out. A plain scalar that a reader could take two ways
/// (010) or that no number field could use (.inf, 1e400) is refused, naming its key.
///
/// A value in a map has the origin of its key, any other value its own; an alias that of its use.
/// errors   kInvalid, "source:line:column: what".
Result<Node> parse_yaml(std::string_view text, std::string source);

}  // namespace dovetail::core
