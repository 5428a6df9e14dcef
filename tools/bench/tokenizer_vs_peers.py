#!/usr/bin/env python3
"""Encodes the same text with Dovetail's tokenizer and its peers, turn by turn on one thread, and prints medians.

    python3 tools/bench/tokenizer_vs_peers.py BENCH TOKENIZER.json TEXT [TEXT ...] [--rounds 9]

BENCH is the build's bin/tokenizer_bench. Peers are those that Python can import, each in its fastest way
that gives every id: `tokenizers` (encode_batch_fast), `tiktoken` (encode_to_numpy, from the file's
vocabulary and split pattern), and `quicktok` (encode_batch into an array; on PyPI its package is called
quicktok-v1, and only its Qwen vocabulary is used). What is missing is said. Each round asks every program
once, so that whatever else the machine does falls on all of them.

The ids of each peer are compared with ours first. "first" is a pass of a tokenizer just loaded, which has
seen no word yet; "warm" one that has seen this text.
"""

import argparse
import array
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"


class Ours:
    """A tokenizer_bench that encodes once for every line it reads."""

    def __init__(self, bench, definition, text_path):
        ids = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen([bench, "--on-request", definition, text_path, ids.name], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("warm")
        self.ids = array.array("I", pathlib.Path(ids.name).read_bytes())

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("tokenizer_bench ended early")
        return float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def bytes_of_symbols():
    """Byte-level vocabularies write bytes as printable characters: character -> byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in plain}
    for i, b in enumerate(b for b in range(256) if b not in plain):
        table[chr(0x100 + i)] = b
    return table


def split_pattern(section):
    """The one Regex of a pre_tokenizer section, or None."""
    steps = section["pretokenizers"] if section["type"] == "Sequence" else [section]
    found = [s["pattern"]["Regex"] for s in steps if s["type"] == "Split"]
    return found[0] if len(found) == 1 else None


def open_tokenizers(definition, text):
    import tokenizers
    t = tokenizers.Tokenizer.from_file(definition)
    return (f"tokenizers {tokenizers.__version__}", lambda: t.encode_batch_fast([text], add_special_tokens=False),
            lambda r: r[0].ids)


def open_tiktoken(definition, text):
    import tiktoken
    data = json.loads(pathlib.Path(definition).read_text())
    pattern = split_pattern(data["pre_tokenizer"])
    if pattern is None:
        raise ImportError("needs a tokenizer with one split pattern")
    table = bytes_of_symbols()
    ranks = {bytes(table[c] for c in token): i for token, i in data["model"]["vocab"].items()}
    encoding = tiktoken.Encoding("bench", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return (f"tiktoken {tiktoken.__version__}", lambda: encoding.encode_to_numpy(text, disallowed_special=()), list)


def open_quicktok(definition, text):
    import quicktok
    if not hasattr(quicktok, "get_encoding"):
        raise ImportError("this quicktok is another project; `pip install quicktok-v1`")
    encoding = quicktok.get_encoding("qwen")
    version = __import__("importlib.metadata").metadata.version("quicktok-v1")
    return (f"quicktok-v1 {version}", lambda: encoding.encode_batch([text], threads=1), lambda r: list(r[0]))


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def compare(args, text_path):
    text = pathlib.Path(text_path).read_text(encoding="utf-8")
    megabytes = len(text.encode()) / 1e6
    ours = Ours(args.bench, args.definition, text_path)
    print(f"{text_path}: {megabytes:.2f} MB, {len(ours.ids)} tokens")
    runs = {"dovetail, first": lambda: ours.ask("first"), "dovetail, warm": lambda: ours.ask("warm")}

    def timed(call):
        def run():
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        return run

    for name, opener in (("tokenizers", open_tokenizers), ("tiktoken", open_tiktoken), ("quicktok", open_quicktok)):
        try:
            label, call, ids_of = opener(args.definition, text)
            ids = ids_of(call())
        except ImportError as error:
            print(f"  {name}: left out: {error}")
            continue
        if list(ids) != list(ours.ids):
            print(f"  {label}: other ids than ours from token {first_difference(ids, ours.ids)} on "
                  f"({len(ids)} in all){'; it does not normalize' if name == 'tiktoken' else ''}")
        runs[label] = timed(call)

    seconds = {name: [] for name in runs}
    for _ in range(args.rounds):
        for name, run in runs.items():
            seconds[name].append(run())
    for name, s in seconds.items():
        print(f"  {name:22} {megabytes / statistics.median(s):8.1f} MB/s median, "
              f"{megabytes / max(s):.1f} to {megabytes / min(s):.1f}")
    ours.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("definition")
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    for text_path in args.texts:
        compare(args, text_path)


if __name__ == "__main__":
    main()
