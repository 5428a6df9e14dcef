/* Dovetail plugin interface, part 4: the graph, and the builder that makes one.
 *
 * A graph is built once per model. It is flat tables of pointer-free records, read by stride so that
 * records may grow; ops are named by strings with a revision, attributes are typed and named, sizes
 * may be symbols. The host infers every shape and dtype, so a graph cannot be ill-typed. A new op is
 * an entry in the host's registry and never a change here. */
#ifndef DOVETAIL_ABI_GRAPH_H
#define DOVETAIL_ABI_GRAPH_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strings of a graph are named by dvt_id: 1-based index into its string table. */

/* A size: sym == 0 is the number `value`; else the symbol's name ("T" tokens in this step, "R" rows
 * whose output is wanted, "S" sequences in this step; the table is open). */
typedef struct dvt_dim {
  int64_t value;
  dvt_id sym;
  uint32_t reserved;
} dvt_dim;

enum {
  DVT_VAL_INPUT = 1,  /* fed by the batch: "tokens" [T] i32, "embeddings" [T,D], "positions" [A,T] i32,
                         "out_rows" [R] i32 */
  DVT_VAL_WEIGHT = 2, /* bind: index into weights */
  DVT_VAL_STATE = 3,  /* bind: index into states */
  DVT_VAL_COMPUTED = 4
};
enum {
  DVT_VALF_OUTPUT = 1,  /* a named output of the graph */
  DVT_VALF_OBSERVED = 2 /* must stay readable by its name in this executable; never fused away */
};

typedef struct dvt_val {
  dvt_id name; /* 0 for most computed values */
  uint32_t dtype, role, flags;
  uint32_t dim0, ndim; /* dims[dim0 .. dim0+ndim) */
  uint32_t bind, reserved;
} dvt_val;

/* One operation. Inputs and outputs are value indices edges[in0 ..], edges[out0 ..]; attributes are
 * attrs[attr0 .. attr0+n_attrs). An absent optional input is UINT32_MAX. */
typedef struct dvt_node {
  uint32_t op; /* index into ops */
  uint32_t in0, n_in, out0, n_out, attr0, n_attrs;
  dvt_id scope; /* "layers.3.attn" */
  uint32_t region, reserved;
} dvt_node;

typedef struct dvt_op_ref {
  dvt_id name; /* "linear" */
  uint16_t rev, tier; /* DVT_TIER_* */
} dvt_op_ref;
enum { DVT_TIER_CORE = 1, DVT_TIER_COMPOSITE = 2, DVT_TIER_VENDOR = 3, DVT_TIER_PLUGIN = 4 };

enum { DVT_ATTR_I64 = 1, DVT_ATTR_F64 = 2, DVT_ATTR_STR = 3 };
enum { DVT_ATTR_MUST = 1 }; /* a reader that does not know the key must refuse the node */

/* An attribute: n elements of its type at attr_data + offset (8-byte aligned). */
typedef struct dvt_attr {
  dvt_id key;
  uint16_t type, flags;
  uint64_t offset, n;
} dvt_attr;

/* How a weight is used. One weight may be used in several ways: access is a set. */
enum { DVT_ACCESS_DENSE = 1, DVT_ACCESS_ROWS = 2, DVT_ACCESS_EXPERT = 4 };

typedef struct dvt_weight_ref {
  dvt_id name; /* canonical tensor name */
  uint32_t access;
  uint32_t val; /* its value */
  int32_t slice_dim; /* -1: the whole tensor; else rows slice_begin..slice_end of that dim */
  int64_t slice_begin, slice_end;
} dvt_weight_ref;

/* What a sequence carries. */
enum {
  DVT_STATE_PAGED = 1,  /* rows per token (or per `rate` tokens) in pages */
  DVT_STATE_FIXED = 2,  /* one block per sequence: delta-net matrix, convolution tail */
  DVT_STATE_RING = 3,   /* the last `window` rows */
  DVT_STATE_INDEX = 4,  /* append-only rows, e.g. index keys */
  DVT_STATE_TOKENS = 5  /* token history */
};
enum { DVT_REWIND_ANY = 1, DVT_REWIND_SNAPSHOT = 2 };

/* One state slot. Its canonical layout, spoken by export and import, is [rows, dim...] row-major in
 * `dtype`, rows in position order (FIXED: [dim...]). In DVT_I8_SCALED the last dimensions, all but the
 * first where there are two or more, are the bytes of one scaled row. */
typedef struct dvt_state_spec {
  uint32_t struct_size, kind;
  dvt_str name;    /* "layers.3.k" */
  uint32_t dtype;  /* DVT_ACTIVATION: the KV cache dtype that the core picks (FIXED: float32 where it
                      picks DVT_I8_SCALED); DVT_F32; DVT_I32 */
  uint32_t ndim;
  int64_t dim[DVT_MAX_DIMS]; /* of one row */
  uint32_t rate;   /* tokens per row; 1 for K and V */
  uint32_t window; /* RING: rows kept; PAGED: sliding window in tokens, 0 = none */
  uint32_t rewind, group; /* group: slots of one group share page tables */
} dvt_state_spec;

typedef struct dvt_graph {
  uint32_t struct_size, revision;
  uint32_t node_stride, val_stride, dim_stride, op_stride, attr_stride, weight_stride;
  uint64_t n_nodes, n_vals, n_dims, n_ops, n_attrs, n_edges, n_weights, n_states, n_strs;
  uint64_t attr_bytes, n_chars; /* of attr_data and chars */
  const dvt_node* nodes;
  const dvt_val* vals;
  const dvt_dim* dims;
  const dvt_op_ref* ops;
  const dvt_attr* attrs;
  const dvt_weight_ref* weights;
  const dvt_state_spec* states; /* stride states[0].struct_size */
  const uint32_t* edges;
  const uint8_t* attr_data;
  const dvt_range* strs; /* string i+1 is chars[strs[i].begin .. strs[i].end) */
  const char* chars;
  uint64_t fingerprint; /* equal graphs have equal fingerprints */
} dvt_graph;

/* Attribute as given to the builder: n elements at data (for a string: n bytes). */
typedef struct dvt_attr_in {
  dvt_str key;
  uint32_t type, flags;
  const void* data;
  uint64_t n;
} dvt_attr_in;

typedef struct dvt_op_desc {
  uint32_t struct_size, rev;
  dvt_str op;
  const dvt_id* in; /* value handles; 0 = absent optional input */
  uint64_t n_in;
  const dvt_attr_in* attrs;
  uint64_t n_attrs;
  uint64_t n_out;
} dvt_op_desc;

/* The host's builder. Value handles are non-zero. The first failure is kept with its scope and all
 * later calls return it: an architecture need not check each one. [object] */
typedef struct dvt_builder_v1 {
  uint32_t struct_size, flags;
  void* self;
  dvt_code (*input)(void*, dvt_call*, dvt_str name, dvt_id* out) DVT_NX;
  /* `shape` must equal the checkpoint's; ndim 0 accepts any. */
  dvt_code (*weight)(void*, dvt_call*, dvt_str name, const int64_t* shape, uint32_t ndim, dvt_id* out) DVT_NX;
  dvt_code (*state)(void*, dvt_call*, dvt_str slot, dvt_id* out) DVT_NX;
  dvt_code (*emit)(void*, dvt_call*, const dvt_op_desc*, dvt_id* outs) DVT_NX;
  dvt_code (*scope)(void*, dvt_call*, dvt_str path) DVT_NX; /* of the nodes that follow */
  dvt_code (*output)(void*, dvt_call*, dvt_str name, dvt_id val) DVT_NX;
  dvt_code (*observe)(void*, dvt_call*, dvt_str name, dvt_id val) DVT_NX; /* a name for dumps: "layer_out.3" */
  dvt_code (*shape)(void*, dvt_call*, dvt_id val, dvt_dim* out, uint32_t cap, uint32_t* ndim) DVT_NX;
} dvt_builder_v1;

#ifdef __cplusplus
}
#endif
#endif
