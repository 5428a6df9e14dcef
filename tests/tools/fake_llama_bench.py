#!/usr/bin/env python3
"""Stands in for llama-bench: checks the GGUF file it is given and prints figures that a test can foresee.

FAKE_PEER chooses how: `ik` has no -d but -gp, `broken` ends with an error, `text` prints no JSON. Every
call is added to the file that FAKE_LOG names. A prompt takes 10 s per 1000 tokens, a decoded token 0.1 s
and 0.1 ms per token before it.
"""
import json
import os
import sys

kind = os.environ.get("FAKE_PEER", "")
if "--help" in sys.argv:
    print("usage: llama-bench\n  -p, --n-prompt <n>\n  -n, --n-gen <n>")
    print("  -gp <pp,tg>\n  -rtr, --run-time-repack <0|1>" if kind == "ik" else "  -d, --n-depth <n>")
    sys.exit(0)

arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as f:
    f.write(json.dumps(["peer", *sys.argv[1:]]) + "\n")
if kind == "broken":
    sys.exit("error: failed to load model")
if kind == "text":
    print("no figures today")
    sys.exit(0)
with open(arguments["-m"], "rb") as f:
    if f.read(4) != b"GGUF":
        sys.exit("no GGUF file")

n_prompt, n_gen, depth = int(arguments["-p"]), int(arguments["-n"]), int(arguments.get("-d", 0))
if "-gp" in arguments:
    depth, n_gen = (int(x) for x in arguments["-gp"].split(","))
if (n_prompt > 0) == (n_gen > 0):
    sys.exit("expected a prompt or a generation")
rate = 100.0 if n_prompt else 1 / (0.1 + 1e-4 * depth)
if arguments.get("-fa") == "0":
    rate *= 1.25
samples = [rate] * int(arguments["-r"])
print(json.dumps([{"build_commit": "abc1234", "build_number": 42, "cpu_info": "a processor", "n_prompt": n_prompt,
                   "n_gen": n_gen, "n_depth": depth, "avg_ts": rate, "samples_ts": samples}]))
