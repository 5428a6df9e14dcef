// OpCase: a few nodes of a graph with the numbers that they read: something that any backend can run alone.
//
// A graph has no inputs but the batch's. Values that other nodes would have made are fed as float32 tables, one row a
// token, which `embed` reads: the tokens of such a case are row numbers. So every backend that keeps its contract can
// be fed, and nothing is asked of it that a model would not ask.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/op_registry.hpp"

namespace dovetail::core {

struct OpCase {
  // Values are numbered; each is given by one entry of these lists, or by a node.
  struct Input {
    uint32_t val;
    std::string name;  // of the batch: "tokens", "positions", "out_rows"
  };
  struct Fed {
    uint32_t val;
    bool is_of_rows;            // [R, tail]; else [T, tail]
    std::vector<int64_t> tail;  // the dimensions after the first
    std::vector<float>
        numbers;  // [n_tokens, tail]; of a value of rows those at the rows' tokens count
  };
  struct Weight {
    uint32_t val;
    std::string name, stored, wanted;  // as dvt_weight_use has them
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;
    std::shared_ptr<const std::vector<std::byte>> owner;  // of the bytes, if not the checkpoint
  };
  struct State {
    uint32_t val;
    std::string name;
    dvt_state_spec spec;  // without the name
  };
  struct Node {
    std::string op;
    uint32_t rev = 1;
    std::string scope;
    std::vector<uint32_t> in, out;  // kNoValue: absent
    std::vector<Attr> attrs;
  };
  /// One batch of the one sequence.
  struct Step {
    std::vector<int32_t> tokens, positions;  // tokens: ids, where nothing is fed
    std::vector<uint32_t> rows;              // out_rows, of this step's tokens
  };

  std::vector<Input> inputs;
  std::vector<Fed> fed;
  std::vector<Weight> weights;
  std::vector<State> states;
  std::vector<Node> nodes;
  std::vector<uint32_t> wanted;  // values to compare
  std::vector<Step> steps;

  size_t n_tokens() const;
  /// The tokens, counted over all steps, of which values [R, ..] have rows.
  std::vector<size_t> row_tokens() const;
  bool reads(std::string_view input) const;
};

/// A case as a backend compiles it.
struct CaseGraph {
  struct Output {
    std::string name;
    bool is_of_rows;
    std::vector<int64_t> tail;
    size_t width;  // the product of the tail
  };
  Graph graph;
  std::vector<Output> outputs;  // in the order of `wanted`
};

/// The name of the table that gives the fed value i: no checkpoint has such a tensor.
std::string fed_name(size_t i);

/// errors  kInvalid: values, shapes or attributes that do not fit each other. kUnsupported: an op that nobody knows;
///         a wanted value that has no row for each token.
Result<CaseGraph> graph_of(const OpCase& c, const OpRegistry& ops);

/// Whether a value has one row for each token ("T") or each wanted row ("R"), all else fixed, in float32.
bool has_rows(const Graph& graph, uint32_t val);

}  // namespace dovetail::core
