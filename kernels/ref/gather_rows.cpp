// Oracle of gather_rows.hpp.
#include <kernels/bf16.hpp>
#include <kernels/gather_rows.hpp>

namespace dovetail::kernels::ref {

void gather_rows_f32(float* out, const float* table, const int32_t* ids, int64_t n_ids,
                     int64_t row_len) {
  for (int64_t r = 0; r < n_ids; ++r) {
    const float* row = table + ids[r] * row_len;
    for (int64_t i = 0; i < row_len; ++i) out[r * row_len + i] = row[i];
  }
}

void gather_rows_bf16(float* out, const uint16_t* table, const int32_t* ids, int64_t n_ids,
                      int64_t row_len) {
  for (int64_t r = 0; r < n_ids; ++r) {
    const uint16_t* row = table + ids[r] * row_len;
    for (int64_t i = 0; i < row_len; ++i) out[r * row_len + i] = bf16_to_float(row[i]);
  }
}

void gather_rows_f16(float* out, const F16* table, const int32_t* ids, int64_t n_ids,
                     int64_t row_len) {
  for (int64_t r = 0; r < n_ids; ++r) {
    const F16* row = table + ids[r] * row_len;
    for (int64_t i = 0; i < row_len; ++i) out[r * row_len + i] = f16_to_float(row[i].bits);
  }
}

}  // namespace dovetail::kernels::ref
