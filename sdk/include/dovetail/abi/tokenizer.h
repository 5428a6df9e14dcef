/* Dovetail plugin interface, part 8: tokenizers ("dovetail.tokenizer/1") and their trainers
 * ("dovetail.tokenizer_trainer/1"). */
#ifndef DOVETAIL_ABI_TOKENIZER_H
#define DOVETAIL_ABI_TOKENIZER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a tokenizer is opened from: the parsed definition (tokenizer.json, or what a checkpoint's
 * metadata gives under the key that the manifest names), the folder for further files, YAML options. */
typedef struct dvt_tokenizer_open {
  uint32_t struct_size, flags;
  dvt_doc definition; /* and options: for the call alone */
  dvt_dir dir;     /* 0 when there is no folder */
  dvt_doc options; /* the YAML's tokenizer parameters, validated; may be 0 */
} dvt_tokenizer_open;

typedef struct dvt_tokenizer_info {
  uint32_t struct_size, flags;
  uint32_t n_ids;          /* one more than the largest id it can give or decode */
  uint32_t n_added;        /* added tokens */
  uint64_t max_step_bytes; /* most that one stream_step or stream_flush gives */
} dvt_tokenizer_info;

/* A token and the bytes of the caller's text that it covers. */
typedef struct dvt_tok {
  uint32_t id, flags;
  uint64_t begin, end;
} dvt_tok;

enum {
  DVT_ENC_SPECIAL_LITERAL = 1, /* everywhere: added tokens with special: true are plain text */
  DVT_ENC_ADDED_LITERAL = 2,   /* everywhere: all added tokens are plain text */
  DVT_ENC_ADD_SPECIAL = 4,     /* run the post-processor (BOS and the like) */
  DVT_ENC_STRICT_UTF8 = 8      /* refuse invalid UTF-8; default: replace it by U+FFFD */
};
enum { DVT_DEC_SKIP_SPECIAL = 1 };
enum { DVT_PIECE_SPECIAL = 1, DVT_PIECE_ADDED = 2 };

typedef struct dvt_tokenizer_v1 {
  uint32_t struct_size, flags;
  dvt_code (*open)(void* plugin, dvt_call*, const dvt_tokenizer_open*, void** t) DVT_NX; /* [load] */
  void (*close)(void* t) DVT_NX;                                                       /* [load] */
  dvt_code (*info)(void* t, dvt_call*, dvt_tokenizer_info* out) DVT_NX;                 /* [any] */
  /* `literal`: sorted ranges of text in which all added tokens are plain text, while normalisation
   * and the split see across their ends. [any] */
  dvt_code (*encode)(void* t, dvt_call*, dvt_str text, const dvt_range* literal, uint64_t n_literal, uint32_t flags,
                     dvt_tok* out, uint64_t cap, uint64_t* need) DVT_NX;
  /* Whole text of ids; unknown ids give nothing; broken UTF-8 gives U+FFFD. [any] */
  dvt_code (*decode)(void* t, dvt_call*, const uint32_t* ids, uint64_t n, uint32_t flags, char* out, uint64_t cap,
                     uint64_t* need) DVT_NX;
  /* The raw bytes of one token (maybe half a character); *flags DVT_PIECE_*. DVT_EINVAL: no such id. [any] */
  dvt_code (*piece)(void* t, dvt_call*, uint32_t id, uint32_t* flags, char* out, uint64_t cap, uint64_t* need) DVT_NX;
  /* The id whose content is exactly this text, added tokens first. DVT_EINVAL: none. [any] */
  dvt_code (*find)(void* t, dvt_call*, dvt_str content, uint32_t* id) DVT_NX;
  /* Streaming: step gives the characters that id completes (maybe none), never half of one; flush
   * what is left (U+FFFD for a broken tail). The parts joined equal decode(ids). cap must be at
   * least info.max_step_bytes, else DVT_ETOOSMALL and nothing happened. [object] */
  dvt_code (*stream_open)(void* t, dvt_call*, uint32_t flags, void** s) DVT_NX;
  dvt_code (*stream_step)(void* s, dvt_call*, uint32_t id, char* out, uint64_t cap, uint64_t* need) DVT_NX;
  dvt_code (*stream_flush)(void* s, dvt_call*, char* out, uint64_t cap, uint64_t* need) DVT_NX;
  void (*stream_close)(void* s) DVT_NX;
  /* SHA-256 of everything that encode depends on. [any] */
  dvt_code (*identity)(void* t, dvt_call*, uint8_t sha256[32]) DVT_NX;
} dvt_tokenizer_v1;

typedef struct dvt_train_options {
  uint32_t struct_size, vocab_size;
  uint64_t min_frequency;
  dvt_str pattern;     /* "qwen2" or "gpt2" or a regex; empty = qwen2 */
  dvt_str normalizer;  /* "nfc" or "none"; empty = nfc */
  const dvt_str* special_tokens;
  uint64_t n_special_tokens;
} dvt_train_options;

typedef struct dvt_tokenizer_trainer_v1 {
  uint32_t struct_size, flags;
  /* Trains on files, each line with its line end as one sequence, and writes the definition file
   * (tokenizer.json). Same input, same bytes. Reports progress. [any] */
  dvt_code (*train)(void* plugin, dvt_call*, const dvt_train_options*, const dvt_file* files, uint64_t n_files,
                    const dvt_sink* out) DVT_NX;
} dvt_tokenizer_trainer_v1;

#ifdef __cplusplus
}
#endif
#endif
