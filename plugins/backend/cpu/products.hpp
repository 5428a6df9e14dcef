// What becomes of a graph's products before it runs: sums of a residual and a product as one node, and
// products of one value after each other.
#pragma once

#include <dovetail/graph_copy.hpp>

namespace dovetail::cpu {

/// The graph with each add(r, linear(x, w)) as one node, "cpu.linear_add" or "cpu.linear_packed_add", of the
/// inputs x, w and r and with the output in r's memory: where the product has no bias and no other
/// reader, r none afterwards, and nobody observes them or the sum. The bits are those of the two nodes.
GraphCopy with_residuals(GraphCopy graph, const dvt_compile_options& options);

/// The graph with each product as early as its inputs are there, in the order that they had. The q, k and v
/// products of a layer, say, come together: lanes meet once after all of them.
GraphCopy with_products_first(GraphCopy graph);

}  // namespace dovetail::cpu
