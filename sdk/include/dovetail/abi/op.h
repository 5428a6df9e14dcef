/* Dovetail plugin interface, part 5: an op that a plugin brings itself ("dovetail.op/1").
 *
 * The plugin gives a shape rule and a function over host memory. A backend whose memory the host can
 * address calls the function; others copy the operands in and out. */
#ifndef DOVETAIL_ABI_OP_H
#define DOVETAIL_ABI_OP_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A dense row-major array in host memory. */
typedef struct dvt_view {
  void* data;
  int64_t ne[DVT_MAX_DIMS];
  uint32_t dtype, ndim;
} dvt_view;

/* Pages of one state slot. Row r of a sequence, with d the first index of a row of two or more
 * dimensions (else 0), starts at
 * base + pages[page_off[seq] + r / page_len] * page_bytes + d * outer_bytes + (r % page_len) * row_bytes. */
typedef struct dvt_state_view {
  uint8_t* base;
  uint64_t page_bytes, outer_bytes, row_bytes;
  const uint32_t* page_off; /* [n_seqs + 1] */
  const uint32_t* pages;
  uint32_t page_len, dtype;
} dvt_state_view;

typedef struct dvt_op_args {
  uint32_t struct_size, n_in, n_out, n_states;
  const dvt_view* in;
  const dvt_view* out;
  const dvt_state_view* states; /* those inputs that are states, in order */
  const dvt_attr_in* attrs;
  uint64_t n_attrs;
  uint32_t n_seqs, n_tokens;
  const uint32_t* tok_off;    /* [n_seqs + 1]: rows of each sequence */
  const int32_t* positions;   /* [n_tokens] */
} dvt_op_args;

typedef struct dvt_op_v1 {
  uint32_t struct_size, rev;
  dvt_str name; /* "x.hash/mix": the part before the slash names its owner */
  /* Fills the shape and dtype of each output. [any] */
  dvt_code (*infer)(dvt_call*, const dvt_val* in_vals, const dvt_dim* const* in_dims, uint64_t n_in,
                    const dvt_attr_in* attrs, uint64_t n_attrs, dvt_val* out_vals,
                    dvt_dim (*out_dims)[DVT_MAX_DIMS], uint64_t n_out) DVT_NX;
  dvt_code (*run)(dvt_call*, const dvt_op_args*) DVT_NX; /* [any]; called from one thread */
} dvt_op_v1;

/* What an op plugin's (or architecture plugin's) "dovetail.op/1" interface is. */
typedef struct dvt_op_set_v1 {
  uint32_t struct_size, n_ops;
  const dvt_op_v1* const* ops;
} dvt_op_set_v1;

/* The host's "dovetail.ops/1": how a backend finds the function of a DVT_TIER_PLUGIN op. */
typedef struct dvt_ops_v1 {
  uint32_t struct_size, flags;
  void* self;
  const dvt_op_v1* (*find)(void* self, dvt_str name, uint32_t rev) DVT_NX; /* [any] null if unknown */
} dvt_ops_v1;

#ifdef __cplusplus
}
#endif
#endif
