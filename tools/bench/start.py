#!/usr/bin/env python3
"""How long a model takes to its first token, and what memory it needs beside its weights.

Each format starts once, which fills the caches, then so many times more: seconds from the program's start to its end after
one token of a prompt of 8, the median and the range, and beside it those of the first start. Then a prompt of 480 tokens
and 32 more with a context of 512: the most memory that the process held, less the weights in use (`dovetail plan`).

    tools/bench/start.py build/release/bin/dovetail models/qwen3-0.6b --markdown docs/start.md
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

FORMATS = ["as stored", "int8", "int4"]
PEAK = ("import os, subprocess, sys; child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL); "
        "_, status, usage = os.wait4(child.pid, 0); print(usage.ru_maxrss); os._exit(os.waitstatus_to_exitcode(status))")


class Failed(Exception):
    """What the user should read."""


class Dovetail:
    def __init__(self, program, model, sets, cache):
        self.program, self.model, self.sets = program, model, sets
        self.env = {**os.environ, "XDG_CACHE_HOME": cache}

    def command(self, what, fmt, *words):
        sets = [*self.sets, *([] if fmt == "as stored" else [f"backend.weights={fmt}"])]
        return [self.program, what, self.model, *words, *(x for s in sets for x in ("--set", s))]

    def run(self, command):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", env=self.env)
        if done.returncode:
            raise Failed(f"`{shlex.join(command)}` ended with exit code {done.returncode}:\n{done.stderr}")
        return done.stdout

    def start_s(self, fmt):
        command = self.command("run", fmt, "--ids", "1,2,3,4,5,6,7,8", "-n", "1")
        begin = time.monotonic()
        self.run(command)
        return time.monotonic() - begin

    def peak(self, fmt):
        """(bytes held at most, bytes of weights)"""
        context = ("--set", "context=512")
        ids = ",".join(str(7 * i % 1000 + 1) for i in range(480))
        # By a small process: a child begins with the memory of the one that starts it.
        peak = int(self.run([sys.executable, "-c", PEAK, *self.command("run", fmt, "--ids", ids, "-n", "32", *context)])) * 1024
        items = json.loads(self.run(self.command("plan", fmt, "--json", *context)))["items"]
        return peak, sum(i["bytes"] for i in items if i["name"].startswith("weights"))


def measure(dovetail, formats, repeats):
    rows = []
    for fmt in formats:
        print(f"{fmt}: starts", file=sys.stderr)
        first, *later = [dovetail.start_s(fmt) for _ in range(1 + repeats)]
        print(f"{fmt}: memory", file=sys.stderr)
        peak, weights = dovetail.peak(fmt)
        rows.append({"format": fmt, "first_s": first, "later_s": later, "peak": peak, "weights": weights})
    return rows


def table(rows):
    lines = ["| weights | first start | later starts | of these | weights in use | most memory | beside the weights |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        later = r["later_s"]
        lines.append(f"| {r['format']} | {r['first_s']:.2f} s | {statistics.median(later):.2f} s | {min(later):.2f} to {max(later):.2f} s "
                     f"| {r['weights'] / 1e6:.0f} MB | {r['peak'] / 1e6:.0f} MB | {(r['peak'] - r['weights']) / 1e6:.0f} MB |")
    return "\n".join(lines) + "\n"


def page(rows, a):
    command = shlex.join(["tools/bench/start.py", "build/release/bin/dovetail", a.model, *(["--formats", *a.formats] if a.formats != FORMATS else []),
                          *(x for s in a.set for x in ("--set", s))])
    text = " ".join(line for line in __doc__.split("\n\n")[1].splitlines())
    return (f"<!-- Written by tools/bench/start.py; do not edit. -->\n\n# Start and memory\n\n{text}\n\n"
            f"{len(os.sched_getaffinity(0))} processors ({processor()}); `{command}`. The files are in the system's cache.\n\n{table(rows)}")


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dovetail")
    p.add_argument("model")
    p.add_argument("--formats", nargs="+", default=FORMATS, metavar="WEIGHTS", help='values of backend.weights, or "as stored"')
    p.add_argument("--repeats", type=int, default=7, help="later starts of each")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for every run of dovetail")
    p.add_argument("--json", action="store_true")
    p.add_argument("--markdown", metavar="FILE", help="write the page there")
    a = p.parse_args()
    try:
        with tempfile.TemporaryDirectory() as cache:
            rows = measure(Dovetail(a.dovetail, a.model, a.set, cache), a.formats, a.repeats)
    except Failed as e:
        sys.exit(f"start.py: {e}")
    print(json.dumps(rows, indent=2) if a.json else table(rows), end="")
    if a.markdown:
        pathlib.Path(a.markdown).write_text(page(rows, a), encoding="utf-8")


if __name__ == "__main__":
    main()
