// quantize(): a model's weights in the formats that its config asks for, as files of a checkpoint.
//
// The backend packs the matrices, as it would when it loads them; the format plugin says what the files
// look like; this writes them, a few rows at a time. What the backend then maps are the same bytes.
#pragma once

#include <dovetail/abi/format.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/model/model.hpp"

namespace dovetail::core {

struct QuantizeOptions {
  std::filesystem::path folder;  // exists, and is empty
  uint64_t max_file_bytes = 0;   // of the tensors in one file; a single tensor may be larger
  const uint32_t* cancel = nullptr;
  ProgressFn progress = {};
};

struct QuantizeReport {
  struct Sum {
    uint64_t n_tensors = 0, bytes = 0;
  };
  std::map<std::string, Sum> formats;  // of what was written
  uint64_t bytes = 0, bytes_before = 0;
  std::vector<std::string> files;     // with tensors
  std::vector<std::string> left_out;  // tensors that the model does not read
};

/// Writes the weights of a model that was loaded as far as its plan. Memory: a few MiB, and what the
/// system keeps of the mapped files.
///
/// errors  kUnsupported: no weight can be packed in a form that files hold. kIo: the disk is full.
///         kCancelled. What has been written stays in the folder.
Result<QuantizeReport> quantize(const Model& model, const dvt_format_v1& writer, void* writer_self,
                                const QuantizeOptions& options);

/// Writes what a checkpoint has beside its tensors: the files as they are, and the documents of a format
/// that keeps them elsewhere. A tokenizer or template that the config names takes the place of the
/// checkpoint's.
///
/// errors  kIo, kFormat
Status write_documents(Model& model, const Settings& settings, const std::filesystem::path& folder);

}  // namespace dovetail::core
