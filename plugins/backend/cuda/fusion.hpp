// Several ops of a graph as one node, for which there is one launch where tokens are few (kernels/cuda_decode.hpp).
//
//   cuda.linear   x, norm weight, w, bias, residual       linear(rms_norm(x)) + residual; norm, bias and residual
//                                                         may each be absent. Attributes: norm.*, of rms_norm
//   cuda.gate_up  x, norm weight, two matrices, two       swiglu of two products of rms_norm(x). Attributes: norm.*
//                 biases
//   cuda.qkv      x, norm weight, three matrices, three   rms_norm, the products, the norms of heads, rope, and k and
//                 biases, norm weights of heads of q and  v into the cache; gives q. Attributes: those of rope,
//                 of k, states of keys and of values      norm.*, q_norm.* and k_norm.*
#pragma once

#include <dovetail/graph_copy.hpp>

namespace dovetail::cuda {

/// The graph with those nodes where it computes what they mean and nobody else reads, or observes, a value on the
/// way; what was `attention` is then `attend`. The bits are those of the single ops.
GraphCopy with_fused_ops(GraphCopy graph, const dvt_compile_options& options);

}  // namespace dovetail::cuda
