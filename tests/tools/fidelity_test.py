#!/usr/bin/env python3
"""tools/fidelity.py beside a peer that a test can foresee: its page, its exit codes. Usage: fidelity_test.py DOVETAIL"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOVETAIL = None
MODEL = str(ROOT / "configs" / "demo.yaml")
SIMPLE = """#!{python}
import subprocess, sys
model, n, prompt = sys.argv[2], sys.argv[4], sys.argv[5]
told = subprocess.run([{dovetail!r}, "run", model, prompt, "--raw", "-n", n, "--set", "sampler=[greedy]"], capture_output=True, check=True)
sys.stdout.buffer.write(told.stdout)
"""
PERPLEXITY = """#!{python}
import sys
assert sys.argv[1::2] == ["-m", "-f", "-c", "--chunks"], sys.argv
print("perplexity: calculating perplexity over", sys.argv[8], "chunks", file=sys.stderr)
{final}
"""


class Fidelity(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.page = self.folder / "page.md"
        self.program("llama-simple", SIMPLE)
        found = subprocess.run([DOVETAIL, "perplexity", MODEL, self.text(), "--context", "32", "--windows", "2", "--json"], capture_output=True,
                               check=True).stdout
        self.ours = json.loads(found)["perplexity"]

    def text(self):
        return str(ROOT / "tests" / "data" / "demo" / "austen-pride_and_prejudice.txt")

    def program(self, name, source, **more):
        path = self.folder / name
        path.write_text(source.format(python=sys.executable, dovetail=DOVETAIL, **more), encoding="utf-8")
        path.chmod(0o755)

    def peer_says(self, perplexity):
        self.program("llama-perplexity", PERPLEXITY, final=f'print("Final estimate: PPL = {perplexity:.4f} +/- 1.2500", file=sys.stderr)')

    def run_tool(self, *words):
        return subprocess.run([sys.executable, str(ROOT / "tools" / "fidelity.py"), "--peer", str(self.folder), "--dovetail", DOVETAIL, "-n", "4",
                               "--context", "32", "--windows", "2", MODEL, "-o", str(self.page), *words], capture_output=True, text=True)

    def test_near_perplexities_and_equal_texts_are_right(self):
        self.peer_says(self.ours / 1.004)
        done = self.run_tool()
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.page.read_text(encoding="utf-8")
        self.assertIn(f"| demo.yaml | {self.ours:.4f} ± ", page)
        self.assertIn(f"| {self.ours / 1.004:.4f} ± 1.2500 | +0.40 % |", page)
        self.assertIn("the second half of each\ncounted, 30 tokens in all", page)
        self.assertEqual(page.count("| equal |"), 10)

    def test_a_perplexity_that_is_further_off_is_wrong(self):
        self.peer_says(self.ours / 0.99)
        self.assertEqual(self.run_tool().returncode, 1)
        self.assertIn("| **-1.00 %** |", self.page.read_text(encoding="utf-8"))
        self.assertEqual(self.run_tool("--most", "1.1").returncode, 0)

    def test_a_peer_that_fails_is_an_error(self):
        self.program("llama-perplexity", PERPLEXITY, final='sys.exit("no such model")')
        done = self.run_tool()
        self.assertEqual(done.returncode, 3)
        self.assertIn("no such model", done.stderr)
        self.program("llama-perplexity", PERPLEXITY, final="pass")
        done = self.run_tool()
        self.assertEqual(done.returncode, 3)
        self.assertIn("no final estimate", done.stderr)
        self.assertFalse(os.path.exists(self.page))


if __name__ == "__main__":
    DOVETAIL = sys.argv.pop(1)
    unittest.main()
