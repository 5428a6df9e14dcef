#!/usr/bin/env python3
"""What quantised weights cost in quality: a config's logits in each format against those of the weights as stored.

Mean KL divergence (nats a token, of the stored weights' distribution from the format's), how often both name the
same likeliest token, and the perplexity of the text, over windows of a text. The KV cache is float32 throughout.
Bits are those of all the weights, vectors too, over their number.

    tools/bench/weight_formats.py build/release/bin/dovetail configs/demo.yaml text.txt --markdown docs/weight-formats.md

Formats that Dovetail does not have are compared by --beside: a checkpoint of the same model whose numbers were
quantised elsewhere and are stored as float32 again. It runs as it is stored, with activations in float32, while
a format of Dovetail rounds activations as well; what it would take in its own format cannot be seen, so say its bits:

    tools/bench/weight_formats.py ... --beside Q4_K_M 5.34 checkpoints/as-Q4_K_M --beside Q4_0 4.94 checkpoints/as-Q4_0
"""
import argparse
import json
import math
import pathlib
import shlex
import subprocess
import sys

FORMATS = ["int8", "int6", "int4q", "int4"]


class Failed(Exception):
    """What the user should read."""


class Dovetail:
    """Runs the program; its messages go to the terminal."""

    def __init__(self, program, config, settings):
        self.program, self.config, self.settings = program, config, settings

    def run(self, command, *words, text=None):
        done = subprocess.run([self.program, command, *words], input=text, stdout=subprocess.PIPE, encoding="utf-8")
        if done.returncode:
            raise Failed(f"`{self.program} {command}` ended with exit code {done.returncode}")
        return done.stdout

    def with_config(self, command, settings, *words):
        sets = [x for s in [*self.settings, *settings] for x in ("--set", s)]
        return self.run(command, self.config, *words, *sets)

    def tokenize(self, text):
        line = json.dumps({"text": text}) + "\n"
        return json.loads(self.run("tokenize", "--tokenizer", self.config, "--jsonl", text=line))["ids"]

    def compare(self, ids, settings, a, b):
        """What `dovetail compare` finds: settings are for both, a and b for one each."""
        sets = [x for option, values in (("--a-set", a), ("--b-set", b)) for s in values for x in (option, s)]
        return json.loads(self.with_config("compare", settings, "--ids", ",".join(map(str, ids)), "--json", "--tolerance", "1e9", *sets))

    def weight_bytes(self, settings):
        items = json.loads(self.with_config("plan", settings, "--json"))["items"]
        return sum(i["bytes"] for i in items if i["name"].startswith("weights"))

    def n_weights(self, settings):
        return json.loads(self.with_config("inspect", settings, "--json"))["parameters"]


class Row:
    """A line of the table: how it is run, and the bits of a weight where the program cannot tell them."""

    def __init__(self, name, settings, bits=None):
        self.name, self.settings, self.bits = name, settings, bits

    def size(self, dovetail, n_weights):
        """(bytes, bits a weight)."""
        if self.bits is not None:
            return self.bits * n_weights / 8, self.bits
        n_bytes = dovetail.weight_bytes(self.settings)
        return n_bytes, n_bytes * 8 / n_weights


STORED = Row("as stored", ["backend.weights=null"])


def beside(name, bits, folder):
    """The row of a checkpoint; one that is not there is found before anything runs."""
    try:
        n_bits = float(bits)
    except ValueError:
        raise Failed(f"--beside {name}: bits a weight are {bits!r}, expected a number") from None
    if not 0 < n_bits <= 64:
        raise Failed(f"--beside {name}: {bits} bits a weight, expected more than 0 and at most 64")
    if not (pathlib.Path(folder) / "config.json").is_file():
        raise Failed(f"--beside {name}: {folder} is no checkpoint's folder, it has no config.json")
    return Row(name, [*STORED.settings, f"model.path={json.dumps(str(pathlib.Path(folder).absolute()))}"], n_bits)


class Sums:
    """Over all positions of all windows."""

    def __init__(self):
        self.n = self.n_predicted = self.n_same = 0
        self.kl = self.nll = 0.0

    def add(self, found):
        """One window, as `dovetail compare` says: the second of the two, held against the first."""
        n, n_predicted = found["top"]["positions"], found["nll"]["tokens"]
        self.n += n
        self.n_same += found["top"]["same"]
        self.kl += found["kl"]["mean"] * n
        self.n_predicted += n_predicted
        self.nll += found["nll"]["b"] * n_predicted

    def result(self):
        return {"positions": self.n, "kl": self.kl / self.n, "same_top": self.n_same / self.n,
                "perplexity": math.exp(self.nll / self.n_predicted)}


def check_same_model(dovetail, rows):
    """The number of weights, which all rows have."""
    n_weights = dovetail.n_weights(STORED.settings)
    for row in rows:
        n = dovetail.n_weights(row.settings)
        if n != n_weights:
            raise Failed(f"{row.name} has {n} weights, expected {n_weights} as in {dovetail.config}")
    return n_weights


def parts_of(ids, window, windows):
    """The windows of a text, each announced as its turn comes."""
    parts = [ids[i:i + window] for i in range(0, len(ids) - 1, window)][:windows]
    parts = [p for p in parts if len(p) > 1]
    if not parts:
        raise Failed("the text has fewer than two tokens")
    for done, part in enumerate(parts):
        print(f"window {done + 1} of {len(parts)}", file=sys.stderr)
        yield part


def measure(dovetail, text, rows, window, windows):
    """{name: result} of the weights as stored and of every row."""
    n_weights = check_same_model(dovetail, rows)
    rows = [STORED, *rows]
    sums = [Sums() for _ in rows]
    for part in parts_of(dovetail.tokenize(text), window, windows):
        for row, s in zip(rows, sums):
            s.add(dovetail.compare(part, ["kv_cache.dtype=float32"], STORED.settings, row.settings))
    out = {}
    for row, s in zip(rows, sums):
        out[row.name] = s.result()
        out[row.name]["bytes"], out[row.name]["bits"] = row.size(dovetail, n_weights)
    return out


def table(result):
    lines = ["| weights | bits a weight | size | mean KL | same top token | perplexity |", "|---|---|---|---|---|---|"]
    for name, r in result.items():
        lines.append(f"| {name} | {r['bits']:.2f} | {r['bytes'] / 2**20:.1f} MiB | {r['kl']:.5f} | {r['same_top'] * 100:.1f} % "
                     f"| {r['perplexity']:.3f} |")
    return "\n".join(lines) + "\n"


def section(heading, result, command):
    return (f"{heading}\n\nWritten by `{command}`.\n\n{result[STORED.name]['positions']} positions of the text; "
            f"divergence from the weights as stored, in nats a token.\n\n{table(result)}")


def with_section(page, heading, new):
    """The page with the new section in the place of the old one's lines up to its table's end, or at the page's end."""
    before, found, old = page.partition(heading + "\n")
    if not found:
        return f"{page.rstrip()}\n\n{new}"
    lines = old.splitlines(keepends=True)
    end = 0
    while end < len(lines) and not lines[end].startswith(("|", "## ")):
        end += 1
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return before + new + "".join(lines[end:])


def as_typed(a):
    """The command, with files' names for their paths."""
    words = ["tools/bench/weight_formats.py", "build/release/bin/dovetail", a.config, pathlib.Path(a.text).name,
             "--window", a.window, "--windows", a.windows]
    if a.formats != FORMATS:
        words += ["--formats", *a.formats]
    for s in a.set:
        words += ["--set", s]
    for name, bits, folder in a.beside:
        words += ["--beside", name, bits, pathlib.Path(folder).name]
    return shlex.join(map(str, words))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dovetail")
    p.add_argument("config")
    p.add_argument("text", help="file of text to measure over")
    p.add_argument("--formats", nargs="*", default=FORMATS, metavar="WEIGHTS",
                   help="values of backend.weights, such as int4 or '{default: int4, embed: int8}'; none for no row of Dovetail's own")
    p.add_argument("--beside", nargs=3, action="append", default=[], metavar=("NAME", "BITS", "FOLDER"),
                   help="a row for a checkpoint of the same model that runs as it is stored; BITS a weight are those of the format "
                        "that NAME says; may be repeated")
    p.add_argument("--window", type=int, default=256, help="tokens of a window")
    p.add_argument("--windows", type=int, default=8, help="windows at most")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for every run of dovetail")
    p.add_argument("--json", action="store_true")
    p.add_argument("--markdown", metavar="FILE", help="write a section of this page: its text up to the end of its first table is replaced, "
                   "what follows the table stays")
    p.add_argument("--section", default="What they cost in quality", metavar="TITLE", help="its title")
    a = p.parse_args()
    text = pathlib.Path(a.text).read_text(encoding="utf-8")
    try:
        rows = [Row(f"`{f}`", [f"backend.weights={f}"]) for f in a.formats] + [beside(*b) for b in a.beside]
        result = measure(Dovetail(a.dovetail, a.config, a.set), text, rows, a.window, a.windows)
    except Failed as e:
        sys.exit(f"weight_formats.py: {e}")
    print(json.dumps(result, indent=2) if a.json else table(result), end="")
    if a.markdown:
        page, heading = pathlib.Path(a.markdown), f"## {a.section}"
        old = page.read_text(encoding="utf-8") if page.exists() else "# Weight formats\n"
        page.write_text(with_section(old, heading, section(heading, result, as_typed(a))), encoding="utf-8")


if __name__ == "__main__":
    main()
