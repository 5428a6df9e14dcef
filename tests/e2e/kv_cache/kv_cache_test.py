"""A KV cache of int8 through the real program: the same text from both backends, the same bytes however the work is cut,
quality within bounds, and its memory counted. usage: kv_cache_test.py DOVETAIL
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "bench"))
import cache_formats  # noqa: E402
from weight_formats import Dovetail  # noqa: E402

DOVETAIL = sys.argv.pop(1)
DEMO = str(ROOT / "configs" / "demo.yaml")
INT8 = ["--set", "kv_cache.dtype=int8"]
GREEDY = ["--set", "sampler=[greedy]", "--set", "generate.max_tokens=24"]
PROMPT = "It is a truth universally acknowledged"
TEXT = ("The family of Dashwood had been long settled in Sussex. Their estate was large, and their residence was at "
        "Norland Park, in the centre of their property, where, for many generations, they had lived in so respectable "
        "a manner as to engage the general good opinion of their surrounding acquaintance.")


def program(*args):
    return subprocess.run([DOVETAIL, *args], capture_output=True, text=True, timeout=200)


def program_json(*args):
    done = program(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def head_shape():
    config = json.loads((ROOT / "configs" / "demo" / "config.json").read_text(encoding="utf-8"))
    return config["num_hidden_layers"], config["num_key_value_heads"], config["head_dim"]


class KvCache(unittest.TestCase):
    def test_backends_say_the_same(self):
        cpu = program_json("run", DEMO, PROMPT, *GREEDY, *INT8)
        reference = program_json("run", DEMO, PROMPT, *GREEDY, *INT8, "--set", "backend.plugin=reference")
        self.assertEqual(len(cpu["ids"]), 24)
        self.assertTrue(cpu["text"].strip())
        self.assertEqual(cpu["ids"], reference["ids"])

    def test_the_same_bytes_however_the_work_is_cut(self):
        ids = ",".join(map(str, Dovetail(DOVETAIL, DEMO, []).tokenize(TEXT)))
        with tempfile.TemporaryDirectory() as folder:
            def raw(*options):
                out = pathlib.Path(folder) / "l.safetensors"
                done = program("logits", DEMO, "--ids", ids, "-o", str(out), *options)
                self.assertEqual(done.returncode, 0, done.stderr)
                return out.read_bytes()
            whole = raw(*INT8)
            self.assertFalse(raw("--set", "kv_cache.dtype=bf16") == whole, "int8 changes logits")
            for options in (["--steps"], ["--chunk", "7"], ["--set", "backend.threads=1"], ["--set", "backend.threads=3"],
                            ["--set", "kv_cache.block_len=5"]):
                self.assertTrue(raw(*INT8, *options) == whole, options)

    def test_quality(self):
        result = cache_formats.measure(Dovetail(DOVETAIL, DEMO, []), TEXT, 128, 1)
        self.assertEqual(result["float32"]["from"]["float32"]["kl"], 0)
        for larger in ("float32", "bf16"):
            self.assertGreater(result["int8"]["from"][larger]["kl"], 0)
            self.assertLessEqual(result["int8"]["from"][larger]["kl"], 0.001)
            self.assertGreaterEqual(result["int8"]["from"][larger]["same_top"], 0.97)

    def test_a_row_takes_its_numbers_and_a_scale(self):
        n_layers, n_kv_heads, head_dim = head_shape()
        self.assertEqual(head_dim % 4, 0)
        for dtype, row in (("float32", 4 * head_dim), ("bf16", 2 * head_dim), ("int8", head_dim + 4)):
            plan = program_json("plan", DEMO, "--set", f"kv_cache.dtype={dtype}")
            a_token = n_layers * 2 * n_kv_heads * row
            self.assertEqual(plan["kv_bytes_per_token"], a_token, dtype)
            cache = next(i for i in plan["items"] if i["name"] == "KV cache")
            self.assertEqual(cache["bytes"], plan["kv_tokens"] * a_token, dtype)
            self.assertIn(f"({dtype})", cache["detail"])

    def test_bench_counts_what_is_read(self):
        def read(dtype):
            return program_json("bench", DEMO, "-p", "64", "-n", "32", "--set", f"kv_cache.dtype={dtype}")["decode"]["bytes_per_token"]
        n_layers, n_kv_heads, head_dim = head_shape()
        saved = n_layers * 2 * n_kv_heads * (2 * head_dim - (head_dim + 4)) * (64 + 32 / 2)
        self.assertAlmostEqual(read("bf16") - read("int8"), saved, delta=1)

    def test_an_unknown_dtype_is_refused(self):
        done = program("plan", DEMO, "--set", "kv_cache.dtype=int5")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("int5", done.stderr)
        self.assertIn("auto, float32, bf16, int8", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
