#!/usr/bin/env python3
"""What a smaller KV cache costs in quality: a config's logits over each cache against those over caches of float32 and bf16.

Mean KL divergence (nats a token, of the larger cache's distribution from the smaller one's), how often a cache names the
same likeliest token as float32, and the perplexity of the text, over windows of a text. Weights are as the config has them.

    tools/bench/cache_formats.py build/release/bin/dovetail configs/demo.yaml text.txt --markdown docs/weight-formats.md
"""
import argparse
import json
import pathlib
import sys

from weight_formats import Dovetail, Failed, Sums, parts_of, with_section

DTYPES = ["float32", "bf16", "int8"]
LARGER = ["float32", "bf16"]
HEADING = "## What a smaller KV cache costs in quality"


def token_bytes(dovetail, dtype):
    return json.loads(dovetail.with_config("plan", [f"kv_cache.dtype={dtype}"], "--json"))["kv_bytes_per_token"]


def measure(dovetail, text, window, windows):
    """{dtype: {"bytes": of a token, "from": {larger dtype: what Sums.result gives}}}"""
    sums = {d: {larger: Sums() for larger in LARGER} for d in DTYPES}
    for part in parts_of(dovetail.tokenize(text), window, windows):
        for larger in LARGER:
            for d in DTYPES:
                sums[d][larger].add(dovetail.compare(part, [], [f"kv_cache.dtype={larger}"], [f"kv_cache.dtype={d}"]))
    return {d: {"bytes": token_bytes(dovetail, d), "from": {larger: s.result() for larger, s in sums[d].items()}} for d in DTYPES}


def table(result):
    lines = ["| KV cache | a token | mean KL from float32 | mean KL from bf16 | same top token as float32 | perplexity |",
             "|---|---|---|---|---|---|"]
    for name, r in result.items():
        of = r["from"]["float32"]
        from_bf16 = "" if name == "float32" else f"{r['from']['bf16']['kl']:.6f}"
        lines.append(f"| `{name}` | {r['bytes']} bytes | {of['kl']:.6f} | {from_bf16} | {of['same_top'] * 100:.2f} % "
                     f"| {of['perplexity']:.3f} |")
    return "\n".join(lines) + "\n"


def section(result, command):
    positions = result["float32"]["from"]["float32"]["positions"]
    return f"{HEADING}\n\nWritten by `{command}`.\n\n{positions} positions of the text; divergence in nats a token.\n\n{table(result)}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dovetail")
    p.add_argument("config")
    p.add_argument("text", help="file of text to measure over")
    p.add_argument("--window", type=int, default=256, help="tokens of a window")
    p.add_argument("--windows", type=int, default=8, help="windows at most")
    p.add_argument("--json", action="store_true")
    p.add_argument("--markdown", metavar="FILE", help="write it there, in place of the page's section or at its end")
    a = p.parse_args()
    text = pathlib.Path(a.text).read_text(encoding="utf-8")
    try:
        result = measure(Dovetail(a.dovetail, a.config, []), text, a.window, a.windows)
    except Failed as e:
        sys.exit(f"cache_formats.py: {e}")
    print(json.dumps(result, indent=2) if a.json else table(result), end="")
    if a.markdown:
        page = pathlib.Path(a.markdown)
        command = (f"tools/bench/cache_formats.py build/release/bin/dovetail {a.config} {pathlib.Path(a.text).name} "
                   f"--window {a.window} --windows {a.windows}")
        page.write_text(with_section(page.read_text(encoding="utf-8"), HEADING, section(result, command)), encoding="utf-8")


if __name__ == "__main__":
    main()
