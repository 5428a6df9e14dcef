#!/usr/bin/env python3
"""What quantised weights cost in quality: a config's logits in each format against those of the weights as stored.

Mean KL divergence (nats a token, of the stored weights' distribution from the format's), how often both name the
same likeliest token, and the perplexity of the text, over windows of a text. The KV cache is float32 throughout.

    tools/bench/weight_formats.py build/release/bin/dovetail configs/demo.yaml text.txt --markdown docs/weight-formats.md
"""
import argparse
import array
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

FORMATS = ["int8", "int4q", "int4"]


def read_logits(path):
    data = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    tensor = json.loads(data[8:8 + n])["logits"]
    begin, end = tensor["data_offsets"]
    values = array.array("f")
    values.frombytes(data[8 + n + begin:8 + n + end])
    width = tensor["shape"][1]
    return [values[r * width:(r + 1) * width] for r in range(tensor["shape"][0])]


def logits(dovetail, config, ids, weights, more):
    with tempfile.TemporaryDirectory() as folder:
        out = str(pathlib.Path(folder) / "logits.safetensors")
        subprocess.run([dovetail, "logits", config, "--ids", ",".join(map(str, ids)), "-o", out, "--set",
                        "kv_cache.dtype=float32", "--set", f"backend.weights={weights}", *more],
                       check=True, stdout=subprocess.DEVNULL)
        return read_logits(out)


def tokenize(dovetail, config, text):
    run = subprocess.run([dovetail, "tokenize", "--tokenizer", config, "--jsonl"], input=json.dumps({"text": text}) + "\n", check=True,
                         capture_output=True, text=True)
    return json.loads(run.stdout)["ids"]


def log_softmax(row):
    top = max(row)
    total = math.log(math.fsum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


class Sums:
    """Over all positions of all windows."""

    def __init__(self):
        self.n = self.n_predicted = self.n_same = 0
        self.kl = self.nll = 0.0

    def add(self, stored, other, ids):
        for pos, (p_row, q_row) in enumerate(zip(stored, other)):
            p, q = log_softmax(p_row), log_softmax(q_row)
            self.kl += math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q))
            self.n_same += max(range(len(p)), key=p.__getitem__) == max(range(len(q)), key=q.__getitem__)
            self.n += 1
            if pos + 1 < len(ids):
                self.nll -= q[ids[pos + 1]]
                self.n_predicted += 1

    def result(self):
        return {"positions": self.n, "kl": self.kl / self.n, "same_top": self.n_same / self.n,
                "perplexity": math.exp(self.nll / self.n_predicted)}


def weight_bytes(dovetail, config, weights, more):
    run = subprocess.run([dovetail, "plan", config, "--json", "--set", f"backend.weights={weights}", *more], check=True,
                         capture_output=True, text=True)
    items = json.loads(run.stdout)["items"]
    return sum(i["bytes"] for i in items if i["name"].startswith("weights"))


def measure(dovetail, config, text, formats, window, windows, more=()):
    ids = tokenize(dovetail, config, text)
    parts = [ids[i:i + window] for i in range(0, len(ids) - 1, window)][:windows]
    parts = [p for p in parts if len(p) > 1]
    if not parts:
        sys.exit("weight_formats.py: the text has fewer than two tokens")
    sums = {f: Sums() for f in ["stored", *formats]}
    for done, part in enumerate(parts):
        print(f"window {done + 1} of {len(parts)}", file=sys.stderr)
        stored = logits(dovetail, config, part, "null", more)
        sums["stored"].add(stored, stored, part)
        for f in formats:
            sums[f].add(stored, logits(dovetail, config, part, f, more), part)
    out = {}
    for f, s in sums.items():
        out[f] = s.result()
        out[f]["bytes"] = weight_bytes(dovetail, config, "null" if f == "stored" else f, more)
    return out


def table(result):
    lines = ["| weights | size | mean KL | same top token | perplexity |", "|---|---|---|---|---|"]
    for name, r in result.items():
        size = f"{r['bytes'] / 2**20:.1f} MiB"
        lines.append(f"| {'as stored' if name == 'stored' else '`' + name + '`'} | {size} | {r['kl']:.5f} | {r['same_top'] * 100:.1f} % "
                     f"| {r['perplexity']:.3f} |")
    return "\n".join(lines) + "\n"


HEADING = "## What they cost in quality\n"


def section(result, arguments):
    return (f"{HEADING}\nWritten by `tools/bench/weight_formats.py {arguments}`.\n\n"
            f"{result['stored']['positions']} positions of the text; divergence from the weights as stored, in nats a token.\n\n" + table(result))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dovetail")
    p.add_argument("config")
    p.add_argument("text", help="file of text to measure over")
    p.add_argument("--formats", default=",".join(FORMATS), help="comma-separated")
    p.add_argument("--window", type=int, default=256, help="tokens of a window")
    p.add_argument("--windows", type=int, default=8, help="windows at most")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for every run of dovetail")
    p.add_argument("--json", action="store_true")
    p.add_argument("--markdown", metavar="FILE", help="write it there, as the last section of the page")
    a = p.parse_args()
    more = [x for s in a.set for x in ("--set", s)]
    text = pathlib.Path(a.text).read_text(encoding="utf-8")
    result = measure(a.dovetail, a.config, text, a.formats.split(","), a.window, a.windows, more)
    print(json.dumps(result, indent=2) if a.json else table(result), end="")
    if a.markdown:
        options = f"--window {a.window} --windows {a.windows}"
        page = pathlib.Path(a.markdown)
        before = page.read_text(encoding="utf-8").split(HEADING)[0] if page.exists() else "# Weight formats\n\n"
        page.write_text(before + section(result, f"build/release/bin/dovetail {a.config} {pathlib.Path(a.text).name} {options}"), encoding="utf-8")


if __name__ == "__main__":
    main()
