// What `doctor` found, in words and as JSON.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/doctor/case_file.hpp"
#include "core/doctor/examination.hpp"

namespace dovetail::core {

struct DoctorReport {
  std::string config, backend, variant, trusted;
  std::string prompt;  // empty where ids were given
  std::vector<int32_t> ids;
  ExaminationReport found;
  std::string case_path;  // of the finding's case, if there is one
  uint64_t case_bytes = 0;

  std::string text() const;
  Node node() const;
};

/// A case run again.
struct ReplayReport {
  std::string path, backend;
  const CaseFile& file;
  OpError error;  // of the wanted value that is furthest off
  size_t value = 0;
  std::vector<int64_t> tail;  // of that value
  bool is_native = true;      // whether the backend has all of the case's ops

  std::string text() const;
  Node node() const;
};

}  // namespace dovetail::core
