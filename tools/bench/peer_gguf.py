"""Writes a GGUF file of random weights in a Qwen3 shape, for the benchmark program of another runtime.

Every weight is noise of the deviation that tools/make_checkpoint.py gives it, in blocks of the format
asked for; norms are float32. The metadata are what a loader of the qwen3 architecture asks for, and no
vocabulary: benchmark programs draw ids, not text. Layouts: the GGUF specification, version 3, and the
block structures that ggml publishes. Python's standard library only.
"""
import array
import functools
import math
import os
import random
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import make_checkpoint  # noqa: E402

ALIGNMENT = 32
N_BLOCKS = 16381  # a tensor repeats this many blocks, a prime, so that rows do not line up
KEY_TYPES = {"u32": 4, "f32": 6, "string": 8}

# Deviation of one stored integer drawn evenly: the scale that gives the weight its own follows from it.
EVEN_INT8, EVEN_NIBBLE, EVEN_SIX_BITS, GRID_OF_16 = 73.6, 4.61, 18.47, 67.0
HALF = "<e"


def q8_0(deviation, quants):
    return struct.pack(HALF, deviation / EVEN_INT8) + quants


def q4_0(deviation, quants):
    return struct.pack(HALF, deviation / EVEN_NIBBLE) + quants


def q4_k(deviation, quants):
    """All eight scales and minima are 32, in the packing of 6 bits each; the zero point is 7.5."""
    scale = deviation / (32 * EVEN_NIBBLE)
    return struct.pack("<ee", scale, 7.5 * scale) + b"\xa0" * 8 + b"\x00" * 4 + quants


def q6_k(deviation, quants):
    return quants + b"\x20" * 16 + struct.pack(HALF, deviation / (32 * EVEN_SIX_BITS))


def iq4_xs(deviation, quants):
    """All eight scales are 48 - 32 = 16: their upper two bits set, their lower four clear."""
    return struct.pack("<eH", deviation / (16 * GRID_OF_16), 0xFFFF) + b"\x00" * 4 + quants


# name: (number in the file, weights in a block, bytes of a block, random bytes in it, how to pack it)
TYPES = {
    "F32": (0, 1, 4, 0, None), "F16": (1, 1, 2, 0, None), "BF16": (30, 1, 2, 0, None),
    "Q8_0": (8, 32, 34, 32, q8_0), "Q4_0": (2, 32, 18, 16, q4_0), "Q4_K": (12, 256, 144, 128, q4_k),
    "Q6_K": (14, 256, 210, 192, q6_k), "IQ4_XS": (23, 256, 136, 128, iq4_xs),
}
MIXES = {"Q4_K_M": "Q4_K"}  # a mix of types: its main one
SIX_BIT_HEAD = ("Q4_0", "Q4_K", "Q4_K_M", "IQ4_XS")  # quantisers of this family keep the head at 6 bits

GGUF_NAMES = {  # of a layer's tensors
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
OUTER_NAMES = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
               "lm_head.weight": "output.weight"}


def gguf_name(name):
    if name in OUTER_NAMES:
        return OUTER_NAMES[name]
    _, _, layer, part = name.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[part[:-len('.weight')]]}.weight"


def type_of(name, shape, config, mix, head_type):
    """The type of one tensor. In a tied model the embedding is the head."""
    head = "token_embd.weight" if config["tie_word_embeddings"] else "output.weight"
    main = MIXES.get(mix, mix)
    if len(shape) == 1:
        return "F32"
    if name == head:
        return head_type or ("Q6_K" if mix in SIX_BIT_HEAD else main)
    if mix == "Q4_K_M" and ("attn_v" in name or "ffn_down" in name):
        layer, n = int(name.split(".")[1]), config["num_hidden_layers"]
        eighth = n // 8
        if layer < eighth or layer >= 7 * n // 8 or (layer - eighth) % 3 == 2:
            return "Q6_K"
    return main


def tensors(config, mix, head_type=None):
    """(name, type, shape, bytes, mean, deviation) of every tensor in the file's order."""
    found = []
    for name, shape, mean, deviation in make_checkpoint.tensors(config, store_tied_head=False):
        name = gguf_name(name)
        kind = type_of(name, shape, config, mix, head_type)
        _, block_len, block_bytes, _, _ = TYPES[kind]
        if shape[-1] % block_len:
            raise ValueError(f"{name} has rows of {shape[-1]}, {kind} needs a multiple of {block_len}")
        found.append((name, kind, shape, math.prod(shape) // block_len * block_bytes, mean, deviation))
    return found


def bytes_per_token(config, mix, head_type=None):
    """Weights that one decoded token reads: all but an embedding that is not also the head."""
    skip = None if config["tie_word_embeddings"] else "token_embd.weight"
    return sum(n for name, _, _, n, _, _ in tensors(config, mix, head_type) if name != skip)


def metadata(config):
    return [
        ("general.architecture", "string", "qwen3"),
        ("general.name", "string", "random weights"),
        ("general.alignment", "u32", ALIGNMENT),
        ("qwen3.context_length", "u32", config["max_position_embeddings"]),
        ("qwen3.embedding_length", "u32", config["hidden_size"]),
        ("qwen3.block_count", "u32", config["num_hidden_layers"]),
        ("qwen3.feed_forward_length", "u32", config["intermediate_size"]),
        ("qwen3.attention.head_count", "u32", config["num_attention_heads"]),
        ("qwen3.attention.head_count_kv", "u32", config["num_key_value_heads"]),
        ("qwen3.attention.key_length", "u32", config["head_dim"]),
        ("qwen3.attention.value_length", "u32", config["head_dim"]),
        ("qwen3.attention.layer_norm_rms_epsilon", "f32", config["rms_norm_eps"]),
        ("qwen3.rope.freq_base", "f32", config["rope_theta"]),
        ("qwen3.vocab_size", "u32", config["vocab_size"]),
        ("tokenizer.ggml.model", "string", "no_vocab"),
    ]


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def aligned(n_bytes):
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def header(config, all_tensors):
    pairs = metadata(config)
    out = [b"GGUF", struct.pack("<IQQ", 3, len(all_tensors), len(pairs))]
    for key, kind, value in pairs:
        out.append(string(key) + struct.pack("<I", KEY_TYPES[kind]))
        out.append(string(value) if kind == "string" else struct.pack("<I" if kind == "u32" else "<f", value))
    at = 0
    for name, kind, shape, n_bytes, _, _ in all_tensors:
        out.append(string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape)))
        out.append(struct.pack("<IQ", TYPES[kind][0], at))
        at += aligned(n_bytes)
    text = b"".join(out)
    return text + bytes(aligned(len(text)) - len(text)), at


@functools.lru_cache(maxsize=None)
def noise(seed, dtype):
    return make_checkpoint.Noise(seed, dtype)


class Blocks:
    """A run of random blocks for each type, mean and deviation that is asked for."""

    def __init__(self, seed):
        self.seed, self.made = seed, {}

    def run(self, kind, mean, deviation):
        key = (kind, mean, deviation)
        if key not in self.made:
            self.made[key] = memoryview(self.make(kind, mean, deviation))
        return self.made[key]

    def make(self, kind, mean, deviation):
        _, _, _, n_random, pack = TYPES[kind]
        if kind == "BF16":
            return noise(self.seed, "bfloat16").block(mean, deviation)
        if kind in ("F32", "F16"):
            floats = noise(self.seed, "float32").block(mean, deviation)
            if kind == "F32":
                return floats
            values = array.array("f", bytes(floats))
            if sys.byteorder == "big":
                values.byteswap()
            return struct.pack(f"<{len(values)}e", *values)
        quants = random.Random(f"{self.seed}:{kind}").randbytes(N_BLOCKS * n_random)
        return b"".join(pack(deviation, quants[i:i + n_random]) for i in range(0, len(quants), n_random))

    def pieces(self, name, kind, n_bytes, mean, deviation):
        """The bytes of one tensor, in pieces of at most a run."""
        run, block_bytes = self.run(kind, mean, deviation), TYPES[kind][2]
        at = zlib.crc32(name.encode()) % (len(run) // block_bytes) * block_bytes
        while n_bytes:
            piece = run[at:at + n_bytes]
            yield piece
            n_bytes -= len(piece)
            at = 0


def write(path, config, mix, head_type=None, seed=0):
    """Writes the file, or keeps one that has this header and length; returns its length in bytes.

    errors  ValueError when the shape does not divide into blocks; OSError; nothing half-written stays.
    """
    all_tensors = tensors(config, mix, head_type)
    head, n_data = header(config, all_tensors)
    total = len(head) + n_data
    if os.path.exists(path) and os.path.getsize(path) == total:
        with open(path, "rb") as f:
            if f.read(len(head)) == head:
                return total
    blocks, part = Blocks(seed), f"{path}.part"
    try:
        with open(part, "wb") as f:
            f.write(head)
            for name, kind, _, n_bytes, mean, deviation in all_tensors:
                for piece in blocks.pieces(name, kind, n_bytes, mean, deviation):
                    f.write(piece)
                f.write(bytes(aligned(n_bytes) - n_bytes))
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise
    return total
