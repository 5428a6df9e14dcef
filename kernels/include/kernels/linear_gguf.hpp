// Linear layers over weights of GGUF files: the layout that they are packed in, and the products.
#pragma once

#include <cstdint>

#include <kernels/linear_quantized.hpp>
#include <kernels/weight_formats.hpp>

namespace dovetail::kernels {

/// Block formats of GGUF that are multiplied as they are: packed, each number is the one of gguf_blocks.hpp.
///
/// n_rows is filled up to groups of kPackedRows (16) with rows of zeros; k_len is a multiple of the format's
/// block_len. A group is, for every block of the file along k,
///   q4_0   f16 d[16]; uint8 q[4][16][4]                            4.5 bits a weight
///   q8_0   f16 d[16]; int8 q[8][16][4]                             8.5
///   q4_k   f16 d[16]; f16 m[16]; for each 32 k:                    4.625
///            uint8 sc[16]; uint8 mn[16]; uint8 q[4][16][4]
///   q6_k   f16 d[16]; for each 32 k: int8 sc[2][16]; int8 q[8][16][4]    8.5625, q with 32 taken off
/// Byte (s, row, i) of 4-bit levels holds that of k = 8 s + i in its low half and that of k = 8 s + 4 + i in its
/// high half; of int8 it is that of k = 4 s + i. Little-endian, without gaps.
enum class GgufPacked { kQ4_0, kQ8_0, kQ4_K, kQ6_K };

inline constexpr int kGgufPackedFormats = 4;

/// What files call them (GgufFormat::name).
inline constexpr const char* kGgufPackedNames[kGgufPackedFormats] = {"q4_0", "q8_0", "q4_k",
                                                                     "q6_k"};

/// Bytes of a whole packed matrix.
///
/// errors    none: k_len is a multiple of the format's block_len.
int64_t gguf_packed_bytes(GgufPacked format, int64_t n_rows, int64_t k_len);

/// Rows [row0, row0 + n) of a matrix from the blocks of a file into their packed form.
///
/// shapes    packed: the whole matrix, aligned to 4 bytes (64 is faster); blocks: of all rows from row0 on, at any
///           address. row0 is a multiple of kPackedRows; n is too, or row0 + n == n_rows, and then the rows that fill
///           up the last group are written as well.
/// numerics  exact.
/// threads   reentrant; allocates nothing, reads no globals. Ranges of rows may be packed at the same time.
/// errors    none.
using PackGgufRowsFn = void(void* packed, const void* blocks, int64_t row0, int64_t n,
                            int64_t n_rows, int64_t k_len);

// Products are LinearQuantizedFn: shapes, threads and errors as in linear_quantized.hpp, k_len a multiple of the
// format's block_len. With x = scale[t, b] * q[t, k] of the quantised activations in blocks b of 32, y[t, n] is the
// sum over b, float32, ascending, from zero, of fused multiply-adds whose factor is rounded before, innermost first:
//   q4_0         sum += inner * (d * scale)                       inner = sum_k (level - 8) * q
//   q8_0         sum += inner * (d * scale)                       inner = sum_k level * q16
//   q6_k         sum += inner * (d * scale)                       inner = sum_k sc * (level - 32) * q16
//   q4_k         sum += inner * ((d * sc) * scale)                inner = sum_k level * q
//                sum += sum_k q * -((m * mn) * scale)
// and with q16 the sum is multiplied with kFineStep in the end, which is exact. The inner sums are exact, in integers
// (of q6_k below 128 * 32 * 32 * 127 * 128 < 2^31). Every variant gives the bits of kernels/ref, for any n_tokens, any stripe and
// any place in a tile. Within (k_len / 16 + 5) * 2^-24 * sum |w q scale| (q4_k: with the magnitudes of both of its
// terms) of the exact sum. linear_add_* add the finished sum to y with one rounding.
namespace ref {
PackGgufRowsFn pack_rows_q4_0, pack_rows_q8_0, pack_rows_q4_k, pack_rows_q6_k;
UnpackRowFn unpack_row_q4_0, unpack_row_q8_0, unpack_row_q4_k, unpack_row_q6_k;
LinearQuantizedFn linear_q4_0, linear_q8_0, linear_q4_k, linear_q6_k;
LinearQuantizedFn linear_add_q4_0, linear_add_q8_0, linear_add_q4_k, linear_add_q6_k;
}  // namespace ref

}  // namespace dovetail::kernels
