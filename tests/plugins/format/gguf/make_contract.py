#!/usr/bin/env python3
"""Makes the fixtures of tests/contract/format_contract_test.cpp for GGUF: contract/valid and contract/damaged.

usage: make_contract.py [--check]    --check compares them with what is there
"""
import json
import pathlib
import shutil
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "support"))
import gguf_file  # noqa: E402

ARCH = [("general.architecture", "string", "qwen3"), ("qwen3.embedding_length", "u32", 32), ("qwen3.block_count", "u64", 1),
        ("qwen3.attention.head_count", "u8", 2), ("qwen3.attention.layer_norm_rms_epsilon", "f32", 1e-6), ("qwen3.context_length", "i32", 64)]
CONFIG = {"model_type": "qwen3", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16,
          "vocab_size": 3, "rms_norm_eps": 1e-6, "max_position_embeddings": 64, "tie_word_embeddings": True, "rope_theta": 10000.0,
          "hidden_act": "silu"}
WORDS = [("tokenizer.ggml.model", "string", "gpt2"), ("tokenizer.ggml.pre", "string", "smollm"), ("tokenizer.ggml.tokens", "[string]", ["a", "b", "ab"]),
         ("tokenizer.ggml.merges", "[string]", ["a b"]), ("tokenizer.chat_template", "string", "{{ messages }}"), ("general.sampling.temp", "f64", 0.5)]
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {**LEVEL, "use_regex": True}]},
    "post_processor": LEVEL, "decoder": LEVEL,
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
              "byte_fallback": False, "ignore_merges": False, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}}
EMBED = ("token_embd.weight", "Q8_0", [3, 32], bytes(i % 251 for i in range(102)))
NORM = ("output_norm.weight", "F32", [2], struct.pack("<2f", 1.5, -2))
UP = ("blk.0.ffn_up.weight", "BF16", [2, 3], b"abcdefghijkl")
HF = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "blk.0.ffn_up.weight": "model.layers.0.mlp.up_proj.weight"}
FORMATS = {"Q8_0": "q8_0", "F32": "float32", "BF16": "bf16"}


def expected(file, tensors, documents):
    return json.dumps({"file": file, "tensors": {HF[n]: {"format": FORMATS[k], "shape": s, "bytes": b.hex()} for n, k, s, b in tensors},
                       "documents": documents}, indent=1) + "\n"


def make(folder):
    def write(case, **files):
        (folder / case).mkdir(parents=True)
        for name, data in files.items():
            (folder / case / f"{name.replace('__', '-')}.gguf").write_bytes(data)

    all_three = [EMBED, NORM, UP]
    words = {"config": CONFIG, "tokenizer": TOKENIZER, "generation": {"temperature": 0.5},
             "tokenizer_config": {"add_bos_token": False, "add_eos_token": False, "chat_template": "{{ messages }}"}}
    write("valid/single", model=gguf_file.file_bytes(ARCH + WORDS, all_three))
    (folder / "valid/single.json").write_text(expected("model.gguf", all_three, words))
    write("valid/version_2", old=gguf_file.file_bytes(ARCH + [("general.alignment", "u32", 8)], all_three, version=2, alignment=8))
    (folder / "valid/version_2.json").write_text(expected("old.gguf", all_three, {"config": CONFIG}))
    first, second = gguf_file.split_bytes(ARCH, [[EMBED], [NORM, UP]])
    write("valid/split", m__00001__of__00002=first, m__00002__of__00002=second)
    (folder / "valid/split.json").write_text(expected("m-00001-of-00002.gguf", all_three, {"config": CONFIG}))

    good = gguf_file.file_bytes(ARCH, all_three)
    write("damaged/another_magic", model=b"FUGG" + good[4:])
    write("damaged/big_endian", model=good[:4] + b"\0\0\0\3" + good[8:])
    write("damaged/version_1", model=good[:4] + b"\1\0\0\0" + good[8:])
    write("damaged/no_bytes_for_its_keys", model=good[:16] + b"\xff" * 8 + good[24:])
    write("damaged/a_key_twice", model=gguf_file.file_bytes(ARCH + ARCH[:1], []))
    write("damaged/a_tensor_twice", model=gguf_file.file_bytes(ARCH, [NORM, NORM]))
    write("damaged/alignment_of_13", model=gguf_file.file_bytes([("general.alignment", "u32", 13)], []))
    write("damaged/data_is_missing", model=good[:-1])
    write("damaged/part_is_missing", m__00001__of__00002=first)
    write("damaged/parts_of_two_models", m__00001__of__00002=first, m__00002__of__00002=gguf_file.split_bytes(ARCH, [[EMBED], [NORM]])[1])


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


if sys.argv[1:] == ["--check"]:
    with tempfile.TemporaryDirectory() as made:
        make(pathlib.Path(made))
        if contents(pathlib.Path(made)) != contents(HERE / "contract"):
            sys.exit("contract/ is not what make_contract.py makes; run it without --check")
else:
    shutil.rmtree(HERE / "contract", ignore_errors=True)
    make(HERE / "contract")
