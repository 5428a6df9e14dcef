#include "step.hpp"

#include <algorithm>
#include <cstring>

namespace dovetail::cuda {
namespace {

const dvt_page_group& group_of(const dvt_batch& batch, uint32_t number) {
  StepView view;
  view.batch = &batch;
  return view.group(number);
}

}  // namespace

void Step::send(const dvt_batch& batch, const int32_t* tokens, const uint32_t* mask,
                int64_t n_mask_words) {
  for (const uint32_t group : groups_) (void)group_of(batch, group);
  staged_.clear();
  n_tokens_ = batch.n_tokens;
  last_pos_ = 0;
  for (uint32_t t = 0; t < batch.n_tokens; ++t)
    last_pos_ = std::max<int64_t>(last_pos_, batch.positions[t]);
  tokens_at_ = tokens ? add(tokens, batch.n_tokens) : 0;
  positions_at_ = add(batch.positions, batch.n_tokens);
  out_rows_at_ = add(batch.out_rows, batch.n_rows);
  has_mask_ = mask != nullptr;
  if (has_mask_) mask_at_ = add(mask, static_cast<size_t>(n_mask_words));
  for (const uint32_t group : groups_) add_tables(batch, group);
  for (const int64_t tile_len : tile_lens_) add_tiles(batch, tile_len);
  if (sent_.n_bytes() < staged_.size()) {
    device_.wait();  // for what still reads the old one
    sent_ = DeviceBytes(device_, 2 * staged_.size());
  }
  device_.copy_in(sent_.get(), staged_.data(), staged_.size());
}

kernels::cuda::StepRows Step::rows(uint32_t group) const {
  const Tables& t = tables_.at(group);
  return {positions(), at<uint32_t>(t.page_begin_at), at<uint32_t>(t.pages_at), n_tokens_};
}
Step::Tiles Step::tiles(int64_t tile_len) const {
  const TileList& list = tiles_.at(tile_len);
  return {at<kernels::cuda::AttendTile>(list.at), list.n};
}

template <class T>
size_t Step::add(const T* values, size_t n) {
  const size_t at = (staged_.size() + 15) / 16 * 16;
  staged_.resize(at + n * sizeof(T));
  if (n > 0) std::memcpy(staged_.data() + at, values, n * sizeof(T));
  return at;
}

void Step::add_tables(const dvt_batch& batch, uint32_t number) {
  const dvt_page_group& group = group_of(batch, number);
  page_begin_.clear();
  for (uint32_t s = 0; s < batch.n_seqs; ++s)
    page_begin_.insert(page_begin_.end(), batch.tok_off[s + 1] - batch.tok_off[s],
                       group.page_off[s]);
  const size_t page_begin_at = add(page_begin_.data(), page_begin_.size());
  tables_[number] = {page_begin_at, add(group.pages, group.page_off[batch.n_seqs])};
}

void Step::add_tiles(const dvt_batch& batch, int64_t tile_len) {
  tile_list_.clear();
  for (uint32_t s = 0; s < batch.n_seqs; ++s)
    for (int64_t first = batch.tok_off[s]; first < batch.tok_off[s + 1]; first += tile_len)
      tile_list_.push_back(
          {static_cast<int32_t>(first),
           static_cast<int32_t>(std::min<int64_t>(tile_len, batch.tok_off[s + 1] - first))});
  tiles_[tile_len] = {add(tile_list_.data(), tile_list_.size()),
                      static_cast<int64_t>(tile_list_.size())};
}

}  // namespace dovetail::cuda
