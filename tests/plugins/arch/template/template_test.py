"""The architecture to copy, run over a checkpoint that this test writes: both backends agree, one by
one equals in one batch, and a wrong shape or a missing weight is named. usage: template_test.py DOVETAIL
"""
import array
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

DOVETAIL = sys.argv.pop(1)
CONFIG = {"model_type": "template", "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4,
          "num_key_value_heads": 2, "vocab_size": 64, "rope_theta": 10000.0}
SHAPES = {"embed.weight": [64, 32], "attn_norm.weight": [32], "q_proj.weight": [32, 32], "k_proj.weight": [16, 32],
          "v_proj.weight": [16, 32], "o_proj.weight": [32, 32], "ffn_norm.weight": [32], "gate_proj.weight": [48, 32],
          "up_proj.weight": [48, 32], "down_proj.weight": [32, 48], "norm.weight": [32]}


def write_checkpoint(folder, shapes):
    rng = random.Random(1)
    header, data = {}, b""
    for name, shape in shapes.items():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = array.array("f", [rng.gauss(0, 0.2) + (1.0 if len(shape) == 1 else 0.0) for _ in range(n)])
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * n]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(CONFIG))


class Template(unittest.TestCase):
    def run_logits(self, folder, *options):
        out = folder / "out.safetensors"
        result = subprocess.run([DOVETAIL, "logits", str(folder), "--ids", ",".join(map(str, range(1, 40))), "-o", str(out), *options],
                                capture_output=True, text=True)
        if result.returncode:
            return result, None
        raw = out.read_bytes()
        (n,) = struct.unpack_from("<Q", raw)
        values = array.array("f")
        values.frombytes(raw[8 + n:])
        return result, values

    def test_backends_and_step_sizes_agree(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_checkpoint(folder, SHAPES)
            _, reference = self.run_logits(folder, "--set", "backend.plugin=reference")
            for options in ([], ["--steps"], ["--chunk", "5"]):
                result, cpu = self.run_logits(folder, *options)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(len(cpu), 39 * 64)
                self.assertLess(max(abs(a - b) for a, b in zip(cpu, reference)), 1e-4)

    def test_a_wrong_shape_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_checkpoint(folder, {**SHAPES, "k_proj.weight": [32, 32]})
            result, _ = self.run_logits(folder)
            self.assertEqual(result.returncode, 3)
            self.assertIn('weight "k_proj.weight" is [32, 32], expected [16, 32] (n_kv_heads * head_dim, d_model)', result.stderr)

    def test_a_missing_weight_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_checkpoint(folder, {k: v for k, v in SHAPES.items() if k != "norm.weight"})
            result, _ = self.run_logits(folder)
            self.assertEqual(result.returncode, 3)
            self.assertIn('weight "norm.weight" is missing', result.stderr)


if __name__ == "__main__":
    unittest.main()
