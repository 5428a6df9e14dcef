// Runs of ASCII letters, sixteen bytes at a time where the machine has SSE2 (every x86-64 has).
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace dovetail::bpe {

#if defined(__SSE2__)
namespace letter_run {
// A bit for each of 16 bytes: whether it lies in [low, low + 25]. `low` and `bytes` are ASCII or the
// answer for them is no.
inline uint32_t in_alphabet(__m128i bytes, char low) {
  // Shifted so that the range starts at the least signed byte: one signed comparison is left.
  const __m128i shifted = _mm_add_epi8(bytes, _mm_set1_epi8(static_cast<char>(-128 - low)));
  const __m128i inside = _mm_cmplt_epi8(shifted, _mm_set1_epi8(-128 + 26));
  return static_cast<uint32_t>(_mm_movemask_epi8(inside));
}
inline __m128i load(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
}  // namespace letter_run
#endif

/// First position from i on, up to `end`, that is not one of A-Z, a-z.
inline uint32_t skip_ascii_letters(const uint8_t* text, uint32_t i, uint32_t end) {
#if defined(__SSE2__)
  for (; i + 16 <= end; i += 16) {
    const __m128i lower = _mm_or_si128(letter_run::load(text + i), _mm_set1_epi8(0x20));
    const uint32_t others = ~letter_run::in_alphabet(lower, 'a') & 0xFFFF;
    if (others != 0) return i + static_cast<uint32_t>(__builtin_ctz(others));
  }
#endif
  while (i < end && static_cast<uint8_t>((text[i] | 0x20) - 'a') < 26) ++i;
  return i;
}

/// First position from i on, up to `end`, that is not one of a-z.
inline uint32_t skip_ascii_lower(const uint8_t* text, uint32_t i, uint32_t end) {
#if defined(__SSE2__)
  for (; i + 16 <= end; i += 16) {
    const uint32_t others = ~letter_run::in_alphabet(letter_run::load(text + i), 'a') & 0xFFFF;
    if (others != 0) return i + static_cast<uint32_t>(__builtin_ctz(others));
  }
#endif
  while (i < end && static_cast<uint8_t>(text[i] - 'a') < 26) ++i;
  return i;
}

}  // namespace dovetail::bpe
