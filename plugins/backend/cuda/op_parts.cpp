#include "op_parts.hpp"

#include <set>

#include <kernels/cuda.hpp>

#include "weights.hpp"

namespace dovetail::cuda {

namespace k = kernels::cuda;

k::Matrix matrix_of(const Array& w) {
  k::MatrixNumbers numbers = k::MatrixNumbers::kFloat32;
  if (w.dtype == DVT_BF16) numbers = k::MatrixNumbers::kBf16;
  if (w.dtype == DVT_F16) numbers = k::MatrixNumbers::kF16;
  if (const auto format = packed_format(w.dtype)) numbers = k::numbers_of(*format);
  return {w.data, numbers, w.dim[0], w.dim[1]};
}

std::optional<RmsNorm> RmsNorm::find(const GraphView& g, const dvt_node& n,
                                     const std::string& prefix) {
  if (!g.find_attr(n, prefix + "eps")) return {};
  return RmsNorm{static_cast<float>(g.f64(n, prefix + "eps")),
                 g.i64(n, prefix + "unit_offset") != 0 ? 1.0F : 0.0F};
}

namespace {

std::string rope_key(const GraphView& g, const dvt_node& n) {
  const std::span<const double> freq = g.f64_list(n, "inv_freq");
  const double factor = g.f64(n, "attention_factor");
  std::string key(reinterpret_cast<const char*>(freq.data()), freq.size_bytes());
  return key.append(reinterpret_cast<const char*>(&factor), sizeof factor);
}
uint64_t rope_table_bytes(int64_t half_len, const Sizes& max) {
  return static_cast<uint64_t>((2 * max.tokens + 1) * half_len) * sizeof(float);
}

}  // namespace

std::shared_ptr<RopeTable> RopeTable::of(const GraphView& g, const dvt_node& n,
                                         DevicePreparation& p) {
  std::any& known = p.shared["rope " + rope_key(g, n)];
  if (known.has_value()) return std::any_cast<std::shared_ptr<RopeTable>>(known);
  const std::span<const double> freq = g.f64_list(n, "inv_freq");
  const std::vector<float> inv_freq(freq.begin(), freq.end());
  const auto half_len = static_cast<int64_t>(freq.size());
  const auto table_bytes = static_cast<uint64_t>(p.max.tokens * half_len) * sizeof(float);
  auto table = std::make_shared<RopeTable>(RopeTable{
      half_len,
      {p.device, inv_freq.size() * sizeof(float)},
      {p.device, table_bytes},
      {p.device, table_bytes},
  });
  p.device.copy_in(table->inv_freq.get(), inv_freq.data(), table->inv_freq.n_bytes());
  p.shared_bytes += rope_table_bytes(half_len, p.max);
  p.at_start.emplace_back(
      [table, factor = static_cast<float>(g.f64(n, "attention_factor"))](const Step& step) {
        k::rope_table(step.stream(), reinterpret_cast<float*>(table->cos.get()),
                      reinterpret_cast<float*>(table->sin.get()), step.positions(),
                      reinterpret_cast<const float*>(table->inv_freq.get()), step.n_tokens(),
                      table->half_len, factor);
      });
  known = table;
  return table;
}
uint64_t rope_bytes(const GraphView& g, const Sizes& max) {
  std::set<std::string> known;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < g.n_nodes(); ++i)
    if (const dvt_node& n = g.node(i);
        g.find_attr(n, "inv_freq") && known.insert(rope_key(g, n)).second)
      sum += rope_table_bytes(static_cast<int64_t>(g.f64_list(n, "inv_freq").size()), max);
  return sum;
}

kernels::KvLayout layout_of(const DeviceStates::Slot& slot, uint32_t page_len) {
  return {static_cast<int64_t>(slot.n_outer), static_cast<int64_t>(slot.row_len), page_len,
          static_cast<int64_t>(slot.page_bytes / slot.element_bytes)};
}
const DeviceStates::Slot& slot_of(const NodeLaunch& n, size_t i) {
  return n.states->slot(static_cast<uint32_t>(n.state[i]));
}
void write_rows(const NodeLaunch& n, const float* rows, size_t state) {
  const DeviceStates::Slot& slot = slot_of(n, state);
  with_element(slot, [&](auto* base) {
    k::cache_write(n.stream(), base, layout_of(slot, n.states->page_len()),
                   n.step->rows(slot.group), rows);
  });
}

}  // namespace dovetail::cuda
