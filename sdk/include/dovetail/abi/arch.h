/* Dovetail plugin interface, part 6: architectures ("dovetail.arch/1").
 *
 * An architecture reads the model's config, says which state a sequence carries and builds graphs.
 * It never touches a tensor's bytes, a device, a dtype or a thread. */
#ifndef DOVETAIL_ABI_ARCH_H
#define DOVETAIL_ABI_ARCH_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The checkpoint's tensors by canonical (Hugging Face) name. A model without a checkpoint has none. */
typedef struct dvt_catalogue_v1 {
  uint32_t struct_size, flags;
  void* self;
  /* DVT_EINVAL when there is no such tensor. format: "bf16", "float32", ... [any] */
  dvt_code (*find)(void* self, dvt_str name, dvt_str* format, uint32_t* ndim, int64_t shape[DVT_MAX_DIMS]) DVT_NX;
  uint64_t (*count)(void* self) DVT_NX;
} dvt_catalogue_v1;

typedef struct dvt_arch_open {
  uint32_t struct_size, flags;
  dvt_doc config;  /* config.json's tree, or the YAML's model section where there is no checkpoint */
  dvt_doc options; /* the YAML's own architecture parameters, validated; may be 0 */
  const dvt_catalogue_v1* catalogue;
} dvt_arch_open;

typedef struct dvt_arch_info {
  uint32_t struct_size, n_layers;
  int64_t vocab_size, max_seq_len, d_model;
} dvt_arch_info;

typedef struct dvt_arch_v1 {
  uint32_t struct_size, flags;
  /* Checks the config and every tensor's shape, and reports all problems, one a line. [load] */
  dvt_code (*open)(void* plugin, dvt_call*, const dvt_arch_open*, void** arch) DVT_NX;
  void (*close)(void* arch) DVT_NX;                                       /* [object] */
  dvt_code (*info)(void* arch, dvt_call*, dvt_arch_info* out) DVT_NX;     /* [object] */
  dvt_code (*states)(void* arch, dvt_call*, dvt_state_spec* out, uint64_t cap, uint64_t* need) DVT_NX; /* [object] */
  /* "main" now; "mtp", "draft", "embed" later. DVT_EUNSUPPORTED for a name it does not have. [object] */
  dvt_code (*build)(void* arch, dvt_call*, const dvt_builder_v1*, dvt_str graph_name) DVT_NX;
  /* The stored name of a canonical tensor in files of `format`, where it differs. Optional. [object] */
  dvt_code (*alias)(void* arch, dvt_call*, dvt_str format, dvt_str canonical, char* out, uint64_t cap, uint64_t* need) DVT_NX;
} dvt_arch_v1;

#ifdef __cplusplus
}
#endif
#endif
