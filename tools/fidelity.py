#!/usr/bin/env python3
"""Compares Dovetail with a peer on the same model files, and writes a page of it: perplexity, then greedy texts.

  fetch_models.py && fidelity.py --peer ~/llama.cpp/build/bin models/*.gguf -o docs/fidelity.md

Perplexity: the same windows of the same text, the second half of each counted. The two may differ by --most.

Greedy texts: ten prompts a model, without a chat template. Where the texts part, Dovetail's logits at the first token
that differs are shown: its own choice, and the peer's with its rank. Both engines round activations, each in its
own way, so that a small gap there is a tie within rounding; --tie says how small. Where the gap is larger the
row says so, and the program ends with 1.

exit codes  0 all perplexities are near, every text is equal or parts at a tie; 1 one is not; 2 a wrong option; 3 a program failed.
Python's standard library only.
"""
import argparse
import array
import json
import os
import platform
import re
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEXT = os.path.join(ROOT, "tests", "data", "demo", "austen-pride_and_prejudice.txt")  # in the public domain
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
    done = subprocess.run(command, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})
    if done.returncode:
        told = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Failed(f"{' '.join(command[:3])} ...: exit code {done.returncode}: {told[-300:]}")
    return done.stdout.decode(errors="replace")


class Engine:
    def __init__(self, dovetail, peer, model, n_tokens):
        self.dovetail, self.peer, self.model, self.n_tokens = dovetail, peer, model, n_tokens

    def our_text(self, prompt):
        told = output_of([self.dovetail, "run", self.model, prompt, "--raw", "--json", "-n", str(self.n_tokens),
                          "--set", "sampler=[greedy]"])
        return json.loads(told)["text"]

    def peer_text(self, prompt):
        told = output_of([os.path.join(self.peer, "llama-simple"), "-m", self.model, "-n", str(self.n_tokens), prompt])
        return told[told.index(prompt) + len(prompt):]

    def our_perplexity(self, text, context, windows):
        """(perplexity, its standard error)"""
        found = json.loads(output_of([self.dovetail, "perplexity", self.model, text, "--context", str(context), "--windows", str(windows), "--json"]))
        if found["windows"] != windows:
            raise Failed(f"{text} has {found['windows']} windows of {context} tokens, expected {windows}")
        return found["perplexity"], found["perplexity_error"]

    def peer_perplexity(self, text, context, windows):
        told = output_of([os.path.join(self.peer, "llama-perplexity"), "-m", self.model, "-f", text, "-c", str(context), "--chunks", str(windows)],
                         stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
        final = re.search(r"Final estimate: PPL = ([\d.]+) \+/- ([\d.]+)", told)
        if not final:
            raise Failed(f"llama-perplexity gave no final estimate: {told.strip()[-300:]}")
        return float(final[1]), float(final[2])

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


def perplexities(engine, options):
    """A row of the table, and whether the two are near."""
    print(f"{os.path.basename(engine.model)}: perplexity", file=sys.stderr, flush=True)
    what = (options.text, options.context, options.windows)
    (ours, our_error), (peers, peer_error) = engine.our_perplexity(*what), engine.peer_perplexity(*what)
    off = ours / peers - 1
    is_near = abs(off) <= options.most / 100
    return (os.path.basename(engine.model), f"{ours:.4f} ± {our_error:.4f}", f"{peers:.4f} ± {peer_error:.4f}",
            f"{100 * off:+.2f} %" if is_near else f"**{100 * off:+.2f} %**"), is_near


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


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def page(scores, texts, options, command):
    counted = options.windows * (options.context - options.context // 2 - 1)
    lines = ["<!-- Written by tools/fidelity.py; do not edit. -->", "", "# Fidelity", "",
             f"Dovetail beside {options.peer_name}, on the same files, on {platform.machine()}.", "", f"    {command}", "",
             "## Perplexity", "",
             f"Of {os.path.relpath(options.text, ROOT)}: its first {options.windows} windows of {options.context} tokens, the second half of each",
             f"counted, {counted} tokens in all. The error is that of the mean over tokens, the same text for both: what counts is the",
             f"difference, of which {options.most} % is allowed. Dovetail keeps its KV cache as bf16, the peer as f16.", ""]
    lines += table(["file", "Dovetail", options.peer_name, "difference"], scores)
    lines += ["", "## Greedy texts", "", f"Of {options.tokens} tokens. Both round activations, each in its own way: where texts part, the row shows",
              "Dovetail's logits of its own token and of the peer's at the first one that differs. A gap of at most",
              f"{options.tie} counts as a tie within rounding."]
    for name, rows in texts:
        lines += ["", f"### {name}", "", *table(["prompt", "texts", "token", "ours", "the peer's", "gap"], rows)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="+", metavar="MODEL.gguf")
    parser.add_argument("--peer", required=True, metavar="PATH", help="the folder of the peer's llama-simple and llama-perplexity")
    parser.add_argument("--peer-name", default="llama.cpp", help="what the page calls it, with its commit (llama.cpp)")
    parser.add_argument("--dovetail", metavar="PATH", default=os.path.join(ROOT, "build", "release", "bin", "dovetail"))
    parser.add_argument("-n", "--tokens", type=int, default=64, help="tokens of each text (64)")
    parser.add_argument("--tie", type=float, default=0.3, help="the largest gap of logits that is a tie (0.3)")
    parser.add_argument("--text", metavar="FILE", default=TEXT, help="the text of the perplexities (Pride and Prejudice)")
    parser.add_argument("--context", type=int, default=512, help="tokens of a window (512)")
    parser.add_argument("--windows", type=int, default=16, help="windows of the text (16)")
    parser.add_argument("--most", type=float, default=0.5, help="the largest difference of perplexities, in per cent (0.5)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the page there (standard output)")
    options = parser.parse_args()
    scores, texts, n_wrong = [], [], 0
    try:
        for model in options.model:
            engine = Engine(options.dovetail, options.peer, model, options.tokens)
            row, is_near = perplexities(engine, options)
            scores.append(row)
            n_wrong += not is_near
            rows, n = compare(engine, options.tie)
            texts.append((os.path.basename(model), rows))
            n_wrong += n
    except (Failed, OSError, ValueError) as error:
        print(f"fidelity: {error}", file=sys.stderr)
        return 3
    command = f"tools/fidelity.py --peer bin -n {options.tokens} --tie {options.tie} --context {options.context} --windows {options.windows} " + " ".join(
        "models/" + os.path.basename(model) for model in options.model)
    text = page(scores, texts, options, command)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
