/* Dovetail plugin interface, part 10: checkpoint formats ("dovetail.format/1").
 *
 * A format reads the table of tensors and the documents of a checkpoint. The host opens the files,
 * maps them, checks every offset against the file's size and hands tensor bytes to the backend
 * without the format in the path. A format may also say how tensors are written (lay_out). */
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

/* A part of a matrix that files hold in parts: levels here, scales there. */
typedef struct dvt_tensor_part {
  dvt_file file;
  uint64_t offset, bytes; /* in that file */
} dvt_tensor_part;

/* The name of a block format stands for one layout of bytes for ever; one that may change ends in its
 * version, as "int4.1": another layout of int4 is another name. Backends know the layouts. */
typedef struct dvt_tensor {
  uint32_t struct_size, ndim;
  dvt_str name;   /* canonical */
  dvt_str format; /* "bf16", "float32", "f16", "i64", "int4.1", "q4_k", ... */
  int64_t shape[DVT_MAX_DIMS]; /* of the numbers, also where the bytes are in blocks */
  dvt_file file;
  uint64_t offset, bytes; /* in that file */
  /* 0: rows (of the first dimension) are stored in order. n, even: in each run of n rows the one stored at
   * 2 i is row i and the one at 2 i + 1 is row n / 2 + i: heads made for a rotary embedding of neighbours. The
   * host puts them in order. */
  int64_t paired_rows;
  /* A matrix in parts has no bytes of its own: rows() makes them. Then file and offset say nothing, and format
   * and bytes are those of the form that rows() makes best, which loses nothing. `stored` says what the parts
   * are, with all that rows() knows of them beside their bytes: "gptq int4, groups of 128". */
  const dvt_tensor_part* parts;
  uint64_t n_parts; /* 0: a run of bytes in one file */
  dvt_str stored;
} dvt_tensor;

/* Gets the files of a checkpoint that is written. */
typedef struct dvt_file_sink {
  uint32_t struct_size, flags;
  void* self;
  /* A file of that name: `head`, then the bytes of tensors [first, first + n), in order, without gaps. */
  dvt_code (*file)(void* self, dvt_call*, dvt_str name, dvt_bytes head, uint64_t first, uint64_t n) DVT_NX;
} dvt_file_sink;

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
   * the checkpoint has none. Valid until close, or until it is dropped. [object] */
  dvt_code (*document)(void* reader, dvt_call*, dvt_str which, dvt_doc* out) DVT_NX;
  /* Optional. The files that hold these tensors (name, format, shape and bytes of each; file and offset
   * say nothing), as this format reads them from a folder. All tensors come once, in order; the data of
   * a file begins at a multiple of 64 and has at most max_bytes, or one tensor. The file without which
   * nothing is read comes last. [any] pure */
  dvt_code (*lay_out)(void* plugin, dvt_call*, const dvt_tensor*, uint64_t n, uint64_t max_bytes,
                      const dvt_file_sink*) DVT_NX;
  /* Needed where a tensor has parts: the reference dequantiser. Rows [row0, row0 + n) of tensor i of the list, made of
   * `parts`, the bytes of its parts in their order: in the tensor's own format, or in "float32" or "bf16", whatever
   * its own is. `out` has room for them, at a multiple of 64. [any] */
  dvt_code (*rows)(void* reader, dvt_call*, uint64_t i, const dvt_bytes* parts, dvt_str format, int64_t row0,
                   int64_t n, void* out) DVT_NX;
  /* Optional. The document of that name is not read any more: its memory may go. `document` makes it anew. [object] */
  void (*drop_document)(void* reader, dvt_str which) DVT_NX;
} dvt_format_v1;

#ifdef __cplusplus
}
#endif
#endif
