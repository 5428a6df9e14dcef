// JSON text to Node and back, strictly: what a checkpoint's files say is kept or refused, never bent.
//
// Numbers keep their spelling, duplicate keys are refused by name, integers never turn into doubles
// without a trace (see Node::number_text), and every value knows its line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// What to do with an escaped half of a surrogate pair (`"\ud83d"`), which no UTF-8 can hold.
enum class LoneSurrogates : uint8_t {
  kRefuse,
  kReplace,  // with U+FFFD
};

/// How much a document may ask of the reader; beyond it parsing fails with a clear message.
struct JsonLimits {
  size_t max_depth = 128;                // nested lists and maps
  size_t max_bytes = size_t{1} << 30;    // of the text
  size_t max_values = 16'000'000;        // nodes, at some 140 bytes each
  size_t max_string_bytes = 64'000'000;  // of one string or key
  LoneSurrogates lone_surrogates = LoneSurrogates::kRefuse;
};

/// Parses one JSON document (RFC 8259) in UTF-8; a leading byte order mark is skipped.
///
/// An integer that fits int64 is kInt. A larger one is kFloat, rounded, with its digits in
/// number_text(). Maps with more than 16 entries are indexed.
/// errors   kFormat "source:line:column: what": syntax, UTF-8, duplicate keys, numbers beyond
///          double, limits. kNoMemory.
Result<Node> parse_json(std::string_view text, std::string source_name,
                        const JsonLimits& limits = {});

/// Writes `node` as JSON: keys in order, strings as they are (only what JSON demands is escaped, and
/// bytes that are not UTF-8, which no JSON can hold, become U+FFFD), floats in the shortest form that
/// reads back the same and always with a point or exponent. An infinite or NaN number, which JSON lacks, is written as null. `indent` > 0 breaks lines.
std::string to_json(const Node& node, int indent = 0);

}  // namespace dovetail::core
