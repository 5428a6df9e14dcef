// Matrices that lie in several tensors of files: levels in one, scales in others.
//
// This is their reference dequantiser: the numbers are what the formulas say, in float32, each product rounded once.
// Which tensors belong together is found by gather() (parts.hpp).
#pragma once

#include <dovetail/format.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "header.hpp"

namespace dovetail::safetensors {

/// A tensor as a file has it.
struct Stored {
  File file;
  Entry entry;
};

class Matrix {
 public:
  /// Rows that a lane takes at a time.
  static constexpr int64_t kPiece = 16;
  /// Memory that a lane works in.
  struct Scratch {
    std::vector<float> rows;      // [kPiece, k_len]
    std::vector<uint8_t> levels;  // [kPiece, k_len]
    std::vector<float> scales;    // [n_groups]
    std::vector<int32_t> zeros;   // [n_groups]
  };

  Matrix() = default;
  virtual ~Matrix() = default;
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  std::string name;                // "model.layers.0.mlp.up_proj.weight"
  std::string stored;              // what it is, for people: see dvt_tensor
  std::string format = "float32";  // the best form that loses nothing
  int64_t n_rows = 0, k_len = 0;   // [out, in]
  int64_t n_groups = 0;            // of scales along k
  std::vector<const Stored*> parts;

  /// Bytes of a row in a form that rows() makes.
  int64_t row_bytes(std::string_view form) const;
  /// Rows [row0, row0 + n) to `out` in that form, on all lanes of the host; see dvt_format_v1.rows.
  void rows(const Host& host, const dvt_bytes* bytes, std::string_view form, int64_t row0,
            int64_t n, void* out, Call call) const;

 protected:
  /// Rows [row0, row0 + n), at most kPiece of them, as float32.
  virtual void unpack(const dvt_bytes* bytes, int64_t row0, int64_t n, Scratch& scratch,
                      float* out) const = 0;
  /// The same in `format`, where that is not float32.
  virtual void pack(const dvt_bytes*, int64_t, int64_t, Scratch&, uint8_t*) const {}

 private:
  void piece(const dvt_bytes* bytes, std::string_view form, int64_t row0, int64_t n,
             Scratch& scratch, uint8_t* out) const;
};

/// Number i of a tensor of float32, bf16 or f16.
class Numbers {
 public:
  Numbers(std::string_view format, const void* p)
      : kind_(format == "float32" ? 4
              : format == "bf16"  ? 1
                                  : 2),
        p_(static_cast<const uint8_t*>(p)) {}
  static bool can_read(std::string_view format) {
    return format == "float32" || format == "bf16" || format == "f16";
  }
  float operator[](int64_t i) const;

 private:
  int kind_;
  const uint8_t* p_;
};

}  // namespace dovetail::safetensors
