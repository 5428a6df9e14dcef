/* Dovetail plugin interface, part 10: checkpoint formats ("dovetail.format/1").
 *
 * A format reads the table of tensors and the documents of a checkpoint. The host opens the files,
 * maps them, checks every offset against the file's size and hands tensor bytes to the backend
 * without the format in the path. */
#ifndef DOVETAIL_ABI_FORMAT_H
#define DOVETAIL_ABI_FORMAT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dvt_format_open {
  uint32_t struct_size, flags;
  dvt_dir dir;   /* the checkpoint's folder */
  dvt_file file; /* the file the user named, or 0 when a folder was named */
} dvt_format_open;

typedef struct dvt_tensor {
  uint32_t struct_size, ndim;
  dvt_str name;   /* canonical */
  dvt_str format; /* "bf16", "float32", "f16", "i64", "q4_k", ... */
  int64_t shape[DVT_MAX_DIMS];
  dvt_file file;
  uint64_t offset, bytes; /* in that file */
} dvt_tensor;

typedef struct dvt_format_v1 {
  uint32_t struct_size, flags;
  /* How well this reader fits: 0 not at all, 100 sure. head: the first bytes (at most 4096) of the
   * file; for a folder head is empty and dir is asked. [any] */
  dvt_code (*probe)(void* plugin, dvt_call*, const dvt_format_open*, dvt_bytes head, uint32_t* score) DVT_NX;
  dvt_code (*open)(void* plugin, dvt_call*, const dvt_format_open*, void** reader) DVT_NX; /* [load] */
  void (*close)(void* reader) DVT_NX;                                                     /* [load] */
  /* Strings stay valid until close. [object] */
  dvt_code (*tensors)(void* reader, dvt_call*, dvt_tensor* out, uint64_t cap, uint64_t* need) DVT_NX;
  /* "config" (model config in Hugging Face's vocabulary), "generation" (sampling defaults),
   * "tokenizer" (the definition), "tokenizer_config" (chat template, special tokens). *out = 0 when
   * the checkpoint has none. Valid until close. [object] */
  dvt_code (*document)(void* reader, dvt_call*, dvt_str which, dvt_doc* out) DVT_NX;
} dvt_format_v1;

#ifdef __cplusplus
}
#endif
#endif
