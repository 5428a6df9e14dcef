#!/usr/bin/env python3
"""gpu_check over an emulated device: every check holds, planted errors are found, time and options are kept to.

usage: gpu_check_test.py GPU_CHECK GPU_CHECK_PLANTED
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
# What tests/tools/gpu_check/CMakeLists.txt plants, as the checks that must find it.
PLANTED = {
    "rope_half_split": "rope.cu",
    "softmax": "softmax.cu",
    "mean_rows": "rms_norm.cu",
    "decode_linear": "decode_linear.cu",
    "cache_write float32": "kv_cache.cu",
    "cache_write bf16": "kv_cache.cu",
    "attend float32": "attend.cu",
    "attend bf16": "attend.cu",
    "attend int8": "attend.cu",
    # Held to the launches that it stands for, of which some are planted.
    "decode_qkv": "rope.cu, kv_cache.cu",
}


def run(program, *args):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "out.json"
        done = subprocess.run([program, "--tiny", "--json", str(path), *args], capture_output=True, text=True)
        return done, json.loads(path.read_text()) if path.exists() else None


class GpuCheck(unittest.TestCase):
    program = planted = ""

    def test_holds_every_kernel_to_its_reference_and_times_it(self):
        done, out = run(self.program)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr)
        self.assertTrue(all(check["passes"] for check in out["checks"]))
        self.assertEqual((out["failed"], out["skipped"]), ([], []))
        checked = {check["name"].split(" ")[0] for check in out["checks"]}
        timed = {kernel["name"].split(" ")[0] for kernel in out["kernels"]}
        declared = set()
        for header in ("cuda.hpp", "cuda_decode.hpp"):
            text = (ROOT / "kernels/include/kernels" / header).read_text()
            declared |= set(re.findall(r"^void (\w+)\(Stream", text, re.M))
        self.assertGreater(len(declared), 20)
        # One check has the formats of both.
        self.assertEqual(declared - checked, {"gather_packed_rows"})
        self.assertEqual(declared - timed, set())
        for kernel in ("linear", "decode_linear", "decode_gate_up", "decode_qkv", "gather_rows"):
            formats = {c["name"].split(" ")[1] for c in out["checks"] if c["name"].startswith(kernel + " ")}
            self.assertEqual(formats, {"float32", "bf16", "f16", "int8", "int6", "int4", "int4q"}, kernel)
        for kernel in ("attend", "cache_write"):
            caches = {c["name"].split(" ")[1] for c in out["checks"] if c["name"].startswith(kernel + " ")}
            self.assertEqual(caches, {"float32", "bf16", "int8"}, kernel)
        self.assertEqual([step["n_tokens"] for step in out["steps"]], [1, 8, 9, 1, 20])
        self.assertTrue(all(row["us"] > 0 for row in out["kernels"]))
        self.assertIn("0 failed", done.stdout)

    def test_finds_planted_errors_and_goes_on(self):
        done, out = run(self.planted, "--quick")
        self.assertEqual(done.returncode, 1, done.stdout[-4000:] + done.stderr)
        failed = {check["name"] for check in out["checks"] if not check["passes"]}
        names = {check["name"] for check in out["checks"]}
        expected = {name for name in names if any(name == p or name.startswith(p + " ") for p in PLANTED)}
        self.assertEqual(failed, expected)
        _, whole = run(self.program, "--quick")
        self.assertEqual(names, {check["name"] for check in whole["checks"]})
        self.assertIn("FAIL", done.stdout)

    def test_only_runs_what_is_named(self):
        done, out = run(self.program, "--only", "linear int8")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual({row["name"] for row in out["checks"]}, {"linear int8", "decode_linear int8"})
        self.assertEqual({row["name"] for row in out["kernels"]}, {"linear int8", "decode_linear int8"})
        done, _ = run(self.program, "--only", "no such thing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing was run", done.stderr)

    def test_says_what_there_was_no_time_for(self):
        done, out = run(self.program, "--seconds", "0.2")
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        self.assertTrue(out["checks"])
        self.assertTrue(any("no time left" in text for text in out["skipped"]))

    def test_refuses_what_it_does_not_know(self):
        for args in (["--fast"], ["--seconds", "soon"], ["--only"]):
            done, _ = run(self.program, *args)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn("usage", done.stderr)


if __name__ == "__main__":
    GpuCheck.program, GpuCheck.planted = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
