"""What `dovetail logits` computes, and the measures of it that commands print, computed here a second time."""
import array
import json
import math
import pathlib
import struct
import subprocess
import tempfile


def rows_of(path):
    """{name: [rows]} of a safetensors file of float32 matrices."""
    data = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    out = {}
    for name, tensor in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        values = array.array("f")
        values.frombytes(data[8 + n + begin:8 + n + end])
        width = tensor["shape"][1]
        out[name] = [values[r * width:(r + 1) * width] for r in range(tensor["shape"][0])]
    return out


def logits(program, config, ids, *options):
    """{"logits": [rows], "layer_out.0": [rows], ...}"""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "l.safetensors"
        subprocess.run([program, "logits", config, "--ids", ",".join(map(str, ids)), "-o", str(out), "--layers", *options],
                       check=True, stdout=subprocess.DEVNULL)
        return rows_of(out)


def log_probabilities(row):
    top = max(row)
    total = math.log(math.fsum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


def divergence(a, b):
    """KL of the logits b from those of a."""
    return math.fsum(math.exp(p) * (p - q) for p, q in zip(log_probabilities(a), log_probabilities(b)))


def norm(row):
    return math.sqrt(math.fsum(x * x for x in row))


def relative_error(a, b):
    return norm([y - x for x, y in zip(a, b)]) / norm(a)
