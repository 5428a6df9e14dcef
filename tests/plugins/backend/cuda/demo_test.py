"""The CUDA backend, its kernels run by emulation, through the real program: the embedded model's greedy tokens are those
of the reference backend, in each weight format. usage: demo_test.py DOVETAIL PLUGINS
"""
import json
import subprocess
import sys
import unittest

PLUGINS = sys.argv.pop(2)
DOVETAIL = sys.argv.pop(1)
PROMPT = "It is a truth universally acknowledged"


def greedy(backend, n, *options):
    done = subprocess.run([DOVETAIL, "run", PROMPT, "--json", "-n", str(n), "--set", "backend.plugin=" + backend,
                           "--set", "sampler=[greedy]", "--set", f"plugins.path=[{PLUGINS}]", *options],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=250)
    return done.returncode, done.stdout, done.stderr


class Demo(unittest.TestCase):
    def expect_same(self, n, *options):
        ids = []
        for backend in ("reference", "cuda_emulated"):
            code, out, err = greedy(backend, n, *options)
            self.assertEqual(code, 0, err)
            ids.append(json.loads(out)["ids"])
        self.assertEqual(len(ids[0]), n)
        self.assertEqual(ids[0], ids[1], options)

    def test_as_stored(self):
        self.expect_same(8, "--set", "kv_cache.dtype=float32")

    def test_packed_weights_and_an_int8_cache(self):
        for weights in ("int8", "int4"):
            self.expect_same(3, "--set", "backend.weights=" + weights, "--set", "kv_cache.dtype=int8")


if __name__ == "__main__":
    unittest.main()
