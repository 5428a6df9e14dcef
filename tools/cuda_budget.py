#!/usr/bin/env python3
"""Counts what a decode step takes on a GPU: launches, bytes, blocks, registers; writes docs/gpu/budget.md.

usage: cuda_budget.py            writes the page
       cuda_budget.py --check    fails if the page is another than what is counted

Counted from what tests hold: launches from tests/plugins/backend/cuda/program_test.cpp, registers and shared memory from
tests/kernels/cuda/resources.txt, blocks of k under way from kernels/cuda/weight_rows.hpp.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/gpu/budget.md"

# An H200: multiprocessors; registers, shared memory, warps and blocks of each.
N_PROCESSORS, REGISTERS, SHARED, WARPS, BLOCKS = 132, 65536, 228 * 1024, 64, 32
READ_TB_S = 4.3  # copies, as others measured them
LAUNCH_US = {"1.3 us": 1.3, "2.2 us": 2.2}
TILE_ROWS, BLOCK_LEN, BLOCK_THREADS = 16, 32, 128
CONTEXT = 128

MODELS = {
    "Qwen3-0.6B": dict(n_layers=28, d=1024, n_heads=16, n_kv=8, e=128, f=3072, v=151936),
    "Qwen3-8B": dict(n_layers=36, d=4096, n_heads=32, n_kv=8, e=128, f=12288, v=151936),
}
TARGETS = {"Qwen3-0.6B": "1,500 (aim 2,500)", "Qwen3-8B": "213 (aim 250)"}


def find(path, pattern):
    found = re.search(pattern, (ROOT / path).read_text())
    if not found:
        sys.exit(f"{path} has nothing like {pattern}")
    return [int(n) for n in found.groups()]


def resources(name):
    for line in (ROOT / "tests/kernels/cuda/resources.txt").read_text().splitlines():
        row = line.split("#")[0].strip()
        if row:
            kernel, registers, shared = row.rsplit(None, 2)
            if name.startswith(kernel):
                return int(registers), int(shared)
    sys.exit(f"tests/kernels/cuda/resources.txt has no {name}")


def resident(registers, shared):
    """Blocks of 128 threads that a multiprocessor holds at once; registers go to warps by 256."""
    per_warp = -(-registers * 32 // 256) * 256
    return min(REGISTERS // (per_warp * BLOCK_THREADS // 32), SHARED // (shared + 1024), WARPS * 32 // BLOCK_THREADS, BLOCKS)


def products(m):
    """(launch, kernel, rows, k, matrices that a block reads)"""
    bf16 = "PlainRows<unsigned short> >"
    heads = (m["n_heads"] + 2 * m["n_kv"]) * m["e"]
    return [
        ("norm, q, k, v, norms of heads, rope, cache", "decode_qkv_kernel<" + bf16, heads, m["d"], 1),
        ("o + residual", "decode_linear_kernel<" + bf16, m["d"], m["n_heads"] * m["e"], 1),
        ("norm, gate, up, SiLU", "decode_gate_up_kernel<" + bf16, m["f"], m["d"], 2),
        ("down + residual", "decode_linear_kernel<" + bf16, m["d"], m["f"], 1),
        ("norm, head", "decode_linear_kernel<" + bf16, m["v"], m["d"], 1),
    ]


def weight_bytes(m):
    per_layer = sum(2 * rows * k * n for _, _, rows, k, n in products(m)[:4])
    return m["n_layers"] * per_layer + 2 * m["v"] * m["d"]


def page():
    layer, besides = find("tests/plugins/backend/cuda/program_test.cpp", r"kLayer = (\d+), kBesides = (\d+)")
    ahead, = find("kernels/cuda/weight_rows.hpp", r"kAhead = sizeof\(Weight\) == 2 \? (\d+)")
    tokens, = find("kernels/include/kernels/cuda_decode.hpp", r"kDecodeTokens = (\d+)")
    out = [f"""# What a decode step takes

Counted, not measured: **none of this has run on a GPU.** Written by `tools/cuda_budget.py`; the test `tools_cuda_budget` holds it
to what the kernels and their tests say.

## Launches

A layer takes {layer} launches with up to {tokens} tokens, a step {besides} more: tokens that were just sampled, rope's table, the
embedding, the rows of logits, the last norm with the head, argmax. They are one graph, replayed; the host sends one copy of tables
before it and fetches the ids after it (`CudaProgram.TakesTheLaunchesOfTheBudget`). Batches of more than {tokens} are one graph too, of
as many launches as ops.

## One stream, bf16, context {CONTEXT}, on an H200

Time is bytes at {READ_TB_S} TB/s (what copies reach) and a cost a launch: 1.3 us is a node of a graph on an H100, 2.2 us what was left
over per kernel in the best published step of a graph on an H200. That one lets kernels begin before the last one ends
(programmatic dependent launch); these do not yet. Neither count knows how well a kernel reads.

| model | launches | weights | cache | reading | tok/s at {" | tok/s at ".join(LAUNCH_US)} | must |
|---|---|---|---|---|{"---|" * len(LAUNCH_US)}---|"""]
    for name, m in MODELS.items():
        n = layer * m["n_layers"] + besides
        cache = CONTEXT * m["n_layers"] * 2 * m["n_kv"] * m["e"] * 2
        reading = (weight_bytes(m) + cache) / READ_TB_S / 1e6
        rates = " | ".join(f"{1e6 / (reading + n * us):,.0f}" for us in LAUNCH_US.values())
        out.append(f"| {name} | {n} | {weight_bytes(m) / 1e9:.3f} GB | {cache / 1e6:.1f} MB | {reading:,.0f} us | {rates} "
                   f"| {TARGETS[name]} |")
    need = READ_TB_S * 1e12 / N_PROCESSORS / 1e6 / 1024
    out.append(f"""
## Blocks, registers, bytes under way

A block is 128 threads and {TILE_ROWS} rows of a matrix (of gate and of up, {TILE_ROWS} each). Resident: how many a multiprocessor holds, from the
registers and shared memory of `tests/kernels/cuda/resources.txt`, which ptxas is held to. Under way: bytes of weights that the blocks of
one multiprocessor have asked for at a time, {ahead} blocks of k a warp. At {READ_TB_S} TB/s a multiprocessor draws {need:.0f} KiB a microsecond, so
that with a microsecond from asking to having, about as much must be under way.

| model | launch | registers | blocks | of {N_PROCESSORS} multiprocessors | resident | under way |
|---|---|---|---|---|---|---|""")
    for name, m in MODELS.items():
        for launch, kernel, rows, k, _ in products(m):
            registers, shared = resources(kernel)
            n_blocks = -(-rows // TILE_ROWS)
            fit = resident(registers, shared)
            at_once = min(fit, -(-n_blocks // N_PROCESSORS))
            per_warp = min(ahead, k // BLOCK_LEN // 4) * TILE_ROWS * BLOCK_LEN * 2
            out.append(f"| {name} | {launch} | {registers} | {n_blocks:,} | {min(1.0, n_blocks / N_PROCESSORS):.0%} busy | {fit} "
                       f"| {at_once * 4 * per_warp // 1024} KiB |")
    out.append(f"""
Attention of one token at a context of up to 512 is {MODELS["Qwen3-0.6B"]["n_kv"]} blocks, one a kv head; beyond that as many more as there are chunks of 512
keys, and the last block of a head brings them together.

What the count warns of: `o` and `down` of the small model have fewer blocks than the device has multiprocessors, attention of a
short context far fewer. There k, and keys, would have to be split further.
""")
    return "\n".join(out)


def main():
    text = page()
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit(f"{PAGE.relative_to(ROOT)} is not what is counted: run tools/cuda_budget.py")
        return
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
