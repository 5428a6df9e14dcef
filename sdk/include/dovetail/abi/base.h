/* Dovetail plugin interface, part 1: codes, strings, the call frame, dtypes.
 *
 * DRAFT. C11 and C++20; standalone. Nothing C++ crosses: fixed-width integers, floats, pointers and
 * the structs below. Every struct that may grow begins with struct_size, which its creator fills;
 * readers go only as far as it says (DVT_HAS). Tables grow at the end; functions never change.
 *
 * Rules that hold for every function in these headers
 *   strings   dvt_str is UTF-8 with a length, never NUL-terminated by contract; valid for the call.
 *   memory    whoever creates destroys; results go into caller buffers; nothing is freed across.
 *   sizes     "cap, need": the callee writes at most cap elements and sets *need to the full count;
 *             when need > cap it returns DVT_ETOOSMALL and the caller may call again. Records that begin
 *             with struct_size lie that far apart: the caller sets it in the first.
 *   errors    a dvt_code; the reason goes through dvt_call.fail. No exception crosses.
 *   threads   every slot has one tag:
 *             [load]   one thread, no other call into this plugin running
 *             [any]    any thread at any time
 *             [object] one call at a time per object (the first pointer argument)
 *             [queue]  one call at a time per executable; returns before the work is done
 */
#ifndef DOVETAIL_ABI_BASE_H
#define DOVETAIL_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>

#define DVT_ABI_MAJOR 0 /* draft: host and plugin must agree on DVT_ABI_HASH exactly */
#define DVT_ABI_MINOR 1

#ifdef __cplusplus
#define DVT_NX noexcept /* part of the type: a callback that may throw does not compile */
extern "C" {
#else
#define DVT_NX
#endif

typedef int32_t dvt_code; /* 0 ok; positive: the list below; negative: plugin specific */
typedef uint32_t dvt_id;  /* 0 = none */
typedef uint64_t dvt_doc; /* one value of a parsed document, owned by the host; 0 = none */
typedef uint64_t dvt_file; /* a file that the host opened; 0 = none */
typedef uint64_t dvt_dir;  /* a folder that the host opened; 0 = none */

enum {
  DVT_OK = 0,
  DVT_EINVAL = 1,       /* wrong input */
  DVT_EUNSUPPORTED = 2, /* an answer, not a fault: the host goes another way or says so */
  DVT_ENOMEM = 3,
  DVT_EDEVICE = 4,
  DVT_ECANCELLED = 5,
  DVT_EIO = 6,
  DVT_EFORMAT = 7, /* a file is damaged or not what it claims */
  DVT_EBUSY = 8,
  DVT_EINTERNAL = 9,
  DVT_EVERSION = 10,
  DVT_ETOOSMALL = 11 /* caller's buffer; *need says how many */
};

/* Element types of values in memory. Checkpoint and quantisation formats are named by strings
 * ("bf16", "int8"): the name is the contract, these are only for plain numbers. */
enum {
  DVT_F32 = 1,
  DVT_BF16 = 2,
  DVT_F16 = 3,
  DVT_F64 = 4,
  DVT_I8 = 5,
  DVT_U8 = 6,
  DVT_I16 = 7,
  DVT_I32 = 8,
  DVT_U32 = 9,
  DVT_I64 = 10,
  DVT_U64 = 11,
  DVT_BOOL = 12,
  DVT_ACTIVATION = 64, /* in graphs: the core picks the dtype that activations have in this model */
  DVT_I8_SCALED = 65   /* in states only. A row (of a row of two or more dimensions, each first index's
                          part) is int8 numbers, zeros to a multiple of 4 bytes, and a float32 that each
                          number is multiplied with */
};

#define DVT_MAX_DIMS 6

typedef struct dvt_str {
  const char* p;
  uint64_t n;
} dvt_str;

typedef struct dvt_bytes {
  const void* p;
  uint64_t n;
} dvt_bytes;

/* Bytes [begin, end) of a text. */
typedef struct dvt_range {
  uint64_t begin, end;
} dvt_range;

/* The call frame: error text, cancellation, progress, scratch. The caller allocates it; the callee
 * frees nothing in it. */
typedef struct dvt_call {
  uint32_t struct_size, flags;
  const uint32_t* cancel; /* read as a relaxed atomic; non-zero: stop soon with DVT_ECANCELLED */
  void* host;
  /* Copies the text. msg: what, got, expected, what to try; where: file:line:column or a scope. */
  void (*fail)(struct dvt_call*, dvt_code, dvt_str msg, dvt_str where) DVT_NX;
  /* Memory that dies with the call; null when there is none. */
  void* (*scratch)(struct dvt_call*, uint64_t n, uint64_t align) DVT_NX;
  /* Long work reports done of total (0 = unknown) in units that `what` names. */
  void (*progress)(struct dvt_call*, uint64_t done, uint64_t total, dvt_str what) DVT_NX;
} dvt_call;

/* A place to write a result of unknown length to. */
typedef struct dvt_sink {
  uint32_t struct_size, flags;
  void* self;
  dvt_code (*write)(void* self, dvt_call*, dvt_bytes part) DVT_NX;
} dvt_sink;

/* Does the other side's table reach this member, and is it filled? */
#define DVT_HAS(t, m) \
  ((t) && (t)->struct_size >= offsetof(__typeof__(*(t)), m) + sizeof((t)->m) && (t)->m)

#ifdef __cplusplus
}
#endif
#endif
