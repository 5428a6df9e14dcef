#include "attention.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <kernels/cpu.hpp>

namespace dovetail::cpu {
namespace {

const kernels::CpuKernels& k(const NodeRun& n) {
  return *static_cast<const kernels::CpuKernels*>(n.step->context);
}

kernels::KvLayout layout_of(const HostStates::Slot& slot, uint32_t page_len) {
  return {static_cast<int64_t>(slot.n_outer), static_cast<int64_t>(slot.row_len), page_len,
          static_cast<int64_t>(slot.page_bytes / slot.element_bytes)};
}

struct Heads {
  int64_t begin, end;
};

// Rows x of every sequence into a state: these heads of all rows, or all heads of the rows that are a
// lane's turn by sequence and token block.
void write_rows(const NodeRun& n, size_t x_index, size_t state_index, Lane lane,
                const Heads* own = nullptr) {
  constexpr int64_t kRowsPerPart = 32;
  const HostStates& states = *n.step->states;
  const HostStates::Slot& slot = states.slot(static_cast<uint32_t>(n.state[state_index]));
  kernels::KvLayout layout = layout_of(slot, states.page_len());
  const dvt_page_group& group = n.step->group(slot.group);
  const dvt_batch& b = *n.step->batch;
  const int64_t row = layout.n_kv_heads * layout.head_dim;
  const int64_t first = own ? own->begin : 0;
  uint8_t* const base = slot.data + static_cast<uint64_t>(first) * slot.outer_bytes;
  if (own) layout.n_kv_heads = own->end - own->begin;
  int64_t part = 0;
  for (uint32_t s = 0; s < b.n_seqs; ++s)
    for (int64_t t = b.tok_off[s]; t < b.tok_off[s + 1]; t += kRowsPerPart, ++part) {
      if (!own && part % lane.count != lane.index) continue;
      const int64_t count = std::min<int64_t>(kRowsPerPart, b.tok_off[s + 1] - t);
      const uint32_t* pages = group.pages + group.page_off[s];
      const float* rows = n.in[x_index].f32() + t * row + first * layout.head_dim;
      if (slot.dtype == DVT_BF16)
        k(n).cache_write_bf16(reinterpret_cast<uint16_t*>(base), layout, pages, b.positions[t],
                              rows, row, count);
      else if (slot.dtype == DVT_I8_SCALED)
        k(n).cache_write_int8(reinterpret_cast<int8_t*>(base), layout, pages, b.positions[t], rows,
                              row, count);
      else
        k(n).cache_write_f32(reinterpret_cast<float*>(base), layout, pages, b.positions[t], rows,
                             row, count);
    }
}

// ---------------------------------------------------------------- attention

// What lanes have made of chunks of keys: of one node at a time.
struct Parts {
  AlignedBytes memory;
  // Chunks that are done, of each sequence and kv head in turn. Who does the last one merges them all.
  std::vector<std::atomic<uint32_t>> n_done;

  explicit Parts(int64_t n_kv_heads)
      : memory(aligned_bytes(kBytes)), n_done(static_cast<size_t>(kFewRows * n_kv_heads)) {}
  float* data() const { return reinterpret_cast<float*>(memory.get()); }

  static constexpr int64_t kBytes = 4 << 20;  // 4 tokens of 16 heads of 128 over 64,000 keys
};

struct Attend {
  float scale;
  int64_t window;
  std::shared_ptr<Parts> parts;  // null: heads are enough for all lanes
};

// One step's attention at one node.
class AttendStep {
 public:
  AttendStep(const NodeRun& n, size_t k_index, size_t v_index)
      : n_(n),
        attend_(*std::any_cast<Attend>(n.prepared)),
        states_(*n.step->states),
        key_(states_.slot(static_cast<uint32_t>(n.state[k_index]))),
        value_(states_.slot(static_cast<uint32_t>(n.state[v_index]))),
        layout_(layout_of(key_, states_.page_len())),
        group_(n.step->group(key_.group)),
        batch_(*n.step->batch),
        stride_(n.in[0].dim[1] * n.in[0].dim[2]),
        n_group_heads_(n.in[0].dim[1] / layout_.n_kv_heads) {}

  // Units are (sequence, block of tokens, kv head): those of a lane's own heads, or each for the lane
  // that comes for it first.
  void run_units(const Heads* own) const {
    constexpr int64_t kTokensPerUnit = 32;
    const Heads heads = own ? *own : Heads{0, layout_.n_kv_heads};
    int64_t unit = 0, mine = own ? 0 : n_.take();
    for (uint32_t s = 0; s < batch_.n_seqs; ++s)
      for (int64_t t = batch_.tok_off[s]; t < batch_.tok_off[s + 1]; t += kTokensPerUnit)
        for (int64_t head = heads.begin; head < heads.end; ++head, ++unit) {
          if (!own && unit != mine) continue;
          const int64_t count = std::min<int64_t>(kTokensPerUnit, batch_.tok_off[s + 1] - t);
          run_task(s, task(t, count, head));
          if (!own) mine = n_.take();
        }
  }

  // Whether heads alone would leave lanes idle, and the parts of all chunks have room.
  bool is_cut_by_keys(Lane lane) const {
    if (!attend_.parts || batch_.n_tokens > kFewRows || batch_.n_seqs > kFewRows ||
        batch_.n_seqs * layout_.n_kv_heads >= 4 * int64_t{lane.count})
      return false;
    int64_t need = 0, most = 0;
    for (uint32_t s = 0; s < batch_.n_seqs; ++s) {
      need += part_floats(s);
      most = std::max(most, chunks(s).end - chunks(s).begin);
    }
    return most > 1 && need * int64_t{sizeof(float)} <= Parts::kBytes;
  }
  void run_parts(Lane lane) const {
    int64_t unit = 0;
    float* parts = attend_.parts->data();  // [sequence][chunk][kv head]
    for (uint32_t s = 0; s < batch_.n_seqs; parts += part_floats(s), ++s) {
      const auto [begin, end] = chunks(s);
      for (int64_t chunk = begin; chunk < end; ++chunk)
        for (int64_t head = 0; head < layout_.n_kv_heads; ++head, ++unit) {
          if (unit % lane.count != lane.index) continue;
          kernels::AttendTask part = task(batch_.tok_off[s], n_tokens(s), head);
          part.parts = parts + ((chunk - begin) * layout_.n_kv_heads + head) * head_floats(s);
          part.chunk = chunk;
          run_task(s, part);
          std::atomic<uint32_t>& n_done =
              attend_.parts->n_done[static_cast<size_t>(s * layout_.n_kv_heads + head)];
          if (n_done.fetch_add(1, std::memory_order_acq_rel) + 1 < end - begin) continue;
          n_done.store(0, std::memory_order_relaxed);  // lanes meet before the next node
          merge_parts(s, head, parts + head * head_floats(s));
        }
    }
  }

 private:
  int64_t n_tokens(uint32_t s) const { return batch_.tok_off[s + 1] - batch_.tok_off[s]; }
  // Floats of the parts of one chunk and one kv head; of a whole sequence.
  int64_t head_floats(uint32_t s) const {
    return n_tokens(s) * n_group_heads_ * kernels::attend_part_len(layout_.head_dim);
  }
  int64_t part_floats(uint32_t s) const {
    return (chunks(s).end - chunks(s).begin) * layout_.n_kv_heads * head_floats(s);
  }
  // The rows of a sequence and a kv head, from the parts of the first chunk on.
  void merge_parts(uint32_t s, int64_t kv_head, const float* parts) const {
    const int64_t head_dim = layout_.head_dim;
    for (int64_t t = 0; t < n_tokens(s); ++t)
      for (int64_t i = 0; i < n_group_heads_; ++i, parts += kernels::attend_part_len(head_dim)) {
        float* out = n_.out[0].f32() + (batch_.tok_off[s] + t) * stride_;
        k(n_).attend_merge(out + (kv_head * n_group_heads_ + i) * head_dim, parts,
                           chunks(s).end - chunks(s).begin, layout_.n_kv_heads * head_floats(s),
                           head_dim);
      }
  }
  // The chunks that some token of a sequence sees.
  Lane::Range chunks(uint32_t s) const {
    if (n_tokens(s) == 0) return {0, 0};
    const int64_t first = batch_.positions[batch_.tok_off[s]], last = first + n_tokens(s) - 1;
    const int64_t seen = attend_.window > first ? 0 : first + 1 - attend_.window;
    return {seen / kernels::kAttendChunk, last / kernels::kAttendChunk + 1};
  }

  kernels::AttendTask task(int64_t t, int64_t count, int64_t kv_head) const {
    return {n_.out[0].f32() + t * stride_,
            stride_,
            n_.in[0].f32() + t * stride_,
            stride_,
            count,
            batch_.positions[t],
            kv_head,
            n_group_heads_,
            attend_.window,
            attend_.scale};
  }
  void run_task(uint32_t s, const kernels::AttendTask& task) const {
    const uint32_t* pages = group_.pages + group_.page_off[s];
    if (key_.dtype == DVT_BF16)
      k(n_).attend_bf16(task, layout_, reinterpret_cast<const uint16_t*>(key_.data),
                        reinterpret_cast<const uint16_t*>(value_.data), pages);
    else if (key_.dtype == DVT_I8_SCALED)
      k(n_).attend_int8(task, layout_, reinterpret_cast<const int8_t*>(key_.data),
                        reinterpret_cast<const int8_t*>(value_.data), pages);
    else
      k(n_).attend_f32(task, layout_, reinterpret_cast<const float*>(key_.data),
                       reinterpret_cast<const float*>(value_.data), pages);
  }

  const NodeRun& n_;
  const Attend& attend_;
  const HostStates& states_;
  const HostStates::Slot &key_, &value_;
  const kernels::KvLayout layout_;
  const dvt_page_group& group_;
  const dvt_batch& batch_;
  const int64_t stride_, n_group_heads_;
};

int64_t kv_heads(const GraphView& g, const dvt_node& n) {
  return g.dim(g.val(g.inputs(n)[1]).dim0 + 1).value;
}
bool needs_parts(const GraphView& g, const dvt_node& n, uint32_t n_lanes) {
  return kv_heads(g, n) % n_lanes != 0;
}
Attend attend_of(const GraphView& g, const dvt_node& n) {
  const int64_t window = g.i64(n, "window");
  return {static_cast<float>(g.f64(n, "scale")), window == 0 ? INT64_MAX : window, nullptr};
}

}  // namespace

void run_cache_write(const NodeRun& n, Lane lane, uint32_t) {
  write_rows(n, 0, 1, lane);
}

std::any prepare_attend(const GraphView& g, const dvt_node& n, Preparation&) {
  return attend_of(g, n);
}
void run_attend(const NodeRun& n, Lane, uint32_t) {
  AttendStep(n, 1, 2).run_units(nullptr);
}

std::any prepare_attention(const GraphView& g, const dvt_node& n, Preparation& program) {
  Attend attend = attend_of(g, n);
  if (needs_parts(g, n, program.n_lanes)) {
    std::any& shared = program.shared["parts of " + std::to_string(kv_heads(g, n)) + " kv heads"];
    if (!shared.has_value()) {
      const auto parts = std::make_shared<Parts>(kv_heads(g, n));
      shared = parts;
      program.at_start.push_back([parts](const StepView&, Lane lane) {
        if (lane.index > 0) return;  // a step that was cancelled may have left some
        for (std::atomic<uint32_t>& n_done : parts->n_done) n_done = 0;
      });
    }
    attend.parts = std::any_cast<std::shared_ptr<Parts>>(shared);
  }
  return attend;
}
CutRule cut_attention(const GraphView& g, const dvt_node& n) {
  return {kv_heads(g, n), 0b111};  // each with its query heads
}
void run_attention(const NodeRun& n, Lane lane, uint32_t phase) {
  const AttendStep step(n, 3, 4);
  if (n.units > 0) {
    const Lane::Range range = n.columns(lane, n.in[1].dim[1]);
    const Heads own{range.begin, range.end};
    if (phase == 1) return step.run_units(&own);
    write_rows(n, 1, 3, lane, &own);
    write_rows(n, 2, 4, lane, &own);
    return;
  }
  if (phase == 0) {
    write_rows(n, 1, 3, lane);
    write_rows(n, 2, 4, lane);
  } else if (step.is_cut_by_keys(lane)) {
    step.run_parts(lane);
  } else {
    step.run_units(nullptr);
  }
}

uint64_t attention_bytes(const dvt_graph& graph, uint32_t n_lanes) {
  const GraphView g(&graph);
  std::set<int64_t> buffers;  // by number of kv heads
  for (uint64_t i = 0; i < g.n_nodes(); ++i)
    if (g.op_name(g.node(i)) == "attention" && needs_parts(g, g.node(i), n_lanes))
      buffers.insert(kv_heads(g, g.node(i)));
  return buffers.size() * Parts::kBytes;
}

}  // namespace dovetail::cpu
