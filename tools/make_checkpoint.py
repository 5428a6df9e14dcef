#!/usr/bin/env python3
"""Writes a checkpoint of random weights in the shape of a released Qwen3 model.

  make_checkpoint.py models/qwen3-0.6b                    1.2 GB, the real tokenizer beside it
  make_checkpoint.py models/q4 --shape 4b --shard-mb 2000
  make_checkpoint.py models/q8 --shape 8b --shard-mb 4000 --sparse   16 GB that take no disk
  make_checkpoint.py /tmp/tiny --hidden-size 64 --num-hidden-layers 2 --vocab-size 512 --tokenizer none

It loads, takes memory and computes like the real one; what it writes is noise. The folder has the
files of a Hugging Face download: safetensors (with an index when sharded), config.json,
generation_config.json, tokenizer.json, tokenizer_config.json. The same arguments give the same bytes.
The folder appears under its name only once it is complete. Python's standard library only.
"""
import argparse
import array
import json
import lzma
import math
import os
import random
import shutil
import struct
import sys
import time
import zlib

SHAPES = {  # qwen3 release: the keys of config.json in which the sizes differ
    "0.6b": dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28,
                 num_attention_heads=16, tie_word_embeddings=True),
    "1.7b": dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=28,
                 num_attention_heads=16, tie_word_embeddings=True),
    "4b": dict(hidden_size=2560, intermediate_size=9728, num_hidden_layers=36,
               num_attention_heads=32, tie_word_embeddings=True),
    "8b": dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=36,
               num_attention_heads=32, tie_word_embeddings=False),
    "14b": dict(hidden_size=5120, intermediate_size=17408, num_hidden_layers=40,
                num_attention_heads=40, tie_word_embeddings=False),
    "32b": dict(hidden_size=5120, intermediate_size=25600, num_hidden_layers=64,
                num_attention_heads=64, tie_word_embeddings=False),
}
COMMON = dict(num_key_value_heads=8, head_dim=128, vocab_size=151936, max_position_embeddings=40960)
SIZE_KEYS = ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
             "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings"]
DTYPES = {"bfloat16": ("BF16", 2), "float32": ("F32", 4)}
GENERATION = {"bos_token_id": 151643, "do_sample": True, "eos_token_id": [151645, 151643],
              "pad_token_id": 151643, "temperature": 0.6, "top_k": 20, "top_p": 0.95,
              "transformers_version": "4.51.0"}
TOKENIZER_IDS = 151669  # ids that have text in the Qwen3 tokenizer
TOKENIZER_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data",
                             "qwen3-tokenizer")

# Every tensor is this many normal values, repeated from an offset of its own. A prime: then no two
# rows of a matrix with fewer rows than this are equal, whatever the row length.
BLOCK_LEN = 1048573


class Noise:
    """Blocks of normal values as bytes, one per mean and deviation that is asked for."""

    def __init__(self, seed, dtype):
        rng = random.Random(seed)
        self.seed, self.dtype, self.blocks = seed, dtype, {}
        self.unit = array.array("d")
        while len(self.unit) < BLOCK_LEN:  # Box-Muller; the generator's uniforms never change
            radius, angle = math.sqrt(-2 * math.log(1 - rng.random())), math.tau * rng.random()
            self.unit.extend((radius * math.cos(angle), radius * math.sin(angle)))
        del self.unit[BLOCK_LEN:]

    def block(self, mean, deviation):
        key = (mean, deviation)
        if key not in self.blocks:
            values = array.array("f", (mean + deviation * x for x in self.unit))
            if sys.byteorder == "big":
                values.byteswap()
            data = values.tobytes()
            if self.dtype == "bfloat16":  # the upper half of each float: rounded towards zero
                upper = bytearray(len(data) // 2)
                upper[0::2], upper[1::2] = data[2::4], data[3::4]
                data = bytes(upper)
            self.blocks[key] = memoryview(data)
        return self.blocks[key]

    def pieces(self, name, n_bytes, mean, deviation):
        """The bytes of one tensor, in pieces of at most a block."""
        block = self.block(mean, deviation)
        element_bytes = DTYPES[self.dtype][1]
        at = zlib.crc32(f"{self.seed}:{name}".encode()) % BLOCK_LEN * element_bytes
        while n_bytes:
            piece = block[at:at + n_bytes]
            yield piece
            n_bytes -= len(piece)
            at = 0


def make_config(args):
    """config.json as the released files spell it, in their order."""
    sizes = {**COMMON, **SHAPES[args.shape]}
    sizes.update({key: getattr(args, key) for key in SIZE_KEYS if getattr(args, key) is not None})
    if args.tied is not None:
        sizes["tie_word_embeddings"] = args.tied
    values = {
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 151643, "eos_token_id": 151645, "hidden_act": "silu",
        "initializer_range": 0.02, "max_window_layers": sizes["num_hidden_layers"],
        "model_type": "qwen3", "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000,
        "sliding_window": None, "torch_dtype": args.dtype, "transformers_version": "4.51.0",
        "use_cache": True, "use_sliding_window": False, **sizes,
    }
    return dict(sorted(values.items()))


def tensors(config, store_tied_head):
    """(name, shape, mean, deviation) of every tensor, in the order of the forward pass.

    Deviations keep the residual stream and the logits of ordinary size through any depth.
    """
    d, f, n_layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    e, v = config["head_dim"], config["vocab_size"]
    q, kv = config["num_attention_heads"] * e, config["num_key_value_heads"] * e

    def matrix(name, rows, columns, shrink=1.0):
        return name, [rows, columns], 0.0, shrink / math.sqrt(columns)

    def norm(name, length):
        return name, [length], 1.0, 0.1

    into_residual = 1 / math.sqrt(2 * n_layers)
    yield matrix("model.embed_tokens.weight", v, d)
    for i in range(n_layers):
        layer = f"model.layers.{i}."
        yield norm(layer + "input_layernorm.weight", d)
        yield matrix(layer + "self_attn.q_proj.weight", q, d)
        yield matrix(layer + "self_attn.k_proj.weight", kv, d)
        yield matrix(layer + "self_attn.v_proj.weight", kv, d)
        yield norm(layer + "self_attn.q_norm.weight", e)
        yield norm(layer + "self_attn.k_norm.weight", e)
        yield matrix(layer + "self_attn.o_proj.weight", d, q, into_residual)
        yield norm(layer + "post_attention_layernorm.weight", d)
        yield matrix(layer + "mlp.gate_proj.weight", f, d)
        yield matrix(layer + "mlp.up_proj.weight", f, d)
        yield matrix(layer + "mlp.down_proj.weight", d, f, into_residual)
    yield norm("model.norm.weight", d)
    if not config["tie_word_embeddings"] or store_tied_head:
        yield matrix("lm_head.weight", v, d)


def shards(all_tensors, element_bytes, shard_bytes):
    """Lists of tensors, each list filled in order up to shard_bytes (0: one list)."""
    found, used = [[]], 0
    for tensor in all_tensors:
        n_bytes = math.prod(tensor[1]) * element_bytes
        if shard_bytes and found[-1] and used + n_bytes > shard_bytes:
            found.append([])
            used = 0
        found[-1].append(tensor)
        used += n_bytes
    return found


class Progress:
    """A line that fills on a terminal, one line per tenth elsewhere."""

    def __init__(self, total_bytes):
        self.total, self.done, self.shown, self.start = total_bytes, 0, -1, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def add(self, n_bytes):
        self.done += n_bytes
        step = self.done * (100 if self.terminal else 10) // self.total
        if step == self.shown:
            return
        self.shown = step
        share = self.done / self.total
        rate = self.done / 1e6 / max(time.monotonic() - self.start, 1e-3)
        text = f"{share:4.0%}  {self.done / 1e6:.0f} of {self.total / 1e6:.0f} MB  {rate:.0f} MB/s"
        if self.terminal:
            bar = "#" * int(share * 30)
            sys.stderr.write(f"\r[{bar:<30}] {text} " + ("\n" if self.done == self.total else ""))
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


def write_shard(path, shard, dtype_name, noise, tied_head, progress):
    """Without noise the weights are a hole of the right length, which reads as zeros."""
    dtype, element_bytes = DTYPES[dtype_name]
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, _, _ in shard:
        n_bytes = math.prod(shape) * element_bytes
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n_bytes]}
        at += n_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb", buffering=0) as f:
        write_all(f, struct.pack("<Q", len(text)) + text)
        if not noise:
            f.truncate(8 + len(text) + at)
            return
        for name, shape, mean, deviation in shard:
            source = "model.embed_tokens.weight" if tied_head and name == "lm_head.weight" else name
            n_bytes = math.prod(shape) * element_bytes
            for piece in noise.pieces(source, n_bytes, mean, deviation):
                write_all(f, piece)
                progress.add(len(piece))


def write_all(f, data):
    """An unbuffered file may take less than it is given."""
    view = memoryview(data)
    while view:
        view = view[f.write(view):]


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


def write_weights(folder, config, args):
    element_bytes = DTYPES[args.dtype][1]
    tied_head = config["tie_word_embeddings"] and args.store_tied_head
    parts = shards(tensors(config, args.store_tied_head), element_bytes, int(args.shard_mb * 1e6))
    total = sum(math.prod(t[1]) * element_bytes for part in parts for t in part)
    free = shutil.disk_usage(folder).free
    if not args.sparse and free < total + 64e6:
        raise OSError(f"{total / 1e6:.0f} MB of weights, {free / 1e6:.0f} MB free in {folder}")
    noise, progress, weight_map = None if args.sparse else Noise(args.seed, args.dtype), Progress(total), {}
    for i, part in enumerate(parts):
        file = f"model-{i + 1:05d}-of-{len(parts):05d}.safetensors" if len(parts) > 1 else "model.safetensors"
        write_shard(os.path.join(folder, file), part, args.dtype, noise, tied_head, progress)
        weight_map.update({name: file for name, *_ in part})
    if len(parts) > 1:
        write_json(folder, "model.safetensors.index.json",
                   {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))})
    return total, len(weight_map)


def copy_tokenizer(source, folder):
    packed, plain = (os.path.join(source, "tokenizer.json" + end) for end in (".xz", ""))
    opened = lzma.open(packed) if os.path.exists(packed) else open(plain, "rb")
    with opened as f, open(os.path.join(folder, "tokenizer.json"), "wb") as out:
        shutil.copyfileobj(f, out)
    shutil.copyfile(os.path.join(source, "tokenizer_config.json"),
                    os.path.join(folder, "tokenizer_config.json"))


def make(args):
    """Writes the checkpoint beside its final name, then renames it; leaves nothing when it fails."""
    config = make_config(args)
    out = os.path.abspath(args.out)
    if os.path.exists(out):
        raise FileExistsError(f"{out} exists; remove it or choose another name")
    if args.tokenizer != "none" and config["vocab_size"] < TOKENIZER_IDS:
        raise ValueError(f"vocab_size is {config['vocab_size']}, the tokenizer has {TOKENIZER_IDS} ids; "
                         "try --tokenizer none")
    if config["num_attention_heads"] % config["num_key_value_heads"]:
        raise ValueError(f"{config['num_attention_heads']} query heads are not a multiple of "
                         f"{config['num_key_value_heads']} key and value heads")
    part = f"{out}.part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    try:
        if args.tokenizer != "none":
            copy_tokenizer(args.tokenizer, part)
        write_json(part, "config.json", config)
        write_json(part, "generation_config.json", GENERATION)
        total, n_tensors = write_weights(part, config, args)
        os.rename(part, out)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    print(f"{args.out}: {n_tensors} tensors, {total} bytes of {args.dtype}")


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="folder to make")
    parser.add_argument("--shape", choices=SHAPES, default="0.6b", help="released sizes (0.6b)")
    for key in SIZE_KEYS:
        parser.add_argument("--" + key.replace("_", "-"), type=positive, metavar="N", help="instead of the shape's")
    parser.add_argument("--tied", action=argparse.BooleanOptionalAction, default=None,
                        help="share embedding and output matrix, or not (as the shape)")
    parser.add_argument("--store-tied-head", action="store_true",
                        help="also store a tied output matrix, as the released 0.6B and 1.7B files do")
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    parser.add_argument("--shard-mb", type=float, default=0, metavar="MB", help="start a new file beyond this (0: one file)")
    parser.add_argument("--sparse", action="store_true",
                        help="zeros that take no disk: real headers and file sizes, for plan and inspect")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokenizer", default=TOKENIZER_DIR, metavar="DIR",
                        help="folder with tokenizer.json or tokenizer.json.xz, or `none` (the repository's copy)")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    try:
        make(args)
    except KeyboardInterrupt:
        sys.exit("make_checkpoint: interrupted; nothing was kept")
    except (OSError, ValueError) as e:
        sys.exit(f"make_checkpoint: {e}")


if __name__ == "__main__":
    main()
