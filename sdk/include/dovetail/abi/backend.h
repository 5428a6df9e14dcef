/* Dovetail plugin interface, part 7: compute backends ("dovetail.backend/1").
 *
 * A backend says which ops it runs natively, which layout it wants each weight in, compiles a graph
 * and runs ragged batches. The core owns page tables, sequence slots and the repack cache; the
 * backend owns the bytes of states. Prefill and decode are one path: a batch mixes both. */
#ifndef DOVETAIL_ABI_BACKEND_H
#define DOVETAIL_ABI_BACKEND_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DVT_DEVICE_CPU = 1, DVT_DEVICE_GPU = 2, DVT_DEVICE_OTHER = 3 };
enum {
  DVT_DEVF_HOST_MEMORY = 1, /* reads and writes the host's memory: weights can be adopted */
  DVT_DEVF_ASYNC = 2        /* submit returns before the work is done: the next step can be launched meanwhile */
};

typedef struct dvt_device {
  uint32_t struct_size, kind, flags, reserved;
  dvt_str name; /* "AVX2, 2 threads"; valid while the plugin is loaded */
  uint64_t mem_total, mem_free; /* bytes; 0 = unknown */
} dvt_device;

typedef struct dvt_backend_info {
  uint32_t struct_size, flags;  /* DVT_DEVF_* */
  uint32_t preferred_page_len;  /* tokens; the core decides */
  uint32_t kv_dtype;            /* what kv_cache.dtype: auto means here for bf16 weights */
  dvt_str variant;              /* what results depend on besides the format: "avx2" */
} dvt_backend_info;

enum { DVT_NATIVE = 1, DVT_DECOMPOSE = 2, DVT_SLOW = 3, DVT_CANNOT = 4 };
typedef struct dvt_verdict {
  uint32_t level;
  uint32_t alt_rev;  /* a revision of the op that it does have, or 0 */
  dvt_str reason;    /* static text of the backend; empty for native */
} dvt_verdict;

/* Weights. `plan` answers per weight; weights of one plan group are packed together, in order. Arrays of uses and of
 * plans: stride [0].struct_size, which the host sets. */
typedef struct dvt_weight_use {
  uint32_t struct_size, access;
  dvt_str name;
  dvt_str stored; /* format in the file: "bf16", "int4.1" */
  dvt_str wanted; /* format the YAML asks for, without a layout's version: "int4"; empty = as stored */
  int64_t shape[DVT_MAX_DIMS];
  uint32_t ndim, reserved;
} dvt_weight_use;

enum { DVT_FILE_ROWS = 256 };
enum { DVT_PLAN_KEEP = 1, DVT_PLAN_PACK = 2, DVT_PLAN_PUT = 3 };
typedef struct dvt_weight_plan {
  uint32_t struct_size;
  uint32_t how;    /* KEEP: bind() gets the stored bytes as mapped; PACK: pack() into host memory, then
                      bind(); PUT: put() to the device */
  uint32_t group;  /* weights packed as one have the same number; else all different */
  uint32_t align;  /* of what bind() gets */
  uint64_t bytes;  /* of the group's packed form (of the weight for KEEP and PUT) */
  uint64_t layout_hash; /* keys the host's repack cache: equal hash, equal bytes; handed to bind() */
  dvt_str file_format; /* PACK of one matrix: the name under which a file may hold the packed bytes, static;
                          empty: they are this backend's own. Such bytes go by rows: packed in pieces of a
                          multiple of DVT_FILE_ROWS rows, a matrix gives the same bytes */
  dvt_str numbers_format; /* PACK without a file_format: under which name a file would hold the numbers that the packed
                             bytes stand for, static ("int4.1"); empty: those that are stored */
  uint64_t numbers_bytes; /* what they would take there; 0: `bytes` */
} dvt_weight_plan;

typedef struct dvt_compile_options {
  uint32_t struct_size, flags;
  uint32_t max_tokens, max_rows, max_seqs, reserved; /* upper bounds of every batch */
  const dvt_str* observed; /* names of values that must stay readable as outputs */
  uint64_t n_observed;
} dvt_compile_options;

/* Page tables of one group of state slots. Row r of sequence s is row r % page_len of page
 * pages[page_off[s] + r / page_len]; a row holds `rate` tokens. */
typedef struct dvt_page_group {
  uint32_t struct_size, group, page_len, rate;
  const uint32_t* page_off; /* [n_seqs + 1] */
  const uint32_t* pages;
} dvt_page_group;

/* Where a token comes from that is not known yet: row `row` of the ids that `ticket` samples, which is
 * the last ticket given or the one before. */
typedef struct dvt_token_from {
  uint64_t ticket; /* 0: take tokens[i] */
  uint32_t row, reserved;
} dvt_token_from;

typedef struct dvt_batch {
  uint32_t struct_size, flags;
  uint32_t n_tokens, n_seqs, n_rows, n_axes; /* T, S, R; axes of positions (1 but for multimodal rope) */
  const uint32_t* tok_off;   /* [S+1]: tokens of sequence s are tok_off[s] .. tok_off[s+1] */
  const uint32_t* slots;     /* [S] sequence slot of fixed states */
  const int32_t* tokens;     /* [T], or null with embeddings */
  const float* embeddings;   /* [T, d_model], or null */
  const int32_t* positions;  /* [A, T] */
  const uint32_t* out_rows;  /* [R] indices into the T tokens */
  const uint32_t* parents;   /* [T] draft tree, or null */
  const uint32_t* adapters;  /* [S], or null */
  const dvt_token_from* token_from; /* [T], or null */
  const dvt_page_group* groups;     /* stride groups[0].struct_size */
  uint64_t n_groups;
} dvt_batch;

/* A named result: "logits" [R, V] f32, "ids" [R] i32, an observed value [T, ...] f32. Host memory of
 * the caller, valid until the ticket is waited for. */
typedef struct dvt_output {
  dvt_str name;
  void* data;
  uint64_t bytes;
} dvt_output;

/* The lowest id on ties; NaN and ids that are not allowed never win. A row without a winner has id -1,
 * and counts as id 0 where a later step takes its token from there. */
enum { DVT_SAMPLE_ARGMAX = 1 };
typedef struct dvt_sampling {
  uint32_t struct_size, kind;
  const uint32_t* mask; /* bits [V/32] of ids allowed, or null */
} dvt_sampling;

enum { DVT_MEM_WEIGHTS = 1, DVT_MEM_STATE = 2, DVT_MEM_WORKSPACE = 3, DVT_MEM_STAGING = 4 };
typedef struct dvt_mem_row {
  uint32_t struct_size, tag;
  uint64_t live, peak, reserved;
} dvt_mem_row;

/* Rows [row0, row0 + rows) of a state slot in its canonical layout, for export, import. */
typedef struct dvt_chunk {
  uint32_t struct_size, state; /* index into the graph's states */
  uint32_t slot, reserved;     /* FIXED: the sequence slot */
  uint64_t row0, rows;
  uint32_t page_len, n_pages;
  const uint32_t* pages;       /* the sequence's page table, for PAGED */
  void* data;
  uint64_t bytes;
} dvt_chunk;

typedef struct dvt_backend_v1 {
  uint32_t struct_size, flags;
  dvt_code (*devices)(void* plugin, dvt_call*, dvt_device* out, uint64_t cap, uint64_t* need) DVT_NX; /* [load] cheap: no context */
  dvt_code (*open)(void* plugin, dvt_call*, uint32_t device, dvt_doc options, void** ctx) DVT_NX;      /* [load] */
  void (*close)(void* ctx) DVT_NX;                                                                   /* [load] */
  dvt_code (*info)(void* ctx, dvt_call*, dvt_backend_info* out) DVT_NX;                               /* [any] */
  dvt_code (*supports)(void* ctx, dvt_call*, const dvt_graph*, dvt_verdict* per_node) DVT_NX;         /* [any] pure */
  dvt_code (*plan)(void* ctx, dvt_call*, const dvt_weight_use*, dvt_weight_plan* out, uint64_t n) DVT_NX; /* [any] pure */
  /* Pure: writes the packed form of one group to dst. sources in the order of the plan. [any] */
  dvt_code (*pack)(void* ctx, dvt_call*, const dvt_weight_use* uses, const dvt_bytes* sources, uint64_t n, void* dst, uint64_t bytes) DVT_NX;
  /* Adopts memory that lives until close: what `plan` of these uses described. [object] */
  dvt_code (*bind)(void* ctx, dvt_call*, const dvt_weight_use* uses, uint64_t n, const dvt_weight_plan*, const void* p) DVT_NX;
  dvt_code (*put)(void* ctx, dvt_call*, dvt_str name, uint64_t offset, dvt_bytes part, uint32_t last) DVT_NX; /* [object] */
  /* States for `n_pages` pages of page_len rows in every group and `n_slots` sequences. Once. kv_dtype is
   * DVT_F32, DVT_BF16, DVT_I8_SCALED or what `info` asked for. [object] */
  dvt_code (*alloc_states)(void* ctx, dvt_call*, const dvt_state_spec*, uint64_t n, uint32_t kv_dtype, uint32_t page_len,
                           uint32_t n_pages, uint32_t n_slots) DVT_NX;
  /* Bytes that alloc_states and compile would take, before anything is loaded. [any] pure */
  dvt_code (*estimate)(void* ctx, dvt_call*, const dvt_graph*, const dvt_compile_options*, uint32_t kv_dtype, uint32_t page_len,
                       uint64_t* bytes_per_page, uint64_t* bytes_per_slot, uint64_t* workspace) DVT_NX;
  dvt_code (*compile)(void* ctx, dvt_call*, const dvt_graph*, const dvt_compile_options*, void** exe) DVT_NX; /* [object] */
  void (*drop)(void* exe) DVT_NX;                                                                    /* [object] */
  /* Starts the batch; batches run in the order they are given. The batch's arrays stay as they are,
   * and outputs are filled, until the ticket has been waited for. Allocates nothing. [queue] */
  dvt_code (*submit)(void* exe, dvt_call*, const dvt_batch*, const dvt_output* outs, uint64_t n_outs,
                     const dvt_sampling* sampling, uint64_t* ticket) DVT_NX;
  dvt_code (*wait)(void* exe, dvt_call*, uint64_t ticket) DVT_NX;                                     /* [queue] */
  dvt_code (*mem)(void* ctx, dvt_call*, dvt_mem_row* out, uint64_t cap, uint64_t* need) DVT_NX;       /* [any] */
  dvt_code (*export_state)(void* ctx, dvt_call*, const dvt_chunk*) DVT_NX;                            /* [object] */
  dvt_code (*import_state)(void* ctx, dvt_call*, const dvt_chunk*) DVT_NX;                            /* [object] */
  dvt_code (*copy_pages)(void* ctx, dvt_call*, uint32_t group, const uint32_t* src, const uint32_t* dst, uint64_t n) DVT_NX; /* [object] */
  /* FIXED states: keep a copy; go back to one. Optional where no state needs it. [object] */
  dvt_code (*snapshot)(void* ctx, dvt_call*, uint32_t slot, uint32_t snap) DVT_NX;
  dvt_code (*restore)(void* ctx, dvt_call*, uint32_t slot, uint32_t snap) DVT_NX;
  dvt_code (*reset_slot)(void* ctx, dvt_call*, uint32_t slot) DVT_NX;
  /* Streams through `bytes` at p with the backend's own best loop on all lanes; *seconds. [any] */
  dvt_code (*read_bandwidth)(void* ctx, dvt_call*, const void* p, uint64_t bytes, double* seconds) DVT_NX;
} dvt_backend_v1;

#ifdef __cplusplus
}
#endif
#endif
