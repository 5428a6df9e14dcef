/* Dovetail plugin interface, part 2: what the host offers a plugin.
 *
 * Documents (YAML sections, config.json, tokenizer.json, metadata) are parsed by the host, strictly,
 * and walked by handle; a plugin never parses YAML or JSON. Files are opened by the host, so that
 * path rules live in one place and a reader plugin needs no file system. There is one thread pool. */
#ifndef DOVETAIL_ABI_HOST_H
#define DOVETAIL_ABI_HOST_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  DVT_DOC_NULL = 0,
  DVT_DOC_BOOL = 1,
  DVT_DOC_INT = 2,
  DVT_DOC_FLOAT = 3,
  DVT_DOC_STR = 4,
  DVT_DOC_LIST = 5,
  DVT_DOC_MAP = 6
};

enum { DVT_LOG_DEBUG = 0, DVT_LOG_INFO = 1, DVT_LOG_WARN = 2, DVT_LOG_ERROR = 3 };

typedef struct dvt_host_v1 {
  uint32_t struct_size, abi_major, abi_minor, flags;
  void* self;

  void (*log)(void* self, int32_t level, dvt_str area, dvt_str msg) DVT_NX; /* [any] */
  /* Memory accounted to the plugin under `tag`. align is a power of two. Null when there is none. [any] */
  void* (*alloc)(void* self, uint64_t n, uint64_t align, dvt_str tag) DVT_NX;
  void (*release)(void* self, void* p) DVT_NX; /* [any] p from alloc, or null */

  /* Documents. Handles live as long as the object they were given to (or until doc_release for
   * those of parse_json). Strings stay valid as long. All [any]. */
  uint32_t (*doc_kind)(void* self, dvt_doc) DVT_NX;         /* DVT_DOC_NULL for handle 0 */
  uint64_t (*doc_len)(void* self, dvt_doc) DVT_NX;          /* of a list or map, else 0 */
  dvt_doc (*doc_find)(void* self, dvt_doc, dvt_str key) DVT_NX; /* 0 if not a map or absent */
  dvt_doc (*doc_at)(void* self, dvt_doc, uint64_t i, dvt_str* key) DVT_NX; /* key may be null */
  dvt_code (*doc_str)(void* self, dvt_doc, dvt_str* out) DVT_NX;   /* DVT_EINVAL: another kind */
  dvt_code (*doc_i64)(void* self, dvt_doc, int64_t* out) DVT_NX;
  dvt_code (*doc_f64)(void* self, dvt_doc, double* out) DVT_NX;    /* integers too */
  dvt_code (*doc_bool)(void* self, dvt_doc, uint32_t* out) DVT_NX;
  dvt_code (*doc_where)(void* self, dvt_doc, char* out, uint64_t cap, uint64_t* need) DVT_NX; /* "config.json:3:7" */
  dvt_code (*parse_json)(void* self, dvt_call*, dvt_bytes text, dvt_str source, dvt_doc* out) DVT_NX;
  void (*doc_release)(void* self, dvt_doc root) DVT_NX;

  /* Threads: the only pool. A lane is 0 .. n_lanes-1; the caller is lane 0.
   * parallel_for: splits [0, n) into pieces of at most `grain`, any lane takes any piece. Once the
   * call is cancelled, pieces are left out and it returns DVT_ECANCELLED. [any]
   * team_run: calls fn once per lane, at the same time; team_barrier (inside fn only) makes all
   * lanes meet. A whole model step is one team_run with a few barriers. One team at a time; [any],
   * a second caller waits. fn must not fail: it stores its own error. */
  uint32_t (*n_lanes)(void* self) DVT_NX;
  dvt_code (*parallel_for)(void* self, dvt_call*, uint64_t n, uint64_t grain,
                           void (*fn)(void* arg, uint64_t begin, uint64_t end, uint32_t lane) DVT_NX,
                           void* arg) DVT_NX;
  dvt_code (*team_run)(void* self, dvt_call*, void (*fn)(void* arg, uint32_t lane, uint32_t n_lanes) DVT_NX,
                       void* arg) DVT_NX;
  void (*team_barrier)(void* self) DVT_NX;

  /* Files. `name` is a plain file name or a path below the folder; anything that leaves the folder,
   * an absolute path, a NUL or a backslash is refused (DVT_EINVAL); absence is DVT_EIO. Files live
   * as long as the object that the folder was given to. [any] */
  dvt_code (*dir_open)(void* self, dvt_call*, dvt_dir, dvt_str name, dvt_file* out) DVT_NX;
  dvt_code (*dir_has)(void* self, dvt_dir, dvt_str name, uint32_t* yes) DVT_NX;
  dvt_code (*file_name)(void* self, dvt_file, dvt_str* out) DVT_NX; /* as messages should print it */
  dvt_code (*file_size)(void* self, dvt_file, uint64_t* out) DVT_NX;
  dvt_code (*file_read)(void* self, dvt_call*, dvt_file, uint64_t offset, void* dst, uint64_t n) DVT_NX;
  /* The whole file, read-only. DVT_EUNSUPPORTED where it cannot be mapped: then file_read. */
  dvt_code (*file_map)(void* self, dvt_call*, dvt_file, dvt_bytes* out) DVT_NX;

  /* The rest by name: "dovetail.ops/1" (ops.h), drafts, tracing. Null when there is none. [any] */
  const void* (*get_interface)(void* self, dvt_str name) DVT_NX;

  /* The i-th file right in the folder, in the order of names; DVT_EINVAL past the last one. Valid as long as
   * the folder. [any] */
  dvt_code (*dir_file)(void* self, dvt_dir, uint64_t i, dvt_str* name) DVT_NX;
} dvt_host_v1;

#ifdef __cplusplus
}
#endif
#endif
