"""The official implementation's numbers: `dovetail logits` against the goldens, on both backends.

float32 logits and layer outputs within 1e-4, greedy tokens identical; one by one, in chunks and in one
batch the very same bytes. usage: golden_test.py DOVETAIL
"""
import array
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
DOVETAIL = sys.argv.pop(1)
BOUND = 1e-4
SIZES = {"F32": ("f", 4), "I64": ("q", 8)}


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + n])
    out = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        code, size = SIZES[t["dtype"]]
        values = array.array(code)
        assert values.itemsize == size
        values.frombytes(data[8 + n + begin:8 + n + end])
        out[name] = (t["shape"], values)
    return out


def logits(model, ids, backend, *options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "logits.safetensors"
        subprocess.run([DOVETAIL, "logits", str(GOLDEN / model), "--ids", ",".join(map(str, ids)), "-o", str(out), "--layers",
                        "--set", f"backend.plugin={backend}", *options], check=True, stdout=subprocess.DEVNULL)
        return read_safetensors(out)


def argmax_rows(shape, values):
    width = shape[1]
    return [max(range(width), key=lambda i: values[r * width + i]) for r in range(shape[0])]


class Golden(unittest.TestCase):
    def near(self, got, want, what):
        self.assertEqual(got[0], want[0], what)
        worst = max(abs(a - b) for a, b in zip(got[1], want[1]))
        self.assertLessEqual(worst, BOUND, what)

    def check(self, model, reference, backend):
        golden = read_safetensors(GOLDEN / reference / "golden.safetensors")
        ids = list(golden["ids"][1])
        batch = logits(model, ids, backend)
        self.near(batch["logits"], golden["logits"], f"{model} {backend} logits")
        layers = [name for name in golden if name.startswith("layer_out.")]
        self.assertGreaterEqual(len(layers), 2)
        for name in layers:
            self.near(batch[name], golden[name], f"{model} {backend} {name}")
        self.assertEqual(argmax_rows(*batch["logits"]), argmax_rows(*golden["logits"]), f"{model} {backend} greedy")
        for options in (["--steps"], ["--chunk", "7"], ["--chunk", "16"]):
            again = logits(model, ids, backend, *options)
            for name, (shape, values) in batch.items():
                self.assertEqual(again[name][1], values, f"{model} {backend} {name} with {options} is not bit-equal")
        # The reference's own cached decode, from the position where it began.
        shape, decoded = golden["dec_logits"]
        skip = len(golden["logits"][1]) - len(decoded)
        self.near((shape, again["logits"][1][skip:]), golden["dec_logits"], f"{model} {backend} decode")


class HalfPrecision(unittest.TestCase):
    """A float16 checkpoint: the same bytes of logits as its values in float32."""

    def write(self, folder, dtype):
        raw = (GOLDEN / "qwen3" / "model.safetensors").read_bytes()
        (n,) = struct.unpack_from("<Q", raw)
        header, tensors, data = json.loads(raw[8:8 + n]), {}, b""
        for name, t in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + n + offset for offset in t["data_offsets"])
            halves = array.array("H", struct.pack(f"<{(end - begin) // 4}e", *struct.unpack(f"<{(end - begin) // 4}f", raw[begin:end])))
            if name == "model.embed_tokens.weight":  # rows of subnormals, of zeros of both signs, and the largest
                halves[0:64] = array.array("H", [0x0001, 0x83ff, 0x0200, 0x8001] * 16)
                halves[64:128] = array.array("H", [0x0000, 0x8000, 0x7bff, 0xfbff] * 16)
            part = halves.tobytes()
            if dtype == "F32":
                part = struct.pack(f"<{len(halves)}f", *struct.unpack(f"<{len(halves)}e", part))
            tensors[name] = {"dtype": dtype, "shape": t["shape"], "data_offsets": [len(data), len(data) + len(part)]}
            data += part
        text = json.dumps(tensors).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
        (folder / "config.json").write_bytes((GOLDEN / "qwen3" / "config.json").read_bytes())
        return folder

    def test_float16_weights_are_their_float32_values(self):
        for backend in ("reference", "cpu"):
            with tempfile.TemporaryDirectory() as folder, self.subTest(backend):
                got = {dtype: logits(self.write(pathlib.Path(folder), dtype), range(24), backend, "--set", "kv_cache.dtype=float32")
                       for dtype in ("F16", "F32")}
                self.assertGreater(max(map(abs, got["F32"]["logits"][1])), 0.1)
                self.assertEqual(got["F16"], got["F32"])


def add(model, reference, backend):
    setattr(Golden, f"test_{model}_on_{backend}", lambda self: self.check(model, reference, backend))


for model_name, reference_name in (("qwen3", "qwen3"), ("qwen3_tied", "qwen3_tied"), ("qwen3_yarn", "qwen3_yarn"),
                                   ("qwen3_sharded", "qwen3")):
    for backend_name in ("reference", "cpu"):
        add(model_name, reference_name, backend_name)

if __name__ == "__main__":
    unittest.main()
