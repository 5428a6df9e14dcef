// A GGUF file: its header, its tensors' bytes, and the documents that its keys become.
#include "tests/fuzz/read_checkpoint.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dovetail::core::fuzz;
  static const InputFolder folder;
  folder.write("m.gguf", {reinterpret_cast<const char*>(data), size});
  read_checkpoint(folder.file("m.gguf"), "gguf");
  return 0;
}
