// A case with what is right, as a file that a plugin's author can run: safetensors, so that other programs can read
// its numbers, with the graph and all else as JSON in the metadata. docs/plugin-guide.md says what stands in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/doctor/examination.hpp"
#include "core/doctor/op_case.hpp"

namespace dovetail::core {

struct CaseFile {
  OpCase op_case;
  std::vector<std::vector<float>> expected;  // of each wanted value, as CaseOutputs has them
  double tolerance = 0;
  std::string scope, op;  // that were blamed
  // Where it was found.
  std::string backend, trusted, arch;
  Node params;  // of the backend
  uint32_t kv_dtype = 0, page_len = 0;
};

/// errors  kIo
Status write_case_file(const std::filesystem::path& path, const CaseFile& file);

/// errors  kIo; kFormat: not such a file, damaged, or with numbers that no backend should be given. Whether its nodes
///         fit each other graph_of() says.
Result<CaseFile> read_case_file(const std::filesystem::path& path);

}  // namespace dovetail::core
