/* Dovetail plugin interface, part 9: sampler stages ("dovetail.sampler/1").
 *
 * The core makes candidates of the ids that may be drawn, runs the stages in the order of the YAML
 * and draws from what they leave: softmax of the remaining logits, counter-based randomness. A stage
 * that wants the argmax leaves one candidate (the lowest id on ties). Stages never see NaN: the core
 * drops such candidates and fails the request when none is left. */
#ifndef DOVETAIL_ABI_SAMPLER_H
#define DOVETAIL_ABI_SAMPLER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dvt_cand {
  uint32_t id;
  float logit;
} dvt_cand;

/* n candidates at c; a stage may reorder, change logits and lower n (never to 0). sorted: 1 if by
 * (logit descending, id ascending); 2 if by id ascending; 0 if neither. Stages keep it true. */
typedef struct dvt_cands {
  uint32_t struct_size, sorted;
  dvt_cand* c;
  uint64_t n;
} dvt_cands;

/* What a stage does in one request to the argmax: the likeliest id, the lowest on ties. A chain of
 * stages that keep it and one that leaves it alone comes down to the argmax, which the core may then
 * take without candidates or leave to the backend. */
enum {
  DVT_EFFECT_ANY = 0,          /* nothing is promised */
  DVT_EFFECT_KEEPS_ARGMAX = 1, /* it stays the argmax, whatever the logits: top_k, a penalty of 0 */
  DVT_EFFECT_ARGMAX = 2        /* leaves it as the only candidate, whatever the logits */
};

typedef struct dvt_sampler_v1 {
  uint32_t struct_size, flags;
  /* `defaults`: the stage's YAML parameters, validated and complete. [load] */
  dvt_code (*open)(void* plugin, dvt_call*, dvt_doc defaults, uint32_t vocab_size, void** stage) DVT_NX;
  void (*close)(void* stage) DVT_NX; /* [load] */
  /* One request: `overrides` is a map of parameters it sets, or 0; the prompt's ids. [any] */
  dvt_code (*begin)(void* stage, dvt_call*, dvt_doc overrides, const uint32_t* prompt, uint64_t n_prompt, void** request) DVT_NX;
  void (*end)(void* request) DVT_NX; /* [object] */
  dvt_code (*apply)(void* request, dvt_call*, dvt_cands*) DVT_NX;           /* [object] */
  dvt_code (*accept)(void* request, dvt_call*, uint32_t id) DVT_NX;         /* [object] id was generated; optional */
  dvt_code (*rewind)(void* request, dvt_call*, uint64_t n) DVT_NX;          /* [object] forget the last n accepted; optional */
  dvt_code (*save)(void* request, dvt_call*, void* out, uint64_t cap, uint64_t* need) DVT_NX; /* [object] optional */
  dvt_code (*load)(void* request, dvt_call*, dvt_bytes) DVT_NX;             /* [object] optional */
  uint32_t (*effect)(void* request) DVT_NX; /* [object] DVT_EFFECT_*, the same for the whole request; optional */
} dvt_sampler_v1;

#ifdef __cplusplus
}
#endif
#endif
