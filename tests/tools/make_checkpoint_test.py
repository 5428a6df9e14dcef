#!/usr/bin/env python3
"""tools/make_checkpoint.py: what it writes is a valid checkpoint of the shape that was asked for."""
import contextlib
import importlib.util
import io
import json
import math
import os
import struct
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
spec = importlib.util.spec_from_file_location(
    "make_checkpoint", os.path.join(ROOT, "tools", "make_checkpoint.py"))
maker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(maker)

TINY = ["--hidden-size", "48", "--intermediate-size", "80", "--num-hidden-layers", "2", "--vocab-size", "500",
        "--num-attention-heads", "4", "--num-key-value-heads", "2", "--head-dim", "16", "--tokenizer", "none"]


def read_safetensors(path):
    """{name: (dtype, shape, bytes)}; refuses gaps, overlaps and a file of the wrong length."""
    with open(path, "rb") as f:
        (header_len,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(header_len))
        data = f.read()
    header.pop("__metadata__")
    at, found = 0, {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert begin == at, f"{name} begins at {begin}, expected {at}"
        found[name], at = (entry["dtype"], entry["shape"], data[begin:end]), end
    assert at == len(data) and header_len % 8 == 0
    return found


def floats(tensor):
    dtype, _, data = tensor
    if dtype == "BF16":
        data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
    return struct.unpack(f"<{len(data) // 4}f", data)


class MakeCheckpoint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make(self, name, *arguments):
        out = os.path.join(self.folder, name)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            maker.main([out, *TINY, *arguments])
        return out

    def weights(self, name, *arguments):
        return read_safetensors(os.path.join(self.make(name, *arguments), "model.safetensors"))

    def test_sparse_weights_have_the_header_and_the_length_of_real_ones(self):
        real, sparse = self.weights("real"), self.weights("sparse", "--sparse")
        self.assertEqual([(n, t[:2], len(t[2])) for n, t in real.items()], [(n, t[:2], len(t[2])) for n, t in sparse.items()])
        self.assertFalse(any(any(t[2]) for t in sparse.values()))

    def test_released_shapes_have_their_parameter_and_tensor_counts(self):
        expected = {"0.6b": (596049920, 310), "1.7b": (1720574976, 310), "4b": (4022468096, 398),
                    "8b": (8190735360, 399), "14b": (14768307200, 443), "32b": (32762123264, 707)}
        for shape, (n_params, n_tensors) in expected.items():
            config = maker.make_config(maker.parse(["out", "--shape", shape]))
            sizes = [math.prod(t[1]) for t in maker.tensors(config, store_tied_head=False)]
            self.assertEqual((sum(sizes), len(sizes)), (n_params, n_tensors), shape)

    def test_every_tensor_has_its_shape_and_its_bytes(self):
        weights = self.weights("a")
        self.assertEqual(len(weights), 2 + 2 * 11)
        self.assertEqual(weights["model.embed_tokens.weight"][1], [500, 48])
        self.assertEqual(weights["model.layers.1.self_attn.o_proj.weight"][1], [48, 64])
        for dtype, shape, data in weights.values():
            self.assertEqual((dtype, len(data)), ("BF16", 2 * math.prod(shape)))

    def test_values_have_the_promised_mean_and_deviation(self):
        for arguments in ([], ["--dtype", "float32"]):
            weights = self.weights("a" + "".join(arguments), *arguments)
            embedding, norm = (floats(weights[n]) for n in ("model.embed_tokens.weight", "model.norm.weight"))
            deviation = math.sqrt(sum(x * x for x in embedding) / len(embedding))
            self.assertAlmostEqual(deviation * math.sqrt(48), 1.0, delta=0.02)
            self.assertLess(abs(sum(embedding) / len(embedding)), 0.01)
            self.assertTrue(all(0.4 < x < 1.6 for x in norm) and len(set(norm)) > 20)

    def test_rows_and_tensors_differ(self):
        weights = self.weights("a")
        _, (rows, columns), data = weights["model.embed_tokens.weight"]
        self.assertEqual(len({data[2 * columns * r:2 * columns * (r + 1)] for r in range(rows)}), rows)
        self.assertEqual(len({data for _, _, data in weights.values()}), len(weights))

    def test_same_arguments_give_the_same_bytes_and_another_seed_others(self):
        first = self.weights("a")
        self.assertEqual(first, self.weights("b"))
        self.assertNotEqual(first, self.weights("c", "--seed", "1"))

    def test_shards_hold_the_same_weights_as_one_file(self):
        out = self.make("sharded", "--shard-mb", "0.06")
        with open(os.path.join(out, "model.safetensors.index.json")) as f:
            index = json.load(f)
        files = sorted(set(index["weight_map"].values()))
        self.assertGreater(len(files), 2)
        self.assertEqual(files[0], f"model-00001-of-{len(files):05d}.safetensors")
        merged = {}
        for file in files:
            part = read_safetensors(os.path.join(out, file))
            self.assertTrue(all(index["weight_map"][name] == file for name in part))
            merged.update(part)
        self.assertEqual(merged, self.weights("whole"))
        self.assertEqual(index["metadata"]["total_size"], sum(len(t[2]) for t in merged.values()))

    def test_output_matrix_is_stored_when_untied_or_asked_for(self):
        self.assertNotIn("lm_head.weight", self.weights("tied"))
        copied = self.weights("copied", "--store-tied-head")
        self.assertEqual(copied["lm_head.weight"], copied["model.embed_tokens.weight"])
        untied = self.weights("untied", "--no-tied")
        self.assertNotEqual(untied["lm_head.weight"], untied["model.embed_tokens.weight"])

    def test_tokenizer_is_unpacked_beside_the_weights(self):
        out = self.make("a", "--vocab-size", "151936", "--hidden-size", "8", "--tokenizer", maker.TOKENIZER_DIR)
        self.assertEqual(os.path.getsize(os.path.join(out, "tokenizer.json")), 11422654)
        with open(os.path.join(out, "tokenizer_config.json")) as f:
            self.assertIn("chat_template", json.load(f))

    def test_wrong_input_is_one_line_and_leaves_nothing(self):
        self.make("taken")
        for name, arguments, expected in (
                ("taken", [], "exists"),
                ("small", ["--tokenizer", maker.TOKENIZER_DIR], "vocab_size is 500"),
                ("missing", ["--vocab-size", "151936", "--tokenizer", self.folder], "tokenizer.json"),
                ("heads", ["--num-key-value-heads", "3"], "multiple of 3"),
                ("huge", ["--vocab-size", "9000000000"], "free in")):
            with self.assertRaises(SystemExit) as stopped:
                self.make(name, *arguments)
            self.assertIn(expected, str(stopped.exception.code))
            self.assertNotIn("\n", str(stopped.exception.code))
        self.assertEqual(os.listdir(self.folder), ["taken"])


if __name__ == "__main__":
    unittest.main()
