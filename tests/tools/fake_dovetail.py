#!/usr/bin/env python3
"""Stands in for `dovetail bench --json`: 200 tokens/s of prefill, 20 of decode, 10 GB/s; knows no int4.

Of several streams, decode is 5 tokens/s for each and reads 100 MB a token. Every call is added to the file that FAKE_LOG names; from one call to the next the speeds rise by a tenth.
"""
import json
import os
import sys

with open(os.environ["FAKE_LOG"], "a+", encoding="utf-8") as f:
    f.seek(0)
    before = sum(json.loads(line)[0] == "dovetail" for line in f)
    f.write(json.dumps(["dovetail", *sys.argv[1:]]) + "\n")
if any(word.startswith("backend.weights=int4") for word in sys.argv):
    print("--set: backend.weights: int4 is not one of float32, bf16, int8", file=sys.stderr)
    sys.exit(2)
if os.environ.get("FAKE_DOVETAIL") == "killed":
    os.abort()
faster = 1 + before / 10
if "--streams" in sys.argv:
    decode_rate, decode_bytes = 5 * int(sys.argv[sys.argv.index("--streams") + 1]) * faster, 100e6
else:
    decode_rate, decode_bytes = 20 * faster, 250e6
print(json.dumps({
    "machine": {"read_bandwidth": 1e10, "threads": 2, "backend": "cpu", "variant": "avx2"},
    "prefill": {"tokens_per_s": 200 * faster, "gflop_per_s": 60.0, "bytes_per_token": 2e6, "bandwidth_share": 0.04},
    "decode": {"tokens_per_s": decode_rate, "bytes_per_token": decode_bytes,
               "bandwidth_share": decode_rate * decode_bytes / 1e10}}))
