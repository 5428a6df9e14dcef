#include "grouped_ints.hpp"

#include <algorithm>
#include <cstring>

namespace dovetail::safetensors {
namespace {

constexpr int64_t kBlock = 32;                              // of q4_0 and q8_0
constexpr int64_t kAwqPlace[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // of number i in its word

uint32_t word_at(const void* p, int64_t i) {
  uint32_t word = 0;
  std::memcpy(&word, static_cast<const uint8_t*>(p) + i * 4, sizeof word);
  return word;
}

class GroupedInts : public Matrix {
 public:
  bool is_awq = false;
  int64_t bits = 4, group_len = 0;
  int32_t zero_offset = 0;        // to add to what the file has
  std::vector<int32_t> group_of;  // of each k; empty: k / group_len
  std::string scale_format;

  int64_t per_word() const { return 32 / bits; }
  uint32_t mask() const { return (1U << bits) - 1U; }

  int32_t zero(const void* zeros, int64_t g, int64_t row) const {
    const int64_t place = is_awq ? kAwqPlace[row % 8] : row % per_word();
    const uint32_t word = word_at(zeros, g * (n_rows / per_word()) + row / per_word());
    return static_cast<int32_t>(word >> (place * bits) & mask()) + zero_offset;
  }

 protected:
  void unpack(const dvt_bytes* bytes, int64_t row0, int64_t n, Scratch& s,
              float* out) const override {
    levels(bytes[0].p, row0, n, s.levels.data());
    const Numbers scales(scale_format, bytes[2].p);
    const uint8_t* q = s.levels.data();
    for (int64_t row = row0; row < row0 + n; ++row, q += k_len, out += k_len) {
      for (int64_t g = 0; g < n_groups; ++g) {
        s.scales[static_cast<size_t>(g)] = scales[g * n_rows + row];
        s.zeros[static_cast<size_t>(g)] = zero(bytes[1].p, g, row);
      }
      if (group_of.empty()) {
        for (int64_t g = 0; g < n_groups; ++g)
          run(s, static_cast<size_t>(g), q, g * group_len, std::min(k_len, (g + 1) * group_len),
              out);
      } else {
        for (int64_t k = 0; k < k_len; ++k)
          run(s, static_cast<size_t>(group_of[static_cast<size_t>(k)]), q, k, k + 1, out);
      }
    }
  }

  // Blocks of 32: the scale's own bits, then the levels. The layouts are those of kernels/gguf_blocks.hpp.
  void pack(const dvt_bytes* bytes, int64_t row0, int64_t n, Scratch& s,
            uint8_t* out) const override {
    levels(bytes[0].p, row0, n, s.levels.data());
    const auto* scales = static_cast<const uint8_t*>(bytes[2].p);
    const uint8_t* q = s.levels.data();
    for (int64_t row = row0; row < row0 + n; ++row)
      for (int64_t k = 0; k < k_len; k += kBlock, q += kBlock) {
        std::memcpy(out, scales + (k / group_len * n_rows + row) * 2, 2);
        out += 2;
        if (bits == 4) {
          for (int64_t i = 0; i < 16; ++i) *out++ = static_cast<uint8_t>(q[i] | q[16 + i] << 4);
        } else {
          for (int64_t i = 0; i < kBlock; ++i) *out++ = static_cast<uint8_t>(q[i] - 128);
        }
      }
  }

 private:
  // Numbers [begin, end) of a row, all of group g.
  static void run(const Scratch& s, size_t g, const uint8_t* q, int64_t begin, int64_t end,
                  float* out) {
    const float scale = s.scales[g];
    const int32_t zero = s.zeros[g];
    for (int64_t k = begin; k < end; ++k) out[k] = scale * static_cast<float>(q[k] - zero);
  }

  // Of n rows, [n, k_len]. Rows are the inner loop: their words are neighbours.
  void levels(const void* words, int64_t row0, int64_t n, uint8_t* out) const {
    if (is_awq) {
      for (int64_t k = 0; k < k_len; ++k)
        for (int64_t row = row0; row < row0 + n; ++row)
          out[(row - row0) * k_len + k] = static_cast<uint8_t>(
              word_at(words, k * (n_rows / 8) + row / 8) >> (kAwqPlace[row % 8] * bits) & mask());
      return;
    }
    const int64_t per = per_word();
    for (int64_t i = 0; i < k_len / per; ++i)
      for (int64_t row = row0; row < row0 + n; ++row) {
        uint32_t word = word_at(words, i * n_rows + row);
        uint8_t* to = out + (row - row0) * k_len + i * per;
        for (int64_t k = 0; k < per; ++k, word >>= bits)
          to[k] = static_cast<uint8_t>(word & mask());
      }
  }
};

void require_shape(const Stored& t, std::string_view type, const std::vector<int64_t>& shape,
                   const std::string& why) {
  const bool is_right_type =
      type == "float" ? Numbers::can_read(t.entry.format) : t.entry.format == type;
  if (is_right_type && t.entry.shape == shape) return;
  refuse(t.file, t.entry.name,
         "is " + t.entry.format + " " + shape_text(t.entry.shape) + ", expected " +
             std::string(type == "float" ? "float32, bf16 or f16" : type) + " " +
             shape_text(shape) + " (" + why + ")");
}

std::vector<uint8_t> read_all(const Stored& t, Call call) {
  std::vector<uint8_t> out(t.entry.end - t.entry.begin);
  t.file.read(call, t.entry.begin, out.data(), out.size());
  return out;
}

// The groups of a file, or nothing where they are in order.
std::vector<int32_t> read_groups(const Stored& t, const GroupedInts& m, Call call) {
  const std::vector<uint8_t> bytes = read_all(t, call);
  std::vector<int32_t> out(static_cast<size_t>(m.k_len));
  bool is_in_order = true;
  for (int64_t k = 0; k < m.k_len; ++k) {
    const auto g = static_cast<int32_t>(word_at(bytes.data(), k));
    if (g < 0 || g >= m.n_groups)
      refuse(t.file, t.entry.name,
             "has group " + std::to_string(g) + " at " + std::to_string(k) + ", expected 0 to " +
                 std::to_string(m.n_groups - 1));
    out[static_cast<size_t>(k)] = g;
    is_in_order = is_in_order && g == k / m.group_len;
  }
  if (is_in_order) out.clear();
  return out;
}

bool is_symmetric(const Stored& zeros, const GroupedInts& m, Call call) {
  const std::vector<uint8_t> bytes = read_all(zeros, call);
  for (int64_t g = 0; g < m.n_groups; ++g)
    for (int64_t row = 0; row < m.n_rows; ++row)
      if (m.zero(bytes.data(), g, row) != 1 << (m.bits - 1)) return false;
  return true;
}

}  // namespace

std::unique_ptr<Matrix> int_matrix(const Quantization& q, const std::string& name,
                                   const IntParts& parts, Call call) {
  auto out = std::make_unique<GroupedInts>();
  GroupedInts& m = *out;
  m.name = name;
  m.is_awq = q.method == Quantization::Method::kAwq;
  m.bits = q.bits;
  m.zero_offset = q.zero_is_one_less ? 1 : 0;
  m.scale_format = parts.scales->entry.format;
  const int64_t per_word = m.per_word();
  const Entry& levels = parts.levels->entry;
  if (levels.format != "i32" || levels.shape.size() != 2 || levels.begin == levels.end)
    refuse(parts.levels->file, levels.name,
           "is " + levels.format + " " + shape_text(levels.shape) +
               ", expected a matrix of i32 that is not empty");
  m.k_len = levels.shape[0] * (m.is_awq ? 1 : per_word);  // bytes that are there: no overflow
  m.n_rows = levels.shape[1] * (m.is_awq ? per_word : 1);
  m.group_len = q.group_len > 0 ? q.group_len : m.k_len;
  m.n_groups = m.k_len / m.group_len + (m.k_len % m.group_len != 0);
  const std::string why = "a weight of " + shape_text({m.n_rows, m.k_len}) + " in groups of " +
                          std::to_string(m.group_len) + ", " + std::to_string(m.bits) +
                          " bits a number";
  if (m.n_rows % per_word != 0)
    refuse(parts.levels->file, levels.name,
           "is of a matrix with " + std::to_string(m.n_rows) + " rows, expected a multiple of " +
               std::to_string(per_word) + ", which is how many zeros an int32 holds");
  require_shape(*parts.scales, "float", {m.n_groups, m.n_rows}, why);
  require_shape(*parts.zeros, "i32", {m.n_groups, m.n_rows / per_word}, why);
  m.parts = {parts.levels, parts.zeros, parts.scales};
  if (parts.groups) {
    require_shape(*parts.groups, "i32", {m.k_len}, why);
    m.group_of = read_groups(*parts.groups, m, call);
    m.parts.push_back(parts.groups);
  }
  m.stored = std::string(m.is_awq             ? "awq"
                         : q.zero_is_one_less ? "gptq"
                                              : "gptq_v2") +
             " int" + std::to_string(m.bits) + ", groups of " + std::to_string(m.group_len) +
             (m.group_of.empty() ? "" : " by g_idx");
  const bool has_whole_blocks =
      m.k_len % kBlock == 0 && (m.group_len % kBlock == 0 || m.n_groups == 1) && m.group_of.empty();
  if (has_whole_blocks && m.scale_format == "f16" && is_symmetric(*parts.zeros, m, call))
    m.format = m.bits == 4 ? "q4_0" : "q8_0";
  return out;
}

}  // namespace dovetail::safetensors
