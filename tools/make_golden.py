#!/usr/bin/env python3
"""Makes tiny random-weight checkpoints with the official classes, and what they compute.

  make_golden.py OUTDIR [NAME ...]      (all names when none is given; `--list` prints them)

For each NAME, OUTDIR/NAME/ receives config.json and model.safetensors (float32) as transformers
saves them, tensors.txt (name, dtype, shape), meta.json (versions, self checks), and
golden.safetensors, all float32 but ids:

  ids             int64 [T]      the prompt
  logits          [T, V]         one full forward without a cache
  hidden.i        [T, D]         input of layer i; the last one is what follows the final norm
  layer_out.i     [T, D]         output of layer i before any final norm
  dec_logits      [T - T0, V]    T0 ids at once into a cache, then one by one
  chunk_logits    [T, V]         the prompt in two cached chunks

NAME_sharded holds the weights of NAME in two files with an index, and nothing else to compare.
Weights come from a generator seeded by each tensor's name, so they do not depend on how a version
initialises. Needs torch, transformers >= 5.16, safetensors; do not install flash-linear-attention,
causal-conv1d or kernels, which replace the reference code paths.
"""
import inspect
import json
import math
import os
import platform
import shutil
import sys
import zlib

import safetensors
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

SELF_CHECK_LIMIT = 2e-5  # of the largest logit; plain attention stays below 1e-6

torch.set_grad_enabled(False)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True, warn_only=True)
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def rope(theta, partial=None, **scaling):
    settings = {"rope_type": "default", "rope_theta": theta, **scaling}
    if partial is not None:
        settings["partial_rotary_factor"] = partial
    return {"rope_parameters": settings}


COMMON = dict(vocab_size=160, hidden_size=64, num_attention_heads=4, num_key_value_heads=2,
              rms_norm_eps=1e-6, max_position_embeddings=512, bos_token_id=1, eos_token_id=2,
              pad_token_id=None, tie_word_embeddings=False)
MLP = dict(intermediate_size=96)
HEADS = dict(head_dim=32)  # 4 heads of 32 are wider than hidden_size, as in the released models
HYBRID = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]
GDN = dict(HEADS, layer_types=HYBRID, num_hidden_layers=4, linear_num_key_heads=2,
           linear_num_value_heads=6, linear_key_head_dim=16, linear_value_head_dim=16,
           linear_conv_kernel_dim=4)
MOE = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32)
SHARED = dict(shared_expert_intermediate_size=48)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
PLE = dict(ngram_size=3, heads_per_ngram=2, ngram_vocab_size_base=101, split_ngram_parts=4,
           make_ngram_vocab_size_divisible_by=8, ple_layer_ids=[2], ple_embed_dim=64,
           ple_conv_kernel_size=4)
INDEXER = dict(indexer_n_heads=16, indexer_kv_heads=1, indexer_head_dim=16, indexer_budget=16,
               indexer_compress_ratio=4)

MODELS = {  # name: (config class, model class, settings, prompt length)
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM",
              dict(HEADS, **MLP, num_hidden_layers=3, **rope(1e6)), 40),
    "qwen3_tied": ("Qwen3Config", "Qwen3ForCausalLM",
                   dict(HEADS, **MLP, num_hidden_layers=2, tie_word_embeddings=True, **rope(1e6)), 24),
    "qwen3_yarn": ("Qwen3Config", "Qwen3ForCausalLM",
                   dict(HEADS, **MLP, num_hidden_layers=2, max_position_embeddings=128,
                        **rope(1e4, **YARN)), 100),
    "llama3": ("LlamaConfig", "LlamaForCausalLM",
               dict(MLP, num_hidden_layers=2, **rope(1e4, **LLAMA3)), 100),
    "llama_tied": ("LlamaConfig", "LlamaForCausalLM",  # as SmolLM2, with all biases
                   dict(MLP, num_hidden_layers=2, tie_word_embeddings=True, attention_bias=True,
                        mlp_bias=True, **rope(1e5)), 24),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", dict(MLP, num_hidden_layers=2, **rope(1e6)), 40),
    "qwen2_window": ("Qwen2Config", "Qwen2ForCausalLM",
                     dict(MLP, num_hidden_layers=2, tie_word_embeddings=True,
                          use_sliding_window=True, sliding_window=8, max_window_layers=1,
                          **rope(1e6)), 24),
    "mistral": ("MistralConfig", "MistralForCausalLM",
                dict(HEADS, **MLP, num_hidden_layers=2, sliding_window=8, **rope(1e4)), 40),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM",
               dict(HEADS, **MLP, num_hidden_layers=6, sliding_window=8, query_pre_attn_scalar=48,
                    tie_word_embeddings=True,
                    layer_types=["sliding_attention"] * 5 + ["full_attention"]), 40),
    "qwen3_moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM",
                  dict(HEADS, **MLP, num_hidden_layers=4, norm_topk_prob=True, decoder_sparse_step=2,
                       mlp_only_layers=[3], **MOE, **rope(1e6)), 40),
    "qwen3_moe_nonorm": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM",
                         dict(HEADS, **MLP, num_hidden_layers=2, norm_topk_prob=False, **MOE,
                              **rope(1e6)), 40),
    "qwen2_moe": ("Qwen2MoeConfig", "Qwen2MoeForCausalLM",
                  dict(MLP, num_hidden_layers=2, norm_topk_prob=False, **MOE, **SHARED,
                       **rope(1e6)), 40),
    "qwen3_next": ("Qwen3NextConfig", "Qwen3NextForCausalLM",
                   dict(MLP, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], **GDN,
                        **MOE, **SHARED, **rope(1e7, 0.25)), 150),
    "qwen3_5": ("Qwen3_5TextConfig", "Qwen3_5ForCausalLM",
                dict(MLP, **GDN, **rope(1e7, 0.25)), 150),
    "qwen3_5_moe": ("Qwen3_5MoeTextConfig", "Qwen3_5MoeForCausalLM",
                    dict(GDN, **MOE, **SHARED, **rope(1e7, 0.25)), 150),
    "qwen4_exp": ("Qwen4ExpTextConfig", "Qwen4ExpForCausalLM",
                  dict(GDN, output_gate_type="sigmoid", hc_count=4, hc_lowrank=8, **INDEXER, **PLE,
                       **MOE, **SHARED, **rope(1e7, 0.25)), 150),
}
SHARDED = {"qwen3_sharded": "qwen3"}


def randomize(model):
    """Gives every parameter values that a wrong formula would show, whatever the class begins with."""
    for name, p in model.named_parameters():
        r = torch.randn(p.shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
        leaf = name.rsplit(".", 1)[-1]
        if leaf in ("A_log", "dt_bias"):
            value = 0.5 * r
        elif leaf == "bias":
            value = 0.1 * r
        elif p.ndim == 1:      # norm weights: moved off their initial 1 (or 0 where zero-centred)
            value = p.float() + 0.2 * r
        elif "embed" in name:  # embed_tokens, ngram_embedding
            value = r
        else:                  # [out, in], [E, out, in], conv [C, 1, K]; routers get sharper scores
            gain = 3.0 if name.endswith("mlp.gate.weight") else 1.0
            value = r * (gain / math.sqrt(p.shape[-1]))
        p.copy_(value.to(p.dtype))


def build(name):
    """The model of that name with its weights, and its prompt [1, T]."""
    config_class, model_class, settings, n_tokens = MODELS[name]
    config = getattr(transformers, config_class)(**{**COMMON, **settings})
    torch.manual_seed(0)
    model = getattr(transformers, model_class)._from_config(config, attn_implementation="eager")
    model = model.float().eval()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # a plain loop instead of a grouped product
    randomize(model)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, config.vocab_size, (1, n_tokens), generator=generator)
    if name == "qwen4_exp":
        ids[0, [0, 7, 40, 41]] = config.eos_token_id  # its n-grams are cut at the end-of-text id
    return model, ids


class TopkGaps:
    """Notes how close every one-dimensional top-k cut was: near ties make a golden undefined."""

    def __enter__(self):
        self.gaps, self.topk = [], torch.Tensor.topk
        recorder = self

        def topk(scores, k, *args, **kwargs):
            if scores.dim() == 1 and scores.shape[0] > k:
                s = torch.sort(scores, descending=True).values
                recorder.gaps.append(float((s[k - 1] - s[k]) / s[0].abs().clamp_min(1e-12)))
            return recorder.topk(scores, k, *args, **kwargs)

        torch.Tensor.topk = topk
        return self

    def __exit__(self, *_):
        torch.Tensor.topk = self.topk


def full_forward(model, ids):
    """One pass without a cache: every tensor of the golden that needs no cache."""
    layer_out, hooks = {}, []
    for i, layer in enumerate(model.model.layers):
        def keep(module, args, output, i=i):
            layer_out[i] = output[0] if isinstance(output, tuple) else output
        hooks.append(layer.register_forward_hook(keep))
    out = model(ids, use_cache=False, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    golden = {"ids": ids[0], "logits": out.logits[0]}
    golden.update({f"hidden.{i}": h[0] for i, h in enumerate(out.hidden_states)})
    golden.update({f"layer_out.{i}": h[0] for i, h in layer_out.items()})
    return golden


def cached_forward(model, pieces):
    """Logits of all pieces, fed one after the other through one cache."""
    argument = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    cache, rows = None, []
    for piece in pieces:
        out = model(piece, use_cache=True, **{argument: cache})
        cache = out.past_key_values
        rows.append(out.logits[0])
    return torch.cat(rows)


def write_tensor_list(folder):
    with open(os.path.join(folder, "tensors.txt"), "w") as f:
        for file in sorted(os.listdir(folder)):
            if file.startswith("model") and file.endswith(".safetensors"):
                with safe_open(os.path.join(folder, file), "pt") as tensors:
                    for name in sorted(tensors.keys()):
                        t = tensors.get_tensor(name)
                        f.write(f"{name} {str(t.dtype).removeprefix('torch.')} {list(t.shape)}\n")


def make(name, folder):
    model, ids = build(name)
    n_tokens = ids.shape[1]
    n_prefill = n_tokens - min(24, n_tokens * 2 // 3)
    with TopkGaps() as cuts:
        golden = full_forward(model, ids)
    steps = [ids[:, :n_prefill]] + [ids[:, t:t + 1] for t in range(n_prefill, n_tokens)]
    stepped = cached_forward(model, steps)
    golden["dec_logits"] = stepped[n_prefill:]
    cut = n_tokens // 2 + 2  # aligned to no block of 4 or 64
    golden["chunk_logits"] = cached_forward(model, [ids[:, :cut], ids[:, cut:]])

    model.save_pretrained(folder)
    again = type(model).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    largest = golden["logits"].abs().max()
    distance = lambda x: float((x - golden["logits"]).abs().max() / largest)
    self_check = {"decode": distance(stepped), "chunk": distance(golden["chunk_logits"]),
                  "reload": distance(again(ids, use_cache=False).logits[0])}
    meta = {"name": name, "class": type(model).__name__, "maker": "tools/make_golden.py",
            "python": platform.python_version(), "torch": torch.__version__,
            "transformers": transformers.__version__, "safetensors": safetensors.__version__,
            "T": n_tokens, "T0": n_prefill, "max_abs_logit": float(largest), "self_check": self_check,
            "min_relative_topk_gap": min(cuts.gaps, default=None)}
    save_file({k: v.clone().contiguous() for k, v in golden.items()},
              os.path.join(folder, "golden.safetensors"))
    write_tensor_list(folder)
    with open(os.path.join(folder, "meta.json"), "w") as f:
        json.dump(meta, f, indent=1)
        f.write("\n")
    if max(self_check.values()) > SELF_CHECK_LIMIT:
        raise ArithmeticError(f"self check {self_check} is above {SELF_CHECK_LIMIT}")
    return f"{name}: {self_check}"


def make_sharded(name, folder):
    """The weights of the unsharded model in two files; the golden beside that one holds here too."""
    model, _ = build(SHARDED[name])
    n_bytes = sum(p.numel() * p.element_size() for p in model.parameters())
    model.save_pretrained(folder, max_shard_size=n_bytes * 6 // 10)
    write_tensor_list(folder)
    n_files = sum(file.endswith(".safetensors") for file in os.listdir(folder))
    if n_files != 2:
        raise ValueError(f"{n_files} shards, expected 2")
    return f"{name}: {n_files} shards"


def main():
    names = [*MODELS, *SHARDED]
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = []
    for name in sys.argv[2:] or names:
        folder = os.path.join(sys.argv[1], name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            print((make_sharded if name in SHARDED else make)(name, folder), flush=True)
        except Exception as e:  # one class that this version lacks must not stop the others
            failed.append(name)
            print(f"{name}: failed: {type(e).__name__}: {e}", file=sys.stderr)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
