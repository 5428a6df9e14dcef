// Code point classes, with the Unicode version that the reference tokenizer uses for each.
//
// The tables (unicode_tables.cpp) are generated; tools/make_unicode_tables.py says from what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dovetail::bpe {

inline constexpr uint32_t kCodePointEnd = 0x110000;

enum ClassFlag : uint16_t {
  kLetter = 1,             // \p{L}, Unicode 16.0
  kNumber = 2,             // \p{N}, Unicode 16.0
  kSpace = 4,              // White_Space
  kWord = 8,               // Rust's \w: Alphabetic, M, Nd, Pc, Join_Control
  kNumeric = 16,           // General_Category N as the Digits pre-tokenizer sees it, Unicode 17.0
  kNfcKnown = 32,          // assigned in Unicode 9.0: normalization knows it
  kNfcTouched = 64,        // NFC may change or reorder it
  kPunctuation = 128,      // what the Punctuation and Bert pre-tokenizers cut at
  kBertRemoved = 256,      // what BertNormalizer's cleaning deletes
  kAccent = 512,           // what StripAccents deletes
  kNonspacingMark = 1024,  // what BertNormalizer deletes as an accent
  kMark = 2048,            // \p{M}, Unicode 16.0, as are all below
  kNotLower = 4096,        // Lu, Lt, Lm, Lo
  kNotUpper = 8192,        // Ll, Lm, Lo
  kPunctOrSymbol = 16384,  // \p{P} or \p{S}
};

inline constexpr uint32_t kClassBlockLen = 128;
extern const uint16_t kClassBlocks[kCodePointEnd / kClassBlockLen];
extern const uint16_t kClassFlags[];

/// The ClassFlag bits of a code point below kCodePointEnd.
inline uint16_t class_of(uint32_t code_point) {
  return kClassFlags[kClassBlocks[code_point / kClassBlockLen] * kClassBlockLen +
                     code_point % kClassBlockLen];
}

struct CodePointRange {
  uint32_t first, last;  // both included
};

/// A class as sorted, disjoint ranges, by the name that regexes use: "L", "Lu", "Han"; the three
/// escapes \s \w \d are "space", "word" and "digit".
struct CodePointProperty {
  std::string_view name;
  std::span<const CodePointRange> ranges;
};
extern const CodePointProperty kProperties[];
extern const size_t kPropertiesLen;

/// Code points first, first + stride, ... last, each `delta` away from its lower case. U+0130, the
/// one with two code points in lower case, is not among them. Unicode 17.0.
struct LowercaseRange {
  uint32_t first, last, stride;
  int32_t delta;
};
extern const std::span<const LowercaseRange> kLowercase;

/// Scripts as the UnicodeScripts pre-tokenizer tells them apart (Unicode 9.0).
struct ScriptRange {
  uint32_t first, last;
  uint32_t script;
};
extern const std::span<const ScriptRange> kScripts;

}  // namespace dovetail::bpe
