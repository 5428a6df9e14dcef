// Examination: a model's ops, one after the other, on the backend that it runs on and on one that is trusted.
//
// Each op gets what the trusted backend gave for the ops before it, on both: an error is that op's own. Then the ops of
// each layer run together, as the backend joins them in a step, and are held to the tolerance of a whole layer. The
// tokens are read in two steps, all but the last and the last one, as a prompt and the first token after it are.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/doctor/case_run.hpp"
#include "core/doctor/op_case.hpp"
#include "core/doctor/op_error.hpp"
#include "core/model/model.hpp"

namespace dovetail::core {

/// A case that a backend gets wrong.
struct OpFinding {
  OpCase op_case;                      // as small as it could be made while it stays wrong
  size_t first_node = 0, n_nodes = 0;  // of the graph: the ops that are blamed
  std::string scope, op;               // of the last of them
  bool is_joined = false;              // the ops are right alone, and wrong together
  std::vector<std::string> inputs;     // for people: "[T, 1024]", "model.norm.weight [1024] bf16"
  std::string output;
  double tolerance = 0;
  // Of the wanted value that is furthest off; its rows count the tokens of the whole text.
  OpError error;
  std::vector<int64_t> tail;                 // of that value
  std::vector<std::vector<float>> expected;  // of the case's wanted values
  std::vector<CaseGraph::Output> outputs;
};

/// What was seen of all ops of one name.
struct OpSummary {
  size_t n = 0;
  double worst = 0, tolerance = 0;  // where worst / tolerance is the largest
  std::string scope;
};

struct ExaminationReport {
  size_t n_ops = 0, n_alone = 0, n_joined = 0;  // of the graph; examined alone; groups examined
  std::map<std::string, OpSummary> by_op;       // those examined alone
  OpSummary joined;
  std::optional<OpFinding> finding;  // the first one
};

struct ExaminationInput {
  const Model&
      model;  // its graph is as the checked backend runs it; its weights need not be loaded
  const CaseBackend& checked;
  const CaseBackend& trusted;
  const OpRegistry& ops;
  std::vector<int32_t> tokens;
  std::optional<double> tolerance;  // instead of those by format
  const uint32_t* cancel = nullptr;
  std::function<void(size_t done, size_t total, std::string_view what)> progress;
};

/// errors  what a backend reports of a case, with the op's place; kCancelled.
Result<ExaminationReport> examine(const ExaminationInput& in);

}  // namespace dovetail::core
