#!/usr/bin/env python3
"""usage: run.py [--build build/fuzz] [--seconds 60] [--jobs 2] [TARGET ...]

Runs the fuzz targets, all of them unless some are named, each for so many seconds and `jobs` at a time. They start
from the tree's own test data and tests/fuzz/seeds/TARGET, and from what earlier runs found in BUILD/corpus/TARGET.
Ends with a line for each target; the exit status is 1 if one found something, whose input lies in BUILD/finds.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# TARGET: longest input in bytes, folders of the tree whose files are seeds.
TARGETS = {
    "gguf": (8192, ["tests/plugins/format/gguf/contract"]),
    "safetensors": (8192, ["tests/plugins/format/safetensors/contract"]),
    "tokenizer": (16384, ["tests/plugins/tokenizer/bpe/contract"]),
    "config": (4096, ["tests/plugins/arch/qwen3/contract"]),
    "template": (16384, ["tests/data/chat/templates"]),
    "yaml": (8192, ["configs", "tests/data/engine"]),
}


def lines(name):
    return [json.loads(line) for line in open(ROOT / "tests/data" / name, encoding="utf-8")]


def seeds_of_vectors():
    """Inputs that are parts of test vectors: (target, text)."""
    for vector in lines("chat/semantics.jsonl"):
        yield "template", vector["template"]
    plain = {"version": "1.0", "added_tokens": [], "model": {
        "type": "BPE", "vocab": {c: i for i, c in enumerate(["a", "b", "\u2581", "\u0120", "ab"])}, "merges": ["a b"]}}
    for vector in lines("tokenizer/components.jsonl"):
        whole = vector["kind"] == "tokenizer"
        yield "tokenizer", json.dumps(vector["config"] if whole else {**plain, vector["kind"]: vector["config"]})


def write_seeds(build):
    for i, (target, text) in enumerate(seeds_of_vectors()):
        folder = build / "seeds" / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(i)).write_text(text, encoding="utf-8", errors="surrogatepass")


def run(target, build, seconds):
    """(found nothing, a line that says how it went)"""
    max_len, data = TARGETS[target]
    corpus, finds = build / "corpus" / target, build / "finds"
    for folder in (corpus, finds):
        folder.mkdir(parents=True, exist_ok=True)
    seeds = [ROOT / d for d in data] + [build / "seeds" / target, ROOT / "tests/fuzz/seeds" / target]
    command = [build / "tests" / f"fuzz_{target}", corpus, *[s for s in seeds if s.is_dir()],
               f"-max_total_time={seconds}", f"-max_len={max_len}", "-timeout=20", "-rss_limit_mb=1536",
               f"-artifact_prefix={finds}/{target}-", "-print_final_stats=1"]
    words = ROOT / "tests/fuzz/words" / f"{target}.dict"
    if words.is_file():
        command.append(f"-dict={words}")
    env = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"}
    log = finds / f"{target}.log"
    with open(log, "wb") as out:
        status = subprocess.run([str(c) for c in command], stdout=out, stderr=out, cwd=ROOT, env=env, check=False).returncode
    text = log.read_text(errors="replace")
    inputs = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text)
    branches = re.findall(r"cov: (\d+)", text)
    said = f"{inputs[-1] if inputs else 'no'} inputs, {branches[-1] if branches else 'no'} branches"
    if status == 0:
        return True, f"{target:12} {said}, nothing found"
    where = re.findall(r"Test unit written to (\S+)", text)
    return False, f"{target:12} {said}, FOUND: {where[-1] if where else 'no input'} (status {status}), see {log}"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    args.add_argument("--build", type=pathlib.Path, default=ROOT / "build/fuzz")
    args.add_argument("--seconds", type=int, default=60)
    args.add_argument("--jobs", type=int, default=2)
    args = args.parse_args()
    for target in args.targets:
        if target not in TARGETS:
            sys.exit(f'run.py: no target is named "{target}"; there are {", ".join(TARGETS)}')
    build = args.build.resolve()
    write_seeds(build)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda target: run(target, build, args.seconds), args.targets or TARGETS))
    print(f"{args.seconds} s each:")
    for _, line in results:
        print(line)
    sys.exit(0 if all(fine for fine, _ in results) else 1)


main()
