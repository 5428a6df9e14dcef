// The index of a sharded checkpoint: which tensor is in which file.
#pragma once

#include <dovetail/format.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::safetensors {

struct Shard {
  std::string name;  // as the index spells it
  File file;
  std::vector<std::string> tensors;  // that the index says are in it
};

struct Index {
  std::string file;                                          // for messages
  std::vector<Shard> shards;                                 // by name
  std::map<std::string, std::string, std::less<>> shard_of;  // tensor -> shard's name
};

/// Reads FOLDER/name and opens every shard that it lists, before anything is read from one.
/// errors   DVT_EFORMAT: no weight_map, a value that is no file name or leaves the folder. DVT_EIO:
///          shards that are not there, all of them in one line.
Index read_index(const FormatOpen& in, std::string_view name, Call call);

}  // namespace dovetail::safetensors
