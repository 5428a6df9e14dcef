#!/usr/bin/env python3
"""Stands in for llama-batched-bench: checks the GGUF file it is given and prints figures that a test can foresee.

FAKE_BATCHED chooses how: `old` knows no --output-format, `broken` ends with an error, `text` prints no JSON,
`few` leaves a result out. Every call but for help and version is added to the file that FAKE_LOG names. A
stream's prompt takes 1 s; a step of all streams takes 0.5 s, a tenth more in each further result.
"""
import json
import os
import sys

kind = os.environ.get("FAKE_BATCHED", "")
if "--help" in sys.argv:
    print("-npp n0,n1,...\n-ntg n0,n1,...\n-npl n0,n1,..." + ("" if kind == "old" else "\n--output-format {md,jsonl}"))
    sys.exit(0)
if "--version" in sys.argv:
    print("version: 0.1.1-dev (build 43, commit def5678)\nbuilt with a compiler", file=sys.stderr)
    sys.exit(0)

arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as f:
    f.write(json.dumps(["batched", *sys.argv[1:]]) + "\n")
if kind == "broken":
    sys.exit("error: unable to load model")
if kind == "text":
    print("|    PP |     TG |    B |")
    sys.exit(0)
with open(arguments["-m"], "rb") as f:
    if f.read(4) != b"GGUF":
        sys.exit("no GGUF file")

n_prompt, n_gen, threads = (int(arguments[key]) for key in ("-npp", "-ntg", "-t"))
all_streams = [int(word) for word in arguments["-npl"].split(",")]
step_s = 0.4 if arguments.get("-fa") == "0" else 0.5
for i, n_streams in enumerate(all_streams[1:] if kind == "few" else all_streams):
    if n_streams * (n_prompt + n_gen) > int(arguments["-c"]):
        continue  # as the real one: what does not fit is left out
    prompt_s, decode_s = n_streams * 1.0, n_gen * step_s * (1 + i / 10)
    print(json.dumps({"n_threads": threads, "n_threads_batch": threads, "pp": n_prompt, "tg": n_gen, "pl": n_streams,
                      "t_pp": prompt_s, "speed_pp": n_streams * n_prompt / prompt_s,
                      "t_tg": decode_s, "speed_tg": n_streams * n_gen / decode_s,
                      "t": prompt_s + decode_s, "speed": n_streams * (n_prompt + n_gen) / (prompt_s + decode_s)}))
print()
