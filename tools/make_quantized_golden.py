#!/usr/bin/env python3
"""Makes tiny quantised checkpoints as FP8, GPTQ and AWQ tools write them, and what the official classes compute
from the numbers that they stand for.

  make_quantized_golden.py OUTDIR [NAME ...]      (all names when none is given)

Each OUTDIR/NAME/ is as tools/make_golden.py makes it, but model.safetensors holds the matrices of the layers
quantised. They are rounded to the nearest level, no more: what is held to is how a file is read, not how it was made.
The golden is that of the official class with float32 weights, which numpy computes here from the tensors of the
file by the formulas below; nothing of what packed them is used.

  fp8    w[r, k] = e4m3(weight[r, k]) * weight_scale_inv[r // 128, k // 128]
  gptq   w[n, k] = scales[g, n] * (q[k, n] - z[g, n])   g = g_idx[k]
  awq    the same with g = k // group_size, and eight numbers along n in the order 0 2 4 6 1 3 5 7

Needs what tools/make_golden.py needs, and numpy.
"""
import json
import os
import shutil
import sys

import numpy as np
import torch
from safetensors.torch import save_file

import make_golden

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the number along n at each place of a word

# name: (model of make_golden, settings of its own, quantiser, quantization_config)
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
       "modules_to_not_convert": ["lm_head"]}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": True, "lm_head": False,
        "damp_percent": 0.01, "true_sequential": True}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm",
       "modules_to_not_convert": None}
WIDE = {"hidden_size": 160, "intermediate_size": 208}  # blocks of 128 that are not whole
CASES = {
    "qwen3_fp8": ("qwen3_tied", dict(WIDE, tie_word_embeddings=False), "fp8", FP8),
    "qwen3_gptq": ("qwen3_tied", {}, "gptq", GPTQ),
    "qwen2_gptq_reordered": ("qwen2", {}, "gptq", dict(GPTQ, sym=False, desc_act=True)),
    "llama_gptq8": ("llama_tied", {}, "gptq", dict(GPTQ, bits=8, group_size=-1, checkpoint_format="gptq_v2")),
    "llama_awq": ("llama_tied", {}, "awq", AWQ),
}


# ------------------------------------------------------------------ to files

def levels_and_zeros(w, group_of, bits, sym, scale_type=torch.float16):
    """Nearest levels q[k, n], zeros z[g, n] and scales[g, n] of w[n, k]."""
    top = 2 ** bits - 1
    n_groups = int(group_of.max()) + 1
    q = torch.empty(w.shape[1], w.shape[0], dtype=torch.int64)
    zeros = torch.empty(n_groups, w.shape[0], dtype=torch.int64)
    scales = torch.empty(n_groups, w.shape[0], dtype=scale_type)
    for g in range(n_groups):
        part = w[:, group_of == g]
        if sym:
            scale = part.abs().amax(1) / (2 ** (bits - 1) - 0.5)
            zero = torch.full_like(scale, 2 ** (bits - 1))
        else:
            low, high = part.amin(1).clamp(max=0), part.amax(1).clamp(min=0)
            scale = (high - low) / top
            zero = (-low / scale).round().clamp(1, top)  # zero 0 cannot be written as one less
        scales[g], zeros[g] = scale.to(scale_type), zero.long()
        q[group_of == g] = ((part / scales[g].float()[:, None]).round() + zero[:, None]).clamp(0, top).long().T
    return q, zeros, scales


def pack(numbers, bits, dim):
    """int32 words of neighbours along dim, the first in the lowest bits."""
    per = 32 // bits
    numbers = numbers.movedim(dim, -1).reshape(*numbers.movedim(dim, -1).shape[:-1], -1, per)
    words = (numbers << (torch.arange(per) * bits)).sum(-1)
    words = torch.where(words >= 2 ** 31, words - 2 ** 32, words).to(torch.int32)
    return words.movedim(-1, dim).contiguous()


def to_fp8(name, w, c):
    rows, cols = c["weight_block_size"]
    scale = torch.empty(-(-w.shape[0] // rows), -(-w.shape[1] // cols), dtype=torch.bfloat16)
    weight = torch.empty(w.shape, dtype=torch.float8_e4m3fn)
    for i in range(scale.shape[0]):
        for j in range(scale.shape[1]):
            at = slice(i * rows, (i + 1) * rows), slice(j * cols, (j + 1) * cols)
            scale[i, j] = (w[at].abs().max() / 448).to(torch.bfloat16)
            weight[at] = (w[at] / scale[i, j].float()).clamp(-448, 448).to(torch.float8_e4m3fn)
    return {name + ".weight": weight, name + ".weight_scale_inv": scale}


def to_gptq(name, w, c):
    k = w.shape[1]
    group_len = c["group_size"] if c["group_size"] > 0 else k
    group_of = torch.arange(k) // group_len
    if c["desc_act"]:
        group_of = group_of[torch.randperm(k, generator=torch.Generator().manual_seed(len(name) + k))]
    q, zeros, scales = levels_and_zeros(w, group_of, c["bits"], c["sym"])
    if c.get("checkpoint_format", "gptq") == "gptq":
        zeros = zeros - 1
    out = {name + ".qweight": pack(q, c["bits"], 0), name + ".qzeros": pack(zeros, c["bits"], 1), name + ".scales": scales}
    if c["group_size"] > 0:  # one group needs none
        out[name + ".g_idx"] = group_of.to(torch.int32)
    return out


def to_awq(name, w, c):
    group_of = torch.arange(w.shape[1]) // c["group_size"]
    q, zeros, scales = levels_and_zeros(w, group_of, 4, sym=False)
    order = lambda t: t.reshape(t.shape[0], -1, 8)[:, :, AWQ_ORDER].reshape(t.shape)
    return {name + ".qweight": pack(order(q), 4, 1), name + ".qzeros": pack(order(zeros), 4, 1), name + ".scales": scales}


# ------------------------------------------------------------------ from files, by numpy alone

def e4m3(raw):
    sign = np.where(raw & 0x80, -1.0, 1.0)
    exponent, mantissa = (raw >> 3) & 15, (raw & 7).astype(np.float64)
    return sign * np.where(exponent == 0, mantissa / 8 * 2.0 ** -6, (1 + mantissa / 8) * 2.0 ** (exponent.astype(np.float64) - 7))


def bits_of(words, bits):
    """[..., words] to [..., words, numbers]."""
    words = words.astype(np.int64) & 0xFFFFFFFF
    return words[..., None] >> (np.arange(32 // bits) * bits) & (2 ** bits - 1)


def from_fp8(t, c):
    rows, cols = c["weight_block_size"]
    raw = t["weight"].view(torch.uint8).numpy()
    scale = t["weight_scale_inv"].float().numpy()
    scale = np.repeat(np.repeat(scale, rows, 0), cols, 1)[:raw.shape[0], :raw.shape[1]]
    return e4m3(raw).astype(np.float32) * scale


def from_ints(q, zeros, scales, groups):
    return ((q - zeros[groups]).astype(np.float32) * scales.float().numpy()[groups]).T


def from_gptq(t, c):
    q = bits_of(t["qweight"].numpy(), c["bits"])  # [words, n, numbers]
    q = q.transpose(0, 2, 1).reshape(-1, q.shape[1])
    zeros = bits_of(t["qzeros"].numpy(), c["bits"]).reshape(t["scales"].shape)
    if c.get("checkpoint_format", "gptq") == "gptq":
        zeros = zeros + 1
    groups = t["g_idx"].numpy() if "g_idx" in t else np.zeros(len(q), np.int64)
    return from_ints(q, zeros, t["scales"], groups)


def from_awq(t, c):
    place = np.argsort(AWQ_ORDER)
    numbers = lambda words: bits_of(words.numpy(), 4)[..., place].reshape(len(words), -1)
    q = numbers(t["qweight"])
    return from_ints(q, numbers(t["qzeros"]), t["scales"], np.arange(len(q)) // c["group_size"])


METHODS = {"fp8": (to_fp8, from_fp8), "gptq": (to_gptq, from_gptq), "awq": (to_awq, from_awq)}


def make(name, folder):
    base, changes, method, config = CASES[name]
    config_class, model_class, settings, n_tokens = make_golden.MODELS[base]
    make_golden.MODELS[name] = (config_class, model_class, {**settings, **changes}, n_tokens)
    model, _ = make_golden.build(name)
    to_files, from_files = METHODS[method]
    stored = {}
    for key, w in model.state_dict().items():
        module = key.removesuffix(".weight")
        if key == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        if ".layers." in key and w.ndim == 2:
            tensors = to_files(module, w, config)
            stored.update(tensors)
            parts = {k.removeprefix(module + "."): v for k, v in tensors.items()}
            w.copy_(torch.from_numpy(np.ascontiguousarray(from_files(parts, config))))
        else:
            stored[key] = w.to(torch.bfloat16)
            w.copy_(stored[key])
    # make_golden writes the golden of these weights, and reads them back to check them.
    make_golden.build = lambda _: (model, ids_of(model, n_tokens))
    summary = make_golden.make(name, folder)
    stored = {k: v.clone().contiguous() for k, v in stored.items()}
    save_file(stored, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    make_golden.write_tensor_list(folder)
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        text = json.load(f)
    with open(path, "w") as f:
        json.dump({**text, "dtype": "bfloat16", "quantization_config": config}, f, indent=2)
        f.write("\n")
    with open(os.path.join(folder, "meta.json")) as f:
        meta = json.load(f)
    with open(os.path.join(folder, "meta.json"), "w") as f:
        json.dump({**meta, "maker": "tools/make_quantized_golden.py", "numpy": np.__version__}, f, indent=1)
        f.write("\n")
    return summary


def ids_of(model, n_tokens):
    return torch.randint(3, model.config.vocab_size, (1, n_tokens), generator=torch.Generator().manual_seed(1))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = make_golden.build
    for name in sys.argv[2:] or CASES:
        folder = os.path.join(sys.argv[1], name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        make_golden.build = build
        print(make(name, folder), flush=True)


if __name__ == "__main__":
    main()
