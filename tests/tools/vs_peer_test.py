#!/usr/bin/env python3
"""tools/bench/vs_peer.py: the GGUF it writes, the order of its runs, its arithmetic, its page and its errors.

Usage: vs_peer_test.py [DOVETAIL]; the peer is fake_llama_bench.py and fake_llama_batched_bench.py, and
Dovetail is fake_dovetail.py where no program is needed.
"""
import contextlib
import io
import json
import math
import os
import struct
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tools", "bench"))
import peer_gguf  # noqa: E402
import peer_page  # noqa: E402
import vs_peer  # noqa: E402

FAKE_PEER, FAKE_BATCHED, FAKE_DOVETAIL = (
    os.path.join(HERE, name) for name in ("fake_llama_bench.py", "fake_llama_batched_bench.py", "fake_dovetail.py"))
DOVETAIL = None  # the program, when the test is given it
SHAPE = {"model_type": "qwen3", "torch_dtype": "bfloat16", "hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 500,
         "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": True}
# weights of SHAPE: the head, then a layer's q and o, k and v, three of the feed-forward
N_HEAD, N_LAYERS = 500 * 256, 2 * (2 * 256 * 256 + 2 * 128 * 256 + 3 * 512 * 256)
NORM_BYTES = 4 * (2 * (2 * 256 + 2 * 64) + 256)


def read_gguf(path):
    """(metadata, {name: (type number, shape, bytes)}); refuses gaps, overlaps and a wrong length."""
    with open(path, "rb") as f:
        data = f.read()
    at = 0

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def text():
        nonlocal at
        n = take("Q")
        at += n
        return data[at - n:at].decode()

    assert data[:4] == b"GGUF"
    at = 4
    version, n_tensors, n_pairs = take("IQQ")
    assert version == 3
    pairs = {}
    for _ in range(n_pairs):
        key, kind = text(), take("I")
        pairs[key] = text() if kind == 8 else take({4: "I", 6: "f"}[kind])
    infos = []
    for _ in range(n_tensors):
        name, n_dims = text(), take("I")
        dims = [take("Q") for _ in range(n_dims)]
        infos.append((name, dims[::-1], *take("IQ")))
    layout = {number: (block_len, block_bytes) for number, block_len, block_bytes, _, _ in peer_gguf.TYPES.values()}
    at, found, expected = -(-at // 32) * 32, {}, 0
    for name, shape, kind, offset in infos:
        assert offset == expected and shape[-1] % layout[kind][0] == 0, name
        n_bytes = math.prod(shape) // layout[kind][0] * layout[kind][1]
        found[name] = (kind, shape, data[at + offset:at + offset + n_bytes])
        expected = offset + -(-n_bytes // 32) * 32
    assert at + expected == len(data)
    return pairs, found


def deviation(values):
    mean = sum(values) / len(values)
    return math.sqrt(sum((v - mean)**2 for v in values) / len(values)), mean


def nibbles(data):
    return [x & 15 for x in data], [x >> 4 for x in data]


def q8_0(block):
    (d,) = struct.unpack("<e", block[:2])
    return [d * q for q in struct.unpack("<32b", block[2:])]


def q4_0(block):
    (d,) = struct.unpack("<e", block[:2])
    low, high = nibbles(block[2:])
    return [d * (q - 8) for q in low + high]


def six_bit_scales(packed):
    """The eight scales and eight minima of a Q4_K block, out of its 12 bytes."""
    scales = [packed[i] & 63 for i in range(4)] + [packed[8 + i] & 15 | packed[i] >> 6 << 4 for i in range(4)]
    minima = [packed[4 + i] & 63 for i in range(4)] + [packed[8 + i] >> 4 | packed[4 + i] >> 6 << 4 for i in range(4)]
    return scales, minima


def q4_k(block):
    d, d_min = struct.unpack("<ee", block[:4])
    scales, minima = six_bit_scales(block[4:16])
    out = []
    for part in range(4):
        for half, quants in enumerate(nibbles(block[16 + 32 * part:48 + 32 * part])):
            i = 2 * part + half
            out += [d * scales[i] * q - d_min * minima[i] for q in quants]
    return out


def q6_k(block):
    low, high, scales = block[:128], block[128:192], struct.unpack("<16b", block[192:208])
    (d,) = struct.unpack("<e", block[208:])
    out = []
    for i in range(256):  # which of the four 32s of its half, and where in it
        half, quarter, place = i // 128, i % 128 // 32, i % 32
        four = low[64 * half + 32 * (quarter % 2) + place] >> (4 * (quarter // 2)) & 15
        two = high[32 * half + place] >> (2 * quarter) & 3
        out.append(d * scales[i // 16] * ((four | two << 4) - 32))
    return out


def iq4_xs(block):
    grid = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
    d, upper = struct.unpack("<eH", block[:4])
    out = []
    for i in range(8):
        scale = (block[4 + i // 2] >> (4 * (i % 2)) & 15 | (upper >> (2 * i) & 3) << 4) - 32
        low, high = nibbles(block[8 + 16 * i:24 + 16 * i])
        out += [d * scale * grid[q] for q in low + high]
    return out


READERS = {"F32": lambda b: struct.unpack("<f", b), "F16": lambda b: struct.unpack("<e", b),
           "BF16": lambda b: struct.unpack("<f", b"\0\0" + b), "Q8_0": q8_0, "Q4_0": q4_0, "Q4_K": q4_k, "Q6_K": q6_k,
           "IQ4_XS": iq4_xs}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = self.path("calls")
        os.environ["FAKE_LOG"] = self.log
        for name in ("FAKE_PEER", "FAKE_BATCHED", "FAKE_DOVETAIL"):
            os.environ.pop(name, None)
        os.mkdir(self.path("tiny"))
        with open(self.path("tiny", "config.json"), "w", encoding="utf-8") as f:
            json.dump(SHAPE, f)

    def path(self, *names):
        return os.path.join(self.folder, *names)


class Gguf(Folder):
    def gguf(self, mix, shape=SHAPE, head=None):
        path = self.path("a.gguf")
        n_bytes = peer_gguf.write(path, shape, mix, head)
        self.assertEqual(n_bytes, os.path.getsize(path))
        return read_gguf(path)

    def test_names_shapes_and_metadata_are_those_of_the_architecture(self):
        pairs, found = self.gguf("BF16")
        self.assertEqual(pairs["general.architecture"], "qwen3")
        expected = {"block_count": 2, "embedding_length": 256, "feed_forward_length": 512, "attention.head_count": 4,
                    "attention.head_count_kv": 2, "attention.key_length": 64, "attention.value_length": 64,
                    "context_length": 4096, "vocab_size": 500, "rope.freq_base": 1e6}
        self.assertEqual({k: pairs["qwen3." + k] for k in expected}, expected)
        self.assertAlmostEqual(pairs["qwen3.attention.layer_norm_rms_epsilon"], 1e-6, 10)
        layer = {"attn_norm": [256], "attn_q": [256, 256], "attn_k": [128, 256], "attn_v": [128, 256], "attn_q_norm": [64],
                 "attn_k_norm": [64], "attn_output": [256, 256], "ffn_norm": [256], "ffn_gate": [512, 256],
                 "ffn_up": [512, 256], "ffn_down": [256, 512]}
        shapes = {f"blk.{i}.{name}.weight": shape for i in range(2) for name, shape in layer.items()}
        shapes.update({"token_embd.weight": [500, 256], "output_norm.weight": [256]})
        self.assertEqual({name: shape for name, (_, shape, _) in found.items()}, shapes)

    def test_every_type_reads_back_as_noise_of_the_deviation_asked_for(self):
        numbers = {"F32": 0, "F16": 1, "BF16": 30, "Q8_0": 8, "Q4_0": 2, "Q4_K": 12, "Q6_K": 14, "IQ4_XS": 23}
        for kind, number in numbers.items():
            _, found = self.gguf(kind)
            stored, _, data = found["blk.1.attn_q.weight"]
            self.assertEqual(stored, number)
            self.noise(kind, data, kind)

    def noise(self, kind, data, what):
        size = peer_gguf.TYPES[kind][2]
        values = [x for i in range(0, len(data), size) for x in READERS[kind](data[i:i + size])]
        spread, mean = deviation(values)
        self.assertAlmostEqual(spread * math.sqrt(256), 1, delta=0.04, msg=what)
        self.assertAlmostEqual(mean * math.sqrt(256), 0, delta=0.15, msg=what)

    def test_norms_stay_float32_and_the_head_has_six_bits_with_four_bit_types(self):
        for kind, head in (("Q8_0", 8), ("Q4_0", 14), ("Q4_K", 14), ("BF16", 30)):
            _, found = self.gguf(kind)
            self.assertEqual(found["token_embd.weight"][0], head, kind)
            self.assertEqual({found[n][0] for n in found if "norm" in n}, {0})
        self.noise("Q6_K", self.gguf("Q4_0")[1]["token_embd.weight"][2], "head")
        self.assertEqual(self.gguf("Q4_0", head="Q4_0")[1]["token_embd.weight"][0], 2)

    def test_an_untied_model_has_a_head_of_its_own_and_reads_only_that(self):
        untied = {**SHAPE, "tie_word_embeddings": False}
        _, found = self.gguf("Q4_0", untied)
        self.assertEqual((found["token_embd.weight"][0], found["output.weight"][0]), (2, 14))
        for shape in (SHAPE, untied):
            self.assertEqual(peer_gguf.bytes_per_token(shape, "Q8_0"), (N_HEAD + N_LAYERS) // 32 * 34 + NORM_BYTES)
        self.assertEqual(peer_gguf.bytes_per_token(SHAPE, "Q4_0"), N_HEAD // 256 * 210 + N_LAYERS // 32 * 18 + NORM_BYTES)

    def test_the_medium_mix_keeps_half_of_the_sensitive_tensors_at_six_bits(self):
        kinds = {n: k for n, k, *_ in peer_gguf.tensors({**SHAPE, "num_hidden_layers": 28}, "Q4_K_M")}
        self.assertEqual(sum(k == "Q6_K" for n, k in kinds.items() if "ffn_down" in n), 14)
        self.assertEqual({k for n, k in kinds.items() if "ffn_up" in n}, {"Q4_K"})

    def test_a_file_is_kept_when_it_is_the_one_that_would_be_written(self):
        path = self.path("a.gguf")
        peer_gguf.write(path, SHAPE, "Q8_0")
        os.utime(path, (1, 1))
        peer_gguf.write(path, SHAPE, "Q8_0")
        self.assertEqual(os.stat(path).st_mtime, 1)
        peer_gguf.write(path, {**SHAPE, "rope_theta": 10000}, "Q8_0")
        self.assertGreater(os.stat(path).st_mtime, 1)
        self.assertEqual(read_gguf(path)[0]["qwen3.rope.freq_base"], 10000)

    def test_rows_that_do_not_divide_into_blocks_are_named(self):
        with self.assertRaisesRegex(ValueError, "attn_q.weight has rows of 96, Q4_K needs a multiple of 256"):
            peer_gguf.write(self.path("a.gguf"), {**SHAPE, "hidden_size": 96, "vocab_size": 512}, "Q4_K", "F16")
        self.assertEqual(os.listdir(self.folder), ["tiny"])


class Compare(Folder):
    def run_tool(self, *arguments, dovetail=FAKE_DOVETAIL, config=None):
        """(exit code, what was printed, the errors)."""
        out, err = io.StringIO(), io.StringIO()
        words = [config or self.path("tiny"), "--peer-bench", FAKE_PEER, "--dovetail", dovetail, "--threads", "2"]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = vs_peer.main(words + list(arguments))
        return code, out.getvalue(), err.getvalue()

    def measured(self, *arguments, code=0, **more):
        got, out, err = self.run_tool(*arguments, "--json", "-", **more)
        self.assertEqual(got, code, err)
        return json.loads(out)

    def streams(self, *arguments):
        return self.measured("--streams", "16", "--peer-batched", FAKE_BATCHED, "--prefill", "", "--decode-at", "", *arguments)

    def calls(self):
        with open(self.log, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def test_runs_alternate_with_the_same_lengths_and_threads(self):
        self.measured("--prefill", "64", "--decode-at", "64", "--pairs", "2", "-n", "8", "--set", "backend.isa=avx2")
        calls = self.calls()
        self.assertEqual([c[0] for c in calls], ["dovetail", "peer", "peer"] * 2)
        own, prefill, decode = calls[:3]
        self.assertEqual(own[1:], ["bench", self.path("tiny"), "--json", "-p", "64", "-n", "8", "--repeats", "1",
                                   "--set", "backend.threads=2", "--set", "backend.isa=avx2"])
        self.assertEqual(prefill[3:], ["-t", "2", "-r", "1", "-o", "json", "-p", "64", "-n", "0"])
        self.assertEqual(decode[3:], ["-t", "2", "-r", "1", "-o", "json", "-p", "0", "-n", "8", "-d", "64"])

    def test_the_ratio_is_the_median_over_pairs(self):
        run = self.measured("--prefill", "64", "--decode-at", "1000", "--pairs", "3", "-n", "8")
        self.assertEqual([(r["test"], r["n_prompt"]) for r in run["rows"]], [("prefill", 64), ("decode", 1000)])
        prefill, decode = (r["median"] for r in run["rows"])
        # Dovetail: 200, 220, 240 tokens/s against 100; then 26, 28, 30 against 1 / (0.1 + 0.1)
        self.assertEqual([round(p["ratio"], 6) for p in run["rows"][0]["pairs"]], [2.0, 2.2, 2.4])
        self.assertAlmostEqual(prefill["ratio"], 2.2)
        self.assertAlmostEqual(prefill["ratio_min"], 2.0)
        self.assertAlmostEqual(prefill["ratio_max"], 2.4)
        self.assertAlmostEqual(decode["ratio"], 5.6)
        self.assertAlmostEqual(decode["peer"], 5.0)
        self.assertAlmostEqual(decode["dovetail_share"], 28 * 250e6 / 1e10)
        weights = (N_HEAD + N_LAYERS) * 2 + NORM_BYTES
        cache = 2 * 2 * 2 * 64 * 2 * (1000 + 4)  # k and v, layers, heads, their width, f16; half of 8 tokens later
        self.assertAlmostEqual(decode["peer_bytes_per_token"], weights + cache)
        self.assertAlmostEqual(decode["peer_share"], 5.0 * (weights + cache) / 1e10)

    def test_the_hardest_of_the_peers_variants_counts(self):
        run = self.measured("--format", "int8:Q8_0,Q4_0", "--prefill", "64", "--decode-at", "", "--pairs", "1",
                            "--peer-args=-fa 1", "--peer-args=-fa 0")
        self.assertEqual([(r["peer_type"], r["peer_args"], round(r["median"]["ratio"], 3)) for r in run["rows"]],
                         [("Q8_0", "-fa 1", 2.0), ("Q8_0", "-fa 0", 1.6), ("Q4_0", "-fa 1", 2.0), ("Q4_0", "-fa 0", 1.6)])
        self.assertEqual([r["counts"] for r in run["rows"]], [False, True, False, False])
        own = self.calls()[0]
        self.assertEqual(own[own.index("backend.threads=2") + 2], "backend.weights=int8")

    def test_a_peer_without_depth_decodes_after_a_prompt(self):
        os.environ["FAKE_PEER"] = "ik"
        run = self.measured("--prefill", "", "--decode-at", "1000", "--pairs", "1", "-n", "8")
        self.assertEqual(run["peer"]["name"], "ik_llama.cpp")
        self.assertEqual(self.calls()[1][-6:], ["-p", "0", "-n", "0", "-gp", "1000,8"])
        self.assertAlmostEqual(run["rows"][0]["median"]["peer"], 5.0)

    def test_streams_alternate_with_the_same_lengths_and_threads(self):
        self.streams("--pairs", "2", "-n", "8", "--repeats", "3", "--format", "int8", "--set", "backend.isa=avx2")
        calls = self.calls()
        self.assertEqual([c[0] for c in calls], ["dovetail", "batched"] * 2)
        self.assertEqual(calls[0][1:], ["bench", self.path("tiny"), "--json", "-p", "128", "-n", "8", "--repeats", "3", "--set",
                                        "backend.threads=2", "--streams", "16", "--set", "backend.weights=int8",
                                        "--set", "backend.isa=avx2"])
        self.assertEqual(calls[1][3:], ["-t", "2", "-c", str(16 * (128 + 8)), "-npp", "128", "-ntg", "8", "-npl", "16,16,16",
                                        "--output-format", "jsonl"])

    def test_streams_follow_the_tests_of_one(self):
        run = self.measured("--streams", "4", "--streams-at", "64", "--prefill", "64", "--decode-at", "64", "--pairs", "1",
                            "--peer-batched", FAKE_BATCHED)
        self.assertEqual([c[0] for c in self.calls()], ["dovetail", "peer", "peer", "dovetail", "batched"])
        self.assertEqual([(r["test"], r["streams"], r["n_prompt"], r["counts"]) for r in run["rows"]],
                         [("prefill", 1, 64, True), ("decode", 1, 64, True), ("decode", 4, 64, True)])
        self.assertEqual(run["peer"]["build_commit"], "abc1234")  # llama-bench's own word

    def test_the_ratio_of_streams_is_of_the_tokens_of_all(self):
        run = self.streams("--pairs", "3", "-n", "8", "--repeats", "3", "--peer-args=", "--peer-args=-fa 0")
        usual, hardest = run["rows"]
        # Dovetail: 5 tokens/s a stream, then 5.5 and 6; the peer's middle result: 16 streams' token in 0.55 or 0.44 s
        self.assertEqual([round(p["ratio"], 6) for p in usual["pairs"]], [2.75, 3.025, 3.3])
        self.assertEqual([round(p["ratio"], 6) for p in hardest["pairs"]], [2.2, 2.42, 2.64])
        self.assertEqual((usual["counts"], hardest["counts"]), (False, True))
        figures = usual["median"]
        self.assertAlmostEqual(figures["dovetail"], 88)
        self.assertAlmostEqual(figures["peer"], 16 / 0.55, 4)
        self.assertAlmostEqual(figures["dovetail_share"], 88 * 100e6 / 1e10)
        weights = (N_HEAD + N_LAYERS) * 2 + NORM_BYTES
        cache = 2 * 2 * 2 * 64 * 2 * (128 + 4)  # of one stream: k and v, layers, heads, their width, f16; half of 8 tokens later
        self.assertAlmostEqual(figures["peer_bytes_per_token"], weights / 16 + cache)
        self.assertAlmostEqual(figures["peer_share"], 16 / 0.55 * (weights / 16 + cache) / 1e10)

    def test_streams_have_a_row_a_ceiling_and_commands_on_the_page(self):
        self.streams("--pairs", "1", "-n", "8", "--markdown", self.path("page.md"))
        with open(self.path("page.md"), encoding="utf-8") as f:
            page = f.read()
        for expected in ("| 16 streams, decode at 128 | bf16 | BF16 | 80.0 | 32.0 | **2.50** | 2.50 to 2.50 | 80% |",
                         "| 16 streams, decode at 128 | bf16 | 100 MB | 100.0 | BF16 |", "commit def5678 (build 43)",
                         "    fake_dovetail.py bench tiny --json -p 128 -n 8 --repeats 1 --set backend.threads=2 --streams 16",
                         "    fake_llama_batched_bench.py -m tiny-BF16.gguf -t 2 -c 2176 -npp 128 -ntg 8 -npl 16 --output-format jsonl"):
            self.assertIn(expected, page)

    def test_the_batched_program_beside_the_other_is_found(self):
        for name, program in (("llama-bench", FAKE_PEER), ("llama-batched-bench", FAKE_BATCHED)):
            os.symlink(program, self.path(name))
        self.measured("--peer-bench", self.path("llama-bench"), "--streams", "16", "--prefill", "", "--decode-at", "", "--pairs", "1")
        self.assertEqual([c[0] for c in self.calls()], ["dovetail", "batched"])

    def test_a_batched_program_that_fails_is_reported(self):
        for value, expected in (("broken", "error: unable to load model (llama-batched-bench, exit code 1)"),
                                ("text", "llama-batched-bench printed no lines of JSON with speed_tg"),
                                ("few", "llama-batched-bench printed 0 results of {'pp': 128")):
            os.environ["FAKE_BATCHED"] = value
            code, _, err = self.run_tool("--streams", "16", "--peer-batched", FAKE_BATCHED, "--prefill", "64", "--decode-at", "",
                                         "--pairs", "1")
            self.assertEqual(code, 1)
            self.assertIn("vs_peer: bf16 failed: " + expected, err)
            self.assertIn("bf16 prefill 64, pair 1 of 1", err)  # what was measured before stays
        os.environ["FAKE_BATCHED"] = "old"
        code, _, err = self.run_tool("--streams", "16", "--peer-batched", FAKE_BATCHED)
        self.assertEqual((code, err), (2, f"vs_peer: {FAKE_BATCHED} is no llama-batched-bench, or too old: "
                                          "its help names no --output-format\n"))

    def test_a_refused_format_is_reported_and_the_others_are_measured(self):
        code, out, err = self.run_tool("--format", "int4", "--format", "bf16", "--prefill", "64", "--decode-at", "",
                                       "--pairs", "1", "--markdown", self.path("page.md"))
        self.assertEqual(code, 4)
        refusal = "backend.weights: int4 is not one of float32, bf16, int8"
        self.assertIn(f"vs_peer: int4 refused: --set: {refusal} (dovetail bench, exit code 2)", err)
        self.assertRegex(out, r"prefill 64 +bf16 +BF16 +220\.0 +100\.0 +2\.20")
        with open(self.path("page.md"), encoding="utf-8") as f:
            self.assertIn("int4 refused: `--set: " + refusal, f.read())

    def test_a_program_that_fails_is_reported_with_its_last_line(self):
        for name, value, expected in (("FAKE_PEER", "broken", "error: failed to load model (llama-bench, exit code 1)"),
                                      ("FAKE_PEER", "text", "llama-bench printed no JSON"),
                                      ("FAKE_DOVETAIL", "killed", "no message (dovetail bench, signal 6)")):
            os.environ[name] = value
            code, _, err = self.run_tool("--prefill", "64", "--decode-at", "64", "--pairs", "1")
            del os.environ[name]
            self.assertEqual(code, 1)
            self.assertIn("vs_peer: bf16 failed: " + expected, err)

    def test_the_page_says_which_machine_peer_and_commands(self):
        self.measured("--prefill", "64", "--decode-at", "64", "--pairs", "1", "-n", "8", "--markdown", self.path("page.md"),
                      "--peer-label", "AVX2 only", "--dovetail-commit", "feedbee")
        with open(self.path("page.md"), encoding="utf-8") as f:
            page = f.read()
        for expected in ("do not edit", "## Against llama.cpp, AVX2 only", "commit abc1234 (build 42)", "commit feedbee",
                         vs_peer.cpu_model(), "2 threads", "| prefill 64 | bf16 | BF16 | 200.0 | 100.0 | **2.00** |",
                         "60 GFLOP/s | 30 GFLOP/s", "    fake_dovetail.py bench tiny --json -p 64 -n 8", "read 10.0 GB/s"):
            self.assertIn(expected, page)
        self.assertNotIn(self.folder, page)

    def test_earlier_runs_share_a_page(self):
        for label in ("first", "second"):
            self.run_tool("--prefill", "64", "--decode-at", "", "--pairs", "1", "--peer-label", label, "--json", self.path(label))
        with open(self.path("first"), "r+", encoding="utf-8") as f:  # as it was before there were streams
            run = json.load(f)
            del run["rows"][0]["streams"]
            f.seek(0)
            f.truncate()
            json.dump(run, f)
        page = self.path("page.md")
        self.assertEqual(vs_peer.main(["--join", self.path("first"), "--join", self.path("second"), "--markdown", page]), 0)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        self.assertLess(text.index("llama.cpp, first"), text.index("llama.cpp, second"))
        self.assertEqual(text.count("| prefill 64 | bf16 |"), 2)

    def test_a_disturbed_run_says_so(self):
        run = {"machine": {"others_share": 0.2}}
        self.assertIn("20% of the processors meanwhile: these are not figures of an idle machine", peer_page.disturbance(run))
        run["machine"]["others_share"] = 0.01
        self.assertEqual(peer_page.disturbance(run), "Other programs took 1.0% of the processors meanwhile.")

    def test_a_disturbed_pair_is_measured_again_while_patience_lasts(self):
        def measuring(*shares):  # of ten processor seconds, one share for each time
            others, results = vs_peer.Others(100), iter(enumerate(shares))
            others.watch = lambda action: (None, [0.0, 1.0])  # the machine is quiet before each time

            def measure():
                i, share = next(results)
                others.pair = [share * 10, 10]
                return i
            return others, lambda: others.undisturbed(measure, said.append)

        said = []
        others, once = measuring(0.5, 0.2, 0.0, 0.01)
        self.assertEqual((once(), once()), (2, 3))
        self.assertEqual(said, [f"other programs took {p} of the processors; measuring this pair again" for p in ("50%", "20%")])
        self.assertAlmostEqual(others.share(), 0.005)
        others, once = measuring(0.5, 0.2)
        others.patience_s = 0
        self.assertEqual((once(), others.share()), (0, 0.5))

    def test_wrong_options_get_one_line_and_an_exit_code(self):
        with open(self.path("other.json"), "w", encoding="utf-8") as f:
            json.dump({**SHAPE, "model_type": "gpt2"}, f)
        with open(self.path("lacks.json"), "w", encoding="utf-8") as f:
            json.dump({"model_type": "qwen3"}, f)
        cases = [
            (["--peer-bench", self.path("none")], 3, f"no peer benchmark program at {self.path('none')}"),
            (["--dovetail", self.path("none")], 3, f"no dovetail program at {self.path('none')}"),
            (["--peer-bench", "/bin/true"], 2, "/bin/true is no llama-bench"),
            (["--format", "int5"], 2, "unknown format int5; known: float32, bf16, f16, int8, int6, int4, int4q"),
            (["--format", "int4:Q9_9"], 2, "unknown peer type Q9_9 in int4:Q9_9"),
            (["--prefill", "", "--decode-at", ""], 2, "nothing to measure"),
            (["--streams", "16", "--peer-batched", self.path("none")], 3, f"no llama-batched-bench program at {self.path('none')}"),
            (["--streams", "16", "--peer-batched", "/bin/true"], 2, "/bin/true is no llama-batched-bench"),
            (["--shape", self.path("gone.json")], 3, "gone.json: No such file or directory; --shape names the config.json"),
            (["--shape", self.path("other.json")], 4, "is of model_type gpt2"),
            (["--shape", self.path("lacks.json")], 3, "lacks 'max_position_embeddings'"),
            (["--join", self.path("gone")], 3, "gone: No such file or directory"),
            (["--join", self.path("tiny", "config.json")], 3, "is no --json of this tool"),
        ]
        for arguments, code, expected in cases:
            got, _, err = self.run_tool(*arguments)
            self.assertEqual((got, err.count("\n")), (code, 1), (arguments, err))
            self.assertIn(expected, err)

    def test_the_real_program_prints_what_is_read_here(self):
        if not DOVETAIL:
            self.skipTest("no program was given")
        demo = os.path.join(ROOT, "configs", "demo")
        run = self.measured("--format", "bf16:BF16", "--format", "float32:F32", "--prefill", "16", "--decode-at", "16", "--pairs", "1",
                            "-n", "4", "--set", "backend.weights=no_such_format", dovetail=DOVETAIL, config=demo, code=4)
        self.assertEqual(([e["ours"] for e in run["refused"]], run["rows"]), (["bf16", "float32"], []))
        self.assertIn("no_such_format", run["refused"][0]["message"])
        run = self.measured("--format", "bf16:BF16", "--prefill", "16", "--decode-at", "16", "--pairs", "1", "-n", "4",
                            dovetail=DOVETAIL, config=demo)
        run["rows"] += self.measured("--streams", "3", "--streams-at", "40", "--peer-batched", FAKE_BATCHED, "--prefill", "",
                                     "--decode-at", "", "--pairs", "1", "-n", "4", dovetail=DOVETAIL, config=demo)["rows"]
        self.assertEqual([row["streams"] for row in run["rows"]], [1, 1, 3])
        for row in run["rows"]:
            self.assertGreater(row["median"]["dovetail"], 0)
            self.assertTrue(0 < row["median"]["dovetail_share"] < 10)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        DOVETAIL = sys.argv.pop(1)
    unittest.main()
