/* Dovetail plugin interface, part 3: the descriptor, declared parameters, the manifest note.
 *
 * A plugin exports one symbol, dvt_plugin_query. The same facts stand in an ELF note, which the
 * host reads and checks before it maps a byte of code; the loader compares the two. */
#ifndef DOVETAIL_ABI_PLUGIN_H
#define DOVETAIL_ABI_PLUGIN_H

#include "base.h"
#include "host.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  DVT_PARAM_BOOL = 1,
  DVT_PARAM_INT = 2,
  DVT_PARAM_FLOAT = 3,
  DVT_PARAM_STR = 4,
  DVT_PARAM_MAP = 5,     /* free-form map, e.g. token id -> bias */
  DVT_PARAM_STR_LIST = 6,
  DVT_PARAM_INT_LIST = 7,
  DVT_PARAM_FLOAT_LIST = 8
};
enum {
  DVT_PARAM_REQUIRED = 1,     /* no default */
  DVT_PARAM_MIN_EXCLUSIVE = 2,
  DVT_PARAM_MAX_EXCLUSIVE = 4
};

/* One YAML parameter of a plugin. The first of a sampler stage is what its shorthand sets. */
typedef struct dvt_param {
  uint32_t struct_size, type, flags, reserved;
  dvt_str name;
  dvt_str default_text; /* a YAML scalar, "0.95"; empty with DVT_PARAM_REQUIRED or for no default */
  dvt_str choices;      /* of a string: "a|b|c"; empty = any */
  double min, max;      /* of numbers; -inf and +inf = unbounded */
  dvt_str help;         /* one line */
} dvt_param;

typedef struct dvt_plugin_v1 {
  uint32_t struct_size, abi_major, abi_minor, flags; /* the first 16 bytes never change */
  dvt_str abi_hash;           /* DVT_ABI_HASH of the headers it was built with */
  dvt_str id, kind, name, version; /* must equal the note */
  const dvt_param* params;    /* array, stride params[0].struct_size */
  uint64_t n_params;
  dvt_code (*start)(dvt_call*, const dvt_host_v1*, void** self) DVT_NX; /* [load] */
  dvt_code (*drain)(dvt_call*, void* self) DVT_NX;                      /* [load] finish work */
  void (*stop)(void* self) DVT_NX;                                      /* [load] nothing is called after it */
  const void* (*get_interface)(void* self, dvt_str name) DVT_NX;        /* [any] "dovetail.arch/1", ... */
} dvt_plugin_v1;

typedef const dvt_plugin_v1* (*dvt_plugin_query_fn)(uint32_t host_major, uint32_t host_minor);

#define DVT_EXPORT __attribute__((visibility("default")))
#define DVT_TEXT_(...) #__VA_ARGS__
#define DVT_TEXT(...) DVT_TEXT_(__VA_ARGS__)

#if defined(__SANITIZE_ADDRESS__)
#define DVT_SANITIZER_NAME "address"
#elif defined(__SANITIZE_THREAD__)
#define DVT_SANITIZER_NAME "thread"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DVT_SANITIZER_NAME "address"
#elif __has_feature(thread_sanitizer)
#define DVT_SANITIZER_NAME "thread"
#endif
#endif
#ifndef DVT_SANITIZER_NAME
#define DVT_SANITIZER_NAME "none"
#endif

/* The manifest: JSON of at most 16 KiB in a note named DOVETAIL, type 1, written by the assembler so
 * that LTO, --gc-sections and strip keep it. Each argument is a string literal; interfaces and keys
 * are comma-separated quoted words, put into JSON lists as they stand:
 *   DVT_NOTE("org.dovetail.arch.qwen3", "arch", "qwen3", "0.1.0", ("dovetail.arch/1"), ("qwen3"))
 * `keys` says what the plugin answers to: an architecture's model_types, a format's magic bytes and
 * file names, a tokenizer's file names and metadata keys, a backend's device kinds. */
#define DVT_NOTE_UNPAREN_(...) __VA_ARGS__
#define DVT_NOTE_ASCII_(text) ".ascii " DVT_TEXT(text) "\n"
#define DVT_NOTE_LIST_(paren) DVT_NOTE_ASCII_(DVT_TEXT(DVT_NOTE_UNPAREN_ paren))
#define DVT_NOTE_FIELD_(key, value) ".ascii \"\\\"" key "\\\":\\\"\"\n" DVT_NOTE_ASCII_(value) ".ascii \"\\\",\"\n"
#define DVT_NOTE(id, kind, name, version, interfaces, keys)                                        \
  __asm__(".pushsection .note.dovetail,\"a\",%note\n.balign 4\n.long 9,9f-8f,1\n"                 \
          ".asciz \"DOVETAIL\"\n.balign 4\n8:\n.ascii \"{\"\n"                                    \
          DVT_NOTE_FIELD_("id", id) DVT_NOTE_FIELD_("kind", kind) DVT_NOTE_FIELD_("name", name)    \
          DVT_NOTE_FIELD_("version", version) DVT_NOTE_FIELD_("abi_hash", DVT_ABI_HASH)            \
          DVT_NOTE_FIELD_("sanitizer", DVT_SANITIZER_NAME) DVT_NOTE_FIELD_("compiler", __VERSION__) \
          ".ascii \"\\\"abi\\\":[" DVT_TEXT(DVT_ABI_MAJOR) "," DVT_TEXT(DVT_ABI_MINOR) "],\"\n"    \
          ".ascii \"\\\"provides\\\":[\"\n" DVT_NOTE_LIST_(interfaces) ".ascii \"],\\\"keys\\\":[\"\n" \
          DVT_NOTE_LIST_(keys) ".asciz \"]}\"\n9:\n.balign 4\n.popsection\n")

#ifdef __cplusplus
}
#endif
#endif
