#!/usr/bin/env python3
"""Compares Dovetail's greedy text with a peer's, on the same model files, and writes a page of it.

  fetch_models.py && fidelity.py --peer ~/llama.cpp/build/bin/llama-simple models/*.gguf -o docs/fidelity.md

Ten prompts a model, without a chat template. Where the texts part, Dovetail's logits at the first token that
differs are shown: its own choice, and the peer's with its rank. Both engines round activations, each in its
own way, so that a small gap there is a tie within rounding; --tie says how small. Where the gap is larger the
row says so, and the program ends with 1.

exit codes  0 every text is equal or parts at a tie; 1 one parts elsewhere; 2 a wrong option; 3 a program failed.
Python's standard library only.
"""
import argparse
import array
import json
import os
import platform
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):",
    "Once upon a time, in a small village",
    "Water boils at",
    "The three primary colours are",
    "Q: What is 17 + 25?\nA:",
    "In 1969, the first humans",
    "SELECT name FROM users WHERE",
    "Dear Sir or Madam,\n\n",
    "La plus grande ville d'Allemagne est",
]


class Failed(Exception):
    pass


def output_of(command, **more):
    done = subprocess.run(command, capture_output=True, **more)
    if done.returncode:
        raise Failed(f"{' '.join(command[:3])} ...: exit code {done.returncode}: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout.decode(errors="replace")


class Engine:
    def __init__(self, dovetail, peer, model, n_tokens):
        self.dovetail, self.peer, self.model, self.n_tokens = dovetail, peer, model, n_tokens

    def our_text(self, prompt):
        told = output_of([self.dovetail, "run", self.model, prompt, "--raw", "--json", "-n", str(self.n_tokens),
                          "--set", "sampler=[greedy]"])
        return json.loads(told)["text"]

    def peer_text(self, prompt):
        told = output_of([self.peer, "-m", self.model, "-n", str(self.n_tokens), prompt])
        return told[told.index(prompt) + len(prompt):]

    def ids(self, text):
        return [token["id"] for token in json.loads(output_of(
            [self.dovetail, "tokenize", "--tokenizer", self.model, "--json", text]))]

    def piece(self, token):
        return output_of([self.dovetail, "tokenize", "--tokenizer", self.model, "--decode", str(token)]).rstrip("\n")

    def last_logits(self, ids):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "logits.safetensors")
            output_of([self.dovetail, "logits", self.model, "--ids", ",".join(map(str, ids)), "-o", path])
            with open(path, "rb") as file:
                head_len, = struct.unpack("<Q", file.read(8))
                tensor = json.loads(file.read(head_len))["logits"]
                begin, end = tensor["data_offsets"]
                row = 4 * tensor["shape"][-1]
                file.seek(8 + head_len + end - row)
                values = array.array("f")
                values.frombytes(file.read(row))
        return values


def same_text(ours, peers):
    """One may hold part of a character, or a stop, at its end."""
    ours, peers = ours.rstrip("\n\ufffd"), peers.rstrip("\n\ufffd")
    return ours.startswith(peers) or peers.startswith(ours)


def where_they_part(engine, prompt, ours, peers):
    """The first token that differs, as a row's cells, and the gap between the two logits."""
    left, right = engine.ids(prompt + ours), engine.ids(prompt + peers)
    at = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)) - 1)
    logits = engine.last_logits(left[:at])
    best = max(range(len(logits)), key=logits.__getitem__)
    rank = sum(value > logits[right[at]] for value in logits) + 1
    gap = logits[best] - logits[right[at]]
    return (f"{at - len(engine.ids(prompt)) + 1}", f"{engine.piece(best)!r} {logits[best]:.3f}",
            f"{engine.piece(right[at])!r} {logits[right[at]]:.3f}, rank {rank}"), gap


def compare(engine, tie):
    """The rows of one model's table, and how many texts part elsewhere than at a tie."""
    rows, n_elsewhere = [], 0
    for prompt in PROMPTS:
        print(f"{os.path.basename(engine.model)}: {prompt!r}", file=sys.stderr, flush=True)
        ours, peers = engine.our_text(prompt), engine.peer_text(prompt)
        if same_text(ours, peers):
            rows.append((repr(prompt), "equal", "", "", "", ""))
            continue
        cells, gap = where_they_part(engine, prompt, ours, peers)
        is_tie = gap <= tie
        n_elsewhere += not is_tie
        rows.append((repr(prompt), "a tie" if is_tie else "**apart**", *cells, f"{gap:.3f}"))
    return rows, n_elsewhere


def page(tables, options, command):
    lines = ["<!-- Written by tools/fidelity.py; do not edit. -->", "", "# Fidelity", "",
             f"Greedy texts of {options.tokens} tokens, Dovetail's and {options.peer_name}'s, on the same files, on {platform.machine()}.",
             "Both round activations, each in its own way: where texts part, the row shows Dovetail's logits of its own",
             f"token and of the peer's at the first one that differs. A gap of at most {options.tie} counts as a tie within rounding.",
             "", f"    {command}"]
    for name, rows in tables:
        lines += ["", f"## {name}", "", "| prompt | texts | token | ours | the peer's | gap |", "|---|---|---|---|---|---|"]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="+", metavar="MODEL.gguf")
    parser.add_argument("--peer", required=True, metavar="PATH", help="the peer's llama-simple")
    parser.add_argument("--peer-name", default="llama.cpp", help="what the page calls it, with its commit (llama.cpp)")
    parser.add_argument("--dovetail", metavar="PATH", default=os.path.join(ROOT, "build", "release", "bin", "dovetail"))
    parser.add_argument("-n", "--tokens", type=int, default=64, help="tokens of each text (64)")
    parser.add_argument("--tie", type=float, default=0.3, help="the largest gap of logits that is a tie (0.3)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the page there (standard output)")
    options = parser.parse_args()
    tables, n_elsewhere = [], 0
    try:
        for model in options.model:
            rows, n = compare(Engine(options.dovetail, options.peer, model, options.tokens), options.tie)
            tables.append((os.path.basename(model), rows))
            n_elsewhere += n
    except (Failed, OSError, ValueError) as error:
        print(f"fidelity: {error}", file=sys.stderr)
        return 3
    command = f"tools/fidelity.py --peer llama-simple -n {options.tokens} --tie {options.tie} " + " ".join(
        "models/" + os.path.basename(model) for model in options.model)
    text = page(tables, options, command)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
    return 1 if n_elsewhere else 0


if __name__ == "__main__":
    sys.exit(main())
