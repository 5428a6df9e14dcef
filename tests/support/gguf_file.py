"""Writes GGUF files for tests, with the standard library alone: any keys and tensors, and a Hugging Face folder of a
small model. Layouts: the GGUF specification, version 3, and the block formats of kernels/gguf_blocks.hpp.
"""
import array
import json
import math
import pathlib
import struct

VALUES = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"), "f32": (6, "f"),
          "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}
STRING, ARRAY = 8, 9
# Number, numbers in a block, bytes of it.
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
         "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176),
         "Q6_K": (14, 256, 210), "IQ4_NL": (20, 32, 18), "IQ4_XS": (23, 256, 136), "BF16": (30, 1, 2), "MXFP4": (39, 32, 17)}
NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.o_proj": "attn_output",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
GEMMA3_NAMES = {**NAMES, "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                "post_feedforward_layernorm": "post_ffw_norm"}
OUTSIDE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    """kind: of VALUES, "string", or "[kind]" for a list."""
    if kind.startswith("["):
        inner = kind[1:-1]
        number = STRING if inner == "string" else VALUES[inner][0]
        body = b"".join(map(string, v)) if inner == "string" else struct.pack(f"<{len(v)}{VALUES[inner][1]}", *v)
        return struct.pack("<IIQ", ARRAY, number, len(v)) + body
    if kind == "string":
        return struct.pack("<I", STRING) + string(v)
    return struct.pack("<I" + VALUES[kind][1], VALUES[kind][0], v)


def pad(n, alignment):
    return bytes(-n % alignment)


def n_bytes(kind, shape):
    _, block_len, block_bytes = TYPES[kind]
    assert not shape or shape[-1] % block_len == 0, (kind, shape)
    return math.prod(shape) // block_len * block_bytes


def file_bytes(pairs, tensors, version=3, alignment=32):
    """pairs: (key, kind, value); tensors: (name, type, shape from the outermost dimension, bytes)."""
    out = [b"GGUF", struct.pack("<IQQ", version, len(tensors), len(pairs))]
    out += [string(key) + value(kind, v) for key, kind, v in pairs]
    at, data = 0, []
    for name, kind, shape, content in tensors:
        assert len(content) == n_bytes(kind, shape), (name, kind, shape, len(content))
        out.append(string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape)) + struct.pack("<IQ", TYPES[kind][0], at))
        data += [content, pad(len(content), alignment)]
        at += len(content) + len(data[-1])
    head = b"".join(out)
    return head + (pad(len(head), alignment) + b"".join(data[:-1]) if data else b"")


def split_bytes(pairs, groups, **options):
    """The bytes of each part of a file whose tensors come in these groups."""
    parts = []
    for i, tensors in enumerate(groups):
        own = [("split.no", "u16", i), ("split.count", "u16", len(groups)), ("split.tensors.count", "i32", sum(map(len, groups)))]
        parts.append(file_bytes((pairs if i == 0 else []) + own, tensors, **options))
    return parts


def gguf_name(name, arch="qwen3"):
    stem, ending = name.rsplit(".", 1)
    if stem in OUTSIDE:
        return f"{OUTSIDE[stem]}.{ending}"
    _, _, layer, part = stem.split(".", 3)
    names = GEMMA3_NAMES if arch == "gemma3" else NAMES
    return f"blk.{layer}.{names[part]}.{ending}"


# ---------------------------------------------------------------- numbers

def floats_of(dtype, data):
    """float32 of safetensors' bytes."""
    if dtype == "F32":
        return array.array("f", data)
    if dtype == "BF16":
        wide = bytearray(2 * len(data))
        wide[2::4], wide[3::4] = data[0::2], data[1::2]
        return array.array("f", bytes(wide))
    assert dtype == "F16", dtype
    return array.array("f", struct.unpack(f"<{len(data) // 2}e", data))


def quantize_q8_0(x):
    out = []
    for at in range(0, len(x), 32):
        block = x[at:at + 32]
        (d,) = struct.unpack("<e", struct.pack("<e", max(map(abs, block)) / 127))
        out.append(struct.pack("<e32b", d, *(max(-127, min(127, round(v / d))) if d else 0 for v in block)))
    return b"".join(out)


def quantize_q4_0(x):
    out = []
    for at in range(0, len(x), 32):
        block = x[at:at + 32]
        (d,) = struct.unpack("<e", struct.pack("<e", max(block, key=abs) / -8))
        q = [max(0, min(15, round(v / d) + 8)) if d else 8 for v in block]
        out.append(struct.pack("<e16B", d, *(q[i] | q[i + 16] << 4 for i in range(16))))
    return b"".join(out)


def dequantize(kind, data):
    """float32 of Q8_0 and Q4_0."""
    out = array.array("f")
    for at in range(0, len(data), TYPES[kind][2]):
        block = data[at:at + TYPES[kind][2]]
        (d,) = struct.unpack_from("<e", block)
        levels = struct.unpack_from("<32b", block, 2) if kind == "Q8_0" else [b % 16 - 8 for b in block[2:]] + [b // 16 - 8 for b in block[2:]]
        out.extend(d * q for q in levels)
    return out


def stored(kind, dtype, data):
    """The bytes of a tensor in another type."""
    if kind == dtype:
        return data
    x = floats_of(dtype, data)
    if kind == "F32":
        return x.tobytes()
    if kind == "F16":
        return struct.pack(f"<{len(x)}e", *x)
    return {"Q8_0": quantize_q8_0, "Q4_0": quantize_q4_0}[kind](x)


# ---------------------------------------------------------------- a model

def read_safetensors(path):
    """{name: (dtype, shape, bytes)}"""
    data = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    out = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            out[name] = (t["dtype"], t["shape"], data[8 + n + begin:8 + n + end])
    return out


def config_pairs(config, arch):
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    rope = config.get("rope_parameters") or {}
    theta = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    keys = [("context_length", "u32", config["max_position_embeddings"]), ("embedding_length", "u32", config["hidden_size"]),
            ("block_count", "u32", config["num_hidden_layers"]), ("feed_forward_length", "u32", config["intermediate_size"]),
            ("attention.head_count", "u32", config["num_attention_heads"]), ("attention.head_count_kv", "u32", config["num_key_value_heads"]),
            ("attention.key_length", "u32", head_dim), ("attention.value_length", "u32", head_dim),
            ("attention.layer_norm_rms_epsilon", "f32", config["rms_norm_eps"]), ("rope.freq_base", "f32", theta)]
    if arch == "gemma3":
        keys[-1] = ("rope.freq_base", "f32", rope["full_attention"]["rope_theta"])
        keys.append(("attention.sliding_window", "u32", config["sliding_window"]))
    scaling = config.get("rope_scaling") or rope
    if scaling.get("rope_type", scaling.get("type", "default")) != "default":
        keys += [("rope.scaling.type", "string", scaling.get("rope_type", scaling.get("type"))), ("rope.scaling.factor", "f32", scaling["factor"])]
        if "original_max_position_embeddings" in scaling:
            keys.append(("rope.scaling.original_context_length", "u32", scaling["original_max_position_embeddings"]))
    return [("general.architecture", "string", arch)] + [(f"{arch}.{key}", kind, v) for key, kind, v in keys]


def tokenizer_pairs(folder, pre):
    """Of a byte-level BPE tokenizer.json."""
    definition = json.loads((folder / "tokenizer.json").read_text())
    config = json.loads((folder / "tokenizer_config.json").read_text())
    ids = dict(definition["model"]["vocab"])
    ids.update({t["content"]: t["id"] for t in definition["added_tokens"]})
    kinds = {t["id"]: 3 if t["special"] else 4 for t in definition["added_tokens"]}
    tokens = [f"[PAD{i}]" for i in range(max(ids.values()) + 1)]
    known = set(ids.values())
    for text, i in ids.items():
        tokens[i] = text
    merges = [m if isinstance(m, str) else " ".join(m) for m in definition["model"]["merges"]]
    pairs = [("tokenizer.ggml.model", "string", "gpt2"), ("tokenizer.ggml.pre", "string", pre), ("tokenizer.ggml.tokens", "[string]", tokens),
             ("tokenizer.ggml.token_type", "[i32]", [kinds.get(i, 1 if i in known else 5) for i in range(len(tokens))]),
             ("tokenizer.ggml.merges", "[string]", merges), ("tokenizer.ggml.add_bos_token", "bool", False)]
    for key in ("bos", "eos"):
        token = config.get(f"{key}_token")
        if token:
            pairs.append((f"tokenizer.ggml.{key}_token_id", "u32", ids[token if isinstance(token, str) else token["content"]]))
    if "chat_template" in config:
        pairs.append(("tokenizer.chat_template", "string", config["chat_template"]))
    return pairs


def pair_rows(data, n_rows, head_dim):
    """Rows of heads as files of architecture llama have them: i and head_dim / 2 + i side by side."""
    size, half = len(data) // n_rows, head_dim // 2
    rows = [data[i * size:(i + 1) * size] for i in range(n_rows)]
    return b"".join(rows[at + i] + rows[at + half + i] for at in range(0, n_rows, head_dim) for i in range(half))


def model(folder, kind=None, arch="qwen3", pre="qwen2", pairs_rows=False):
    """(pairs, tensors) of a folder with one model.safetensors; matrices in this type, or as they are."""
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    pairs = config_pairs(config, arch)
    if (folder / "tokenizer.json").exists():
        pairs += tokenizer_pairs(folder, pre)
    elif config.get("eos_token_id") is not None:
        pairs.append(("tokenizer.ggml.eos_token_id", "u32", config["eos_token_id"]))
    tensors = []
    for name, (dtype, shape, data) in read_safetensors(folder / "model.safetensors").items():
        if config.get("tie_word_embeddings") and name == "lm_head.weight":
            continue
        to = (kind or dtype) if len(shape) > 1 else "F32"
        content = stored(to, dtype, data)
        if pairs_rows and name.split(".")[-2] in ("q_proj", "k_proj"):
            content = pair_rows(content, shape[0], config["head_dim"])
        if arch == "gemma3" and "norm" in name:
            content = array.array("f", [1.0 + v for v in array.array("f", content)]).tobytes()
        tensors.append((gguf_name(name, arch), to, shape, content))
    return pairs, tensors
