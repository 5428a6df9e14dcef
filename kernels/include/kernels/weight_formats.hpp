// Quantised weight matrices: the formats, their packed layout, and rows into and out of it.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// How the numbers of a packed matrix are stored. k_len is cut into blocks of kQuantBlock, which
/// share a scale byte c; each row has a float32 scale d. With s(c) = (32 + c % 32) * 2^(c / 32):
///
///   kInt8   8.25 bits   w = d * s(c) * q               q in [-127, 127]
///   kInt4   4.5 bits    w = d * s(c) * (16 * q - z)    q in [0, 15], z in [0, 255]
///   kInt4q  4.5 bits    w = d * s(c) * (4 * kInt4qGrid[q] - z)    likewise
///   kInt6   6.25 bits   w = d * s(c) * (q - 32)        q in [0, 63]
///
/// (bits a weight, without the 32 / k_len of d). z places zero within the grid, so that a block
/// need not be symmetric; int4 has even steps and is made for speed, int4q has finer steps in the
/// middle of its range and is made for quality; int6 stands between them and int8, for the matrices
/// that lose most, the head first of all. s spans 32 to 8064: a block whose weights are 1/252
/// of the row's greatest block still has a scale of its own, within 1.6 %.
///
/// Packed, n_rows is filled up to groups of kPackedRows with rows of zeros, and a group is
///   float d[16], then for every block along k:
///   kInt8           uint8 c[16];              int8 q[8][16][4]    step, row, k within the step
///   kInt4, kInt4q   uint8 c[16]; uint8 z[16]; uint8 q[4][16][4]   byte (s, row, i) holds the level
///                   of k = 8 s + i in its low half and that of k = 8 s + 4 + i in its high half
///   kInt6           uint8 c[16]; uint8 q[4][16][4]   the low four bits of the levels, likewise
///                   uint8 h[2][16][4]   byte (t, row, i) holds the upper two of k = 16 t + 4 j + i
///                   in its bits 2 j and 2 j + 1
/// all little-endian, without gaps. One layout serves one token and many.
enum class WeightFormat { kInt8, kInt4, kInt4q, kInt6 };

inline constexpr int kWeightFormats = 4;

/// What configs and files call them.
inline constexpr const char* kWeightFormatNames[kWeightFormats] = {"int8", "int4", "int4q", "int6"};

/// What files call the packed bytes above, which never change under these names.
inline constexpr const char* kPackedFormatNames[kWeightFormats] = {"int8.1", "int4.1", "int4q.1",
                                                                   "int6.1"};

/// Weights along k that share a scale; k_len is a multiple.
inline constexpr int64_t kQuantBlock = 32;

/// Rows that lie interleaved in one group.
inline constexpr int64_t kPackedRows = 16;

/// Bytes of one block of one group.
inline constexpr int64_t kInt8BlockBytes = kPackedRows * (1 + kQuantBlock);
inline constexpr int64_t kInt4BlockBytes = kPackedRows * (2 + kQuantBlock / 2);
inline constexpr int64_t kInt6BlockBytes = kPackedRows * (1 + kQuantBlock / 2 + kQuantBlock / 4);

/// What is taken off a level of int6.
inline constexpr int kInt6Zero = 32;

/// The levels of int4q. Two products of two levels with int8 fit an int16, and a level fits pshufb.
inline constexpr uint8_t kInt4qGrid[16] = {0,  6,  12, 17, 21, 25, 28, 31,
                                           34, 37, 40, 44, 48, 53, 58, 64};

/// Bytes of a whole packed matrix.
///
/// errors    none: k_len is a multiple of kQuantBlock.
int64_t packed_bytes(WeightFormat format, int64_t n_rows, int64_t k_len);

/// Quantises rows [row0, row0 + n) of a matrix into its packed form.
///
/// shapes    packed: the whole matrix, packed_bytes() long, aligned to 4 bytes (64 is faster); src
///           [n, k_len], dense, the first row being row0. row0 is a multiple of kPackedRows; n is
///           too, or row0 + n == n_rows, and then the rows that fill up the last group are written
///           as well.
/// numerics  c, and z, are those with the least sum of squared errors among the scales about the one
///           that just spans the block (z by least squares for each). So the root mean square error
///           of a block is at most, a being its greatest magnitude and A its row's,
///             int8    a / 246 + A / 64000      int6    a / 60 + A / 15600
///           and, r being its range with zero in it and R the widest of its row,
///             int4    r / 27 + R / 6600        int4q   r / 19 + R / 4800
///           (Of Gaussian weights int4 loses 0.49 % of the sum of squares, int4q 0.46 %, int6 0.043 %.)
///           Zeros of a block of zeros stay zeros; a row whose greatest magnitude is below 1e-30 counts
///           as zeros. Every variant gives the bytes of kernels/ref.
/// threads   reentrant; allocates nothing (up to 8 KiB of stack), reads no globals. Ranges of rows
///           of one matrix may be quantised at the same time.
/// errors    none: src is finite and no magnitude is above 1e30.
using QuantizeRowsFn = void(void* packed, const float* src, int64_t row0, int64_t n, int64_t n_rows,
                            int64_t k_len);

/// One row of a packed matrix as float32: the very numbers that linear_quantized.hpp multiplies by.
///
/// shapes    out [k_len]; packed as above.
/// numerics  one rounding, that of the product with d. Every variant gives the bits of kernels/ref.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none: row < n_rows.
using UnpackRowFn = void(float* out, const void* packed, int64_t row, int64_t n_rows,
                         int64_t k_len);

namespace ref {
QuantizeRowsFn quantize_rows_int8;
QuantizeRowsFn quantize_rows_int4;
QuantizeRowsFn quantize_rows_int4q;
QuantizeRowsFn quantize_rows_int6;
UnpackRowFn unpack_row_int8;
UnpackRowFn unpack_row_int4;
UnpackRowFn unpack_row_int4q;
UnpackRowFn unpack_row_int6;
}  // namespace ref

}  // namespace dovetail::kernels
