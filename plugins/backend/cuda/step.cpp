#include "step.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <kernels/attend.hpp>

namespace dovetail::cuda {
namespace {

const dvt_page_group& group_of(const dvt_batch& batch, uint32_t number) {
  StepView view;
  view.batch = &batch;
  return view.group(number);
}
int64_t power_of_two_from(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}
constexpr int64_t kLeastPages = 64;

}  // namespace

bool Step::has_few_shapes(const dvt_batch& batch) {
  return batch.tokens && batch.n_tokens > 0 && batch.n_tokens == batch.n_seqs &&
         batch.n_tokens == batch.n_rows;
}

StepShape Step::shape(const dvt_batch& batch, bool has_mask) const {
  StepShape out{batch.n_tokens, batch.n_rows, batch.n_seqs, 1, 0, has_mask};
  for (uint32_t t = 0; t < batch.n_tokens; ++t)
    out.room = std::max<int64_t>(out.room, int64_t{batch.positions[t]} + 1);
  for (const uint32_t group : groups_)
    out.n_pages = std::max<int64_t>(out.n_pages, group_of(batch, group).page_off[batch.n_seqs]);
  if (!has_few_shapes(batch)) return out;
  const int64_t most = std::min({max_.tokens, max_.rows, max_.seqs});
  out.n_tokens = out.n_rows = out.n_seqs = std::min(most, power_of_two_from(batch.n_tokens));
  out.room = kernels::kAttendChunk *
             power_of_two_from((out.room + kernels::kAttendChunk - 1) / kernels::kAttendChunk);
  out.n_pages = power_of_two_from(std::max(kLeastPages, out.n_pages));
  return out;
}

bool Step::send(const dvt_batch& batch, const StepShape& shape, const std::vector<int32_t>& from,
                const uint32_t* mask, int64_t n_mask_words, HostBytes& host) {
  for (const uint32_t group : groups_) (void)group_of(batch, group);
  staged_.clear();
  shape_ = shape;
  const int32_t* positions = batch.positions;
  copied_ =
      batch.n_tokens == 0 ? 0 : std::min_element(positions, positions + batch.n_tokens) - positions;
  // The values, and as many more of the copied token as the shape has.
  const auto filled = [this](const auto* values, int64_t n, int64_t n_places) {
    values_.assign(values, values + n);
    for (int64_t i = n; i < n_places; ++i) values_.push_back(static_cast<int32_t>(values[copied_]));
    return add(values_);
  };
  has_tokens_ = batch.tokens != nullptr;
  if (has_tokens_) tokens_at_ = filled(batch.tokens, batch.n_tokens, shape.n_tokens);
  from_at_ = filled(from.data(), batch.n_tokens, shape.n_tokens);
  positions_at_ = filled(positions, batch.n_tokens, shape.n_tokens);
  out_rows_at_ = filled(batch.out_rows, batch.n_rows, shape.n_rows);
  if (shape.has_mask)
    mask_at_ = add(mask, static_cast<size_t>(n_mask_words), static_cast<size_t>(n_mask_words));
  for (const int64_t tile_len : tile_lens_) add_tiles(batch, tile_len);
  for (const uint32_t group : groups_) add_tables(batch, group);

  if (host.n_bytes() < staged_.size()) host = HostBytes(device_, 2 * staged_.size());
  std::memcpy(host.get(), staged_.data(), staged_.size());
  const bool must_grow = sent_.n_bytes() < staged_.size();
  if (must_grow) {
    device_.wait();  // for what still reads the old one
    sent_ = DeviceBytes(device_, 2 * staged_.size());
  }
  device_.send(sent_.get(), host.get(), staged_.size());
  return must_grow;
}

kernels::cuda::StepRows Step::rows(uint32_t group) const {
  const Tables& t = tables_.at(group);
  return {positions(), at<uint32_t>(t.page_begin_at), at<uint32_t>(t.pages_at), shape_.n_tokens};
}
Step::Tiles Step::tiles(int64_t tile_len) const {
  const TileList& list = tiles_.at(tile_len);
  return {at<kernels::cuda::AttendTile>(list.at), list.n};
}

template <class T>
size_t Step::add(const T* values, size_t n, size_t n_places) {
  const size_t at = (staged_.size() + 15) / 16 * 16;
  staged_.resize(at + n_places * sizeof(T));
  if (n > 0) std::memcpy(staged_.data() + at, values, n * sizeof(T));
  return at;
}

void Step::add_tables(const dvt_batch& batch, uint32_t number) {
  const dvt_page_group& group = group_of(batch, number);
  page_begin_.clear();
  for (uint32_t s = 0; s < batch.n_seqs; ++s)
    page_begin_.insert(page_begin_.end(), batch.tok_off[s + 1] - batch.tok_off[s],
                       group.page_off[s]);
  page_begin_.resize(static_cast<size_t>(shape_.n_tokens),
                     page_begin_.empty() ? 0 : page_begin_[static_cast<size_t>(copied_)]);
  const size_t page_begin_at = add(page_begin_);
  tables_[number] = {page_begin_at, add(group.pages, group.page_off[batch.n_seqs],
                                        static_cast<size_t>(shape_.n_pages))};
}

void Step::add_tiles(const dvt_batch& batch, int64_t tile_len) {
  tile_list_.clear();
  for (uint32_t s = 0; s < batch.n_seqs; ++s)
    for (int64_t first = batch.tok_off[s]; first < batch.tok_off[s + 1]; first += tile_len)
      tile_list_.push_back(
          {static_cast<int32_t>(first),
           static_cast<int32_t>(std::min<int64_t>(tile_len, batch.tok_off[s + 1] - first))});
  for (int64_t t = batch.n_tokens; t < shape_.n_tokens; ++t)
    tile_list_.push_back({static_cast<int32_t>(t), 1});
  tiles_[tile_len] = {add(tile_list_), static_cast<int64_t>(tile_list_.size())};
}

}  // namespace dovetail::cuda
