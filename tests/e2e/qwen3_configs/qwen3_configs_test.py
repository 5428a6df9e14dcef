"""configs/qwen3-*.yaml with folders that have the released models' files and sizes, whose weights are
holes: zeros that take no disk. usage: qwen3_configs_test.py DOVETAIL
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOVETAIL = sys.argv.pop(1)
EMBEDDING_06 = 151936 * 1024  # the released 0.6B and 1.7B store the tied output matrix a second time
EMBEDDING_17 = 151936 * 2048
MODELS = {  # parameters with a tied matrix counted once, elements stored beyond those, tensors, files, layers, width
    "0.6b": (596_049_920, EMBEDDING_06, 311, 1, 28, 1024),
    "1.7b": (1_720_574_976, EMBEDDING_17, 311, 2, 28, 2048),
    "4b": (4_022_468_096, 0, 398, 3, 36, 2560),
    "8b": (8_190_735_360, 0, 399, 5, 36, 4096),
}
holder = tempfile.TemporaryDirectory()


def setUpModule():
    for shape, (_, stored_twice, *_) in MODELS.items():
        options = ["--store-tied-head"] if stored_twice else []
        options += [] if shape == "0.6b" else ["--shard-mb", "4000"]
        subprocess.run([sys.executable, str(ROOT / "tools" / "make_checkpoint.py"), os.path.join(holder.name, "Qwen3-" + shape.upper()),
                        "--shape", shape, "--sparse", *options], check=True, capture_output=True)


def tearDownModule():
    holder.cleanup()


def program(*args):
    return subprocess.run([DOVETAIL, *args], capture_output=True, stdin=subprocess.DEVNULL, timeout=100,
                          env={**os.environ, "DOVETAIL_MODELS": holder.name})


def config(shape):
    return str(ROOT / "configs" / f"qwen3-{shape}.yaml")


class Qwen3Configs(unittest.TestCase):
    def json(self, *args, codes=(0,)):
        done = program(*args, "--json")
        self.assertIn(done.returncode, codes, done.stderr)
        return json.loads(done.stdout)

    def test_every_qwen3_config_is_here(self):
        self.assertEqual({p.stem for p in (ROOT / "configs").glob("qwen3-*.yaml")}, {"qwen3-" + shape for shape in MODELS})

    def test_each_is_right(self):
        for shape in MODELS:
            done = program("config", "check", config(shape))
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_each_has_the_published_shape(self):
        for shape, (n_params, stored_twice, n_tensors, n_files, n_layers, width) in MODELS.items():
            with self.subTest(shape=shape):
                got = self.json("inspect", config(shape))
                self.assertEqual((got["architecture"], got["layers"], got["d_model"], got["vocab_size"]), ("qwen3", n_layers, width, 151936))
                self.assertEqual(got["parameters"], n_params + stored_twice)
                self.assertEqual(len(got["tensors"]), n_tensors)
                self.assertEqual(sum(t["bytes"] for t in got["tensors"]), 2 * (n_params + stored_twice))
                self.assertEqual(len({t["file"] for t in got["tensors"]}), n_files)
                self.assertEqual(got["tokenizer_ids"], 151669)
                self.assertTrue(got["chat_template"])

    def test_each_plan_counts_the_weights_once(self):
        for shape, (n_params, _, _, _, n_layers, width) in MODELS.items():
            with self.subTest(shape=shape):
                n_norms = n_layers * (2 * width + 2 * 128) + width  # float32 in memory; all else stays where it lies
                plan = self.json("plan", config(shape), codes=(0, 5))  # 5: too large for this machine
                bytes_of = {i["name"]: i["bytes"] for i in plan["items"]}
                self.assertEqual(bytes_of["weights, mapped"], 2 * (n_params - n_norms))
                self.assertEqual(bytes_of["weights, repacked"], 4 * n_norms)
                self.assertEqual(plan["kv_bytes_per_token"], n_layers * 2 * 8 * 128 * 2)  # keys and values in bf16
                plan = self.json("plan", config(shape), "--set", "kv_cache.dtype=int8", codes=(0, 5))
                self.assertEqual(plan["kv_bytes_per_token"], n_layers * 2 * 8 * (128 + 4))  # a scale for each head

    def test_the_smallest_runs(self):
        """All logits are zero: any id may come. The point is that files of this size run."""
        done = self.json("run", config("0.6b"), "--ids", "9707,1879", "--max-tokens", "4", "--set", "backend.huge_pages=false")
        self.assertEqual(len(done["ids"]), 4)
        self.assertTrue(all(0 <= id < 151669 for id in done["ids"]))
        self.assertEqual(done["finish_reason"], "length")


if __name__ == "__main__":
    unittest.main()
