// A safetensors file, or with '{' as its first byte the index of a folder of two shards.
#include "tests/fuzz/read_checkpoint.hpp"

namespace {

// One float32 tensor of two elements.
std::string shard(const std::string& tensor) {
  std::string header = "{\"" + tensor + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  out[0] = static_cast<char>(header.size());
  return out + header + std::string(8, '\x3f');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dovetail::core::fuzz;
  static const InputFolder folder;
  static const bool is_made = [] {
    folder.write("model-00001-of-00002.safetensors", shard("a"));
    folder.write("model-00002-of-00002.safetensors", shard("b"));
    folder.write("config.json", R"({"model_type": "any"})");
    return true;
  }();
  (void)is_made;
  const bool is_index = size > 0 && data[0] == '{';
  const std::string name = is_index ? "model.safetensors.index.json" : "model.safetensors";
  folder.write(name, {reinterpret_cast<const char*>(data), size});
  read_checkpoint(folder.path(), "safetensors");
  folder.remove(name);
  return 0;
}
