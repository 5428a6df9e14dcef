#include "core/model/memory_plan.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/base/cgroup.hpp"
#include "core/base/files.hpp"

namespace dovetail::core {
namespace {

std::optional<uint64_t> meminfo_available() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1) return uint64_t{kib} * 1024;
  }
  return std::nullopt;
}

}  // namespace

uint64_t available_memory() {
  const uint64_t system = meminfo_available().value_or(UINT64_MAX);
  return std::min(system, memory_left(ControlGroups::of_this_process()));
}

uint64_t MemoryPlan::private_bytes() const {
  uint64_t sum = 0;
  for (const Item& i : items) sum += i.is_private ? i.bytes : 0;
  return sum;
}

uint64_t MemoryPlan::mapped_bytes() const {
  uint64_t sum = 0;
  for (const Item& i : items) sum += i.is_private ? 0 : i.bytes;
  return sum;
}

Status MemoryPlan::check() const {
  if (private_bytes() <= available) return Status::ok();
  std::string message = "the model needs " + bytes_text(private_bytes()) +
                        " of memory of its own, " + bytes_text(available) + " is free (";
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].is_private)
      message +=
          (message.back() == '(' ? "" : ", ") + items[i].name + " " + bytes_text(items[i].bytes);
  message += ")";
  message += max_context > 0
                 ? "; a cache of " + std::to_string(max_context) +
                       " tokens would fit: set kv_cache.max_tokens=" + std::to_string(max_context)
             : weights_expand
                 ? "; the weights are expanded: backend.weights=int8 takes a quarter of float32"
                 : "; not even one token would fit: use a smaller model";
  return {Code::kNoMemory, message};
}

std::string MemoryPlan::text() const {
  std::ostringstream out;
  size_t width = 0;
  for (const Item& i : items) width = std::max(width, i.name.size());
  const auto line = [&](const std::string& name, uint64_t bytes, const std::string& detail) {
    std::string size = bytes_text(bytes);
    out << "  " << name << std::string(width + 2 - std::min(width, name.size()), ' ')
        << std::string(9 - std::min<size_t>(9, size.size()), ' ') << size << "  " << detail << "\n";
  };
  for (const Item& i : items) line(i.name, i.bytes, i.detail);
  line("of its own", private_bytes(), "of " + bytes_text(available) + " available");
  if (mapped_bytes() > 0) line("mapped", mapped_bytes(), "shared with the page cache");
  if (promoted_bytes > 0)
    line("of these moved", promoted_bytes,
         "to 2 MiB pages of its own, in the background, while memory allows");
  out << "  a token takes " << bytes_text(bytes_per_token)
      << " of KV cache; the longest context that fits is " << max_context << " tokens\n";
  return out.str();
}

Node MemoryPlan::node() const {
  Node out = Node::make_map();
  Node list = Node::make_list();
  for (const Item& i : items) {
    Node item = Node::make_map();
    item.set("name", Node::make_string(i.name));
    item.set("bytes", Node::make_int(static_cast<int64_t>(i.bytes)));
    item.set("private", Node::make_bool(i.is_private));
    item.set("detail", Node::make_string(i.detail));
    list.items().push_back(std::move(item));
  }
  out.set("items", std::move(list));
  out.set("private_bytes", Node::make_int(static_cast<int64_t>(private_bytes())));
  out.set("mapped_bytes", Node::make_int(static_cast<int64_t>(mapped_bytes())));
  out.set("promoted_bytes", Node::make_int(static_cast<int64_t>(promoted_bytes)));
  out.set("available_bytes",
          Node::make_int(static_cast<int64_t>(std::min<uint64_t>(available, INT64_MAX))));
  out.set("kv_bytes_per_token", Node::make_int(static_cast<int64_t>(bytes_per_token)));
  out.set("kv_tokens", Node::make_int(static_cast<int64_t>(n_tokens)));
  out.set("max_context", Node::make_int(static_cast<int64_t>(max_context)));
  out.set("fits", Node::make_bool(private_bytes() <= available));
  return out;
}

}  // namespace dovetail::core
