// A checkpoint opened as the program opens it, and all that it holds read.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/json.hpp"
#include "core/model/checkpoint.hpp"
#include "tests/fuzz/rig.hpp"

namespace dovetail::core::fuzz {

inline void read_checkpoint(const std::string& path, const std::string& format) {
  (void)plugin("format", format);  // there, or every input would be refused
  const Result<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(path, {format}, plugins());
  if (!opened) return must_explain(opened.status());
  unsigned sum = 0;
  std::vector<std::byte> rows;
  for (const TensorInfo& t : (*opened)->tensors()) {
    must(t.offset <= t.source->size() && t.bytes.size() <= t.source->size() - t.offset,
         "tensor \"" + t.name + "\" lies outside its file");
    for (const TensorInfo::Part& p : t.parts)
      must(p.offset <= p.source->size() && p.bytes.size() <= p.source->size() - p.offset,
           "a part of \"" + t.name + "\" lies outside its file");
    for (const std::byte b : t.bytes) sum += static_cast<unsigned>(b);
    if (t.shape.empty() || t.shape[0] <= 0 || t.shape[0] > 4096) continue;
    rows.resize(t.n_bytes);
    (void)(*opened)->read_rows(t, t.format, 0, t.shape[0], rows.data());
  }
  asm volatile("" : : "r"(sum));  // so that the reads are not left out
  for (const char* which : {"config", "generation", "tokenizer", "tokenizer_config"}) {
    const Result<const Node*> doc = (*opened)->document(which);
    if (!doc)
      must_explain(doc.status());
    else if (*doc != nullptr)
      (void)to_json(**doc);
  }
}

}  // namespace dovetail::core::fuzz
