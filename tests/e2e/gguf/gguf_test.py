"""GGUF files through the program: a file or a folder is run, inspected and tokenised as the safetensors folder that it
was made of; exact types give the same logits bit by bit, block formats those of the numbers they stand for; each
fault is one line. usage: gguf_test.py DOVETAIL
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import gguf_file  # noqa: E402

DOVETAIL = sys.argv.pop(1)
DEMO = ROOT / "configs" / "demo"  # bf16, tied, with a tokenizer
TIED = ROOT / "tests" / "golden" / "qwen3_tied"  # float32
UNTIED = ROOT / "tests" / "golden" / "qwen3"
YARN = ROOT / "tests" / "golden" / "qwen3_yarn"
IDS = ",".join(str(i * 7 % 160) for i in range(1, 40))
TEXT = "It is a truth universally acknowledged, that in 1813 <|endoftext|> caf\u00e9s \U0001f60a\n\n  were few."
FILE, USAGE, UNSUPPORTED = 3, 2, 4
FLOAT_CACHE = ("--set", "kv_cache.dtype=float32")  # as for float32 weights
SIZES = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
         "head_dim": 64, "vocab_size": 96, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0}


def logits_of(data):
    (n,) = struct.unpack_from("<Q", data)
    return struct.unpack(f"<{(len(data) - 8 - n) // 4}f", data[8 + n:])


class Gguf(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def program(self, *args):
        env = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        return subprocess.run([DOVETAIL, *map(str, args)], capture_output=True, stdin=subprocess.DEVNULL, env=env, cwd=self.folder, timeout=200)

    def good(self, *args):
        done = self.program(*args)
        said = re.sub(rb"(?m)^[a-z ]+: \d+ %\n", b"", done.stderr)  # the progress that a slow machine sees
        self.assertEqual((done.returncode, said), (0, b""), args)
        return done.stdout

    def bad(self, code, args, *words):
        done = self.program(*args)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, text)
        self.assertEqual(text.count("\n"), 1, text)
        for word in words:
            self.assertIn(word, text)

    def logits(self, model, *options):
        out = self.folder / "logits.safetensors"
        self.good("logits", model, "--ids", IDS, "-o", out, *options)
        return out.read_bytes()

    def write(self, name, pairs, tensors, **options):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gguf_file.file_bytes(pairs, tensors, **options))
        return path

    def test_exact_types_give_the_logits_of_the_original(self):
        for model in (DEMO, TIED, UNTIED, YARN):
            made = self.write("m.gguf", *gguf_file.model(model))
            for backend in ("cpu", "reference"):
                use = ("--set", f"backend.plugin={backend}")
                self.assertTrue(self.logits(made, *use) == self.logits(model, *use), (model, backend))

    def test_wider_types_give_the_numbers_of_the_original(self):
        made = self.write("m.gguf", *gguf_file.model(DEMO, "F32"))
        use = ("--set", "backend.plugin=reference")
        self.assertTrue(self.logits(made, *use) == self.logits(DEMO, *use))
        pairs, tensors = gguf_file.model(TIED, "F16")
        plain = [(n, "F32", s, gguf_file.floats_of("F16", b).tobytes() if k == "F16" else b) for n, k, s, b in tensors]
        halves, floats = self.write("m.gguf", pairs, tensors), self.write("n.gguf", pairs, plain)
        self.assertTrue(self.logits(halves, *use) == self.logits(floats, *use))

    def test_text_is_that_of_the_original(self):
        (self.folder / "models").mkdir()
        made = self.write("models/demo.gguf", *gguf_file.model(DEMO))
        greedy = ("It is a truth universally acknowledged", "-n", "30", "--set", "sampler=[greedy]")
        text = self.good("run", DEMO, *greedy)
        self.assertGreater(len(text), 60)
        for config in (made, made.parent, "models", "models/demo.gguf"):
            self.assertEqual(self.good("run", config, *greedy), text, config)
        ids = self.good("tokenize", "--tokenizer", DEMO, TEXT)
        for where in (made, made.parent):
            self.assertEqual(self.good("tokenize", "--tokenizer", where, TEXT), ids, where)
        config = self.folder / "demo.yaml"
        config.write_text("dovetail: 1\nmodel: {path: models/demo.gguf, format: gguf}\nsampler: [greedy]\n")
        self.assertEqual(self.good("run", config, *greedy[:3]), text)
        self.assertEqual(self.good("tokenize", "--tokenizer", config, TEXT), ids)

    def test_a_folder_with_both_is_read_from_safetensors(self):
        for name in ("config.json", "model.safetensors"):
            (self.folder / "both").mkdir(exist_ok=True)
            (self.folder / "both" / name).write_bytes((TIED / name).read_bytes())
        (self.folder / "both" / "m.gguf").write_bytes(b"GGUF")
        self.assertTrue(self.logits("both") == self.logits(TIED))

    def test_parts_are_one_model(self):
        pairs, tensors = gguf_file.model(UNTIED)
        for i, part in enumerate(gguf_file.split_bytes(pairs, [tensors[:5], tensors[5:6], tensors[6:]])):
            (self.folder / f"m-{i + 1:05}-of-00003.gguf").write_bytes(part)
        for model in (self.folder / "m-00001-of-00003.gguf", self.folder):
            self.assertTrue(self.logits(model) == self.logits(UNTIED), model)

    def test_other_architectures_read_their_files_as_their_folders(self):
        golden = ROOT / "tests" / "golden"
        for name, arch in (("llama_tied", "llama"), ("qwen2", "qwen2")):
            made = self.write("m.gguf", *gguf_file.model(golden / name, arch=arch, pairs_rows=arch == "llama"))
            self.assertTrue(self.logits(made) == self.logits(golden / name), name)
        # Norms have the one added, and the scale of attention is that of the heads.
        original = self.folder / "gemma3"
        original.mkdir()
        config = json.loads((golden / "gemma3" / "config.json").read_text())
        (original / "config.json").write_text(json.dumps({**config, "query_pre_attn_scalar": config["head_dim"]}))
        (original / "model.safetensors").write_bytes((golden / "gemma3" / "model.safetensors").read_bytes())
        made = self.write("g.gguf", *gguf_file.model(original, arch="gemma3"))
        for got, want in zip(logits_of(self.logits(made)), logits_of(self.logits(original))):
            self.assertAlmostEqual(got, want, delta=1e-4)

    def test_rows_of_llama_files_are_put_in_order(self):
        pairs, tensors = gguf_file.model(UNTIED, arch="llama", pairs_rows=True)
        made = self.write("m.gguf", pairs, tensors)
        for backend in ("cpu", "reference"):
            use = ("--set", f"backend.plugin={backend}")
            self.assertTrue(self.logits(made, "--set", "model.arch=qwen3", *use) == self.logits(UNTIED, *use), backend)
        packed = ("--set", "backend.weights=int8")
        self.assertTrue(self.logits(made, "--set", "model.arch=qwen3", *packed) == self.logits(UNTIED, *packed))
        for weights in ("int8", "{mlp: int4}"):  # the rest is written as it is stored
            self.good("quantize", made, "-o", self.folder / "a", "--weights", weights, "--set", "model.arch=qwen3", "--force")
            self.good("quantize", UNTIED, "-o", self.folder / "b", "--weights", weights, "--force")
            self.assertTrue(self.logits(self.folder / "a", "--set", "model.arch=qwen3") == self.logits(self.folder / "b"), weights)

    def test_blocks_are_the_numbers_that_they_stand_for(self):
        for kind in ("Q8_0", "Q4_0"):
            pairs, tensors = gguf_file.model(TIED, kind)
            made = self.write("blocks.gguf", pairs, tensors)
            plain = [(n, "F32", s, gguf_file.dequantize(k, b).tobytes() if k == kind else b) for n, k, s, b in tensors]
            floats = self.write("floats.gguf", pairs, plain)
            use = ("--set", "backend.plugin=reference")
            self.assertTrue(self.logits(made, *use) == self.logits(floats, *use), kind)
            exact = logits_of(self.logits(floats))  # cpu multiplies by activations in int8
            for isa in ("portable", "auto"):
                fast = logits_of(self.logits(made, *FLOAT_CACHE, "--set", f"backend.isa={isa}"))
                self.assertLess(max(abs(a - b) for a, b in zip(fast, exact)), 0.02 * max(map(abs, exact)), (kind, isa))

    def test_other_blocks_are_expanded(self):
        pairs, tensors = gguf_file.model(TIED)
        blocks = [(n, "Q5_1", s, bytes(range(24)) * (len(b) // 128)) if len(s) > 1 else (n, k, s, b) for n, k, s, b in tensors]
        plan = json.loads(self.good("plan", self.write("m.gguf", pairs, blocks), "--json"))
        repacked = next(i for i in plan["items"] if i["name"] == "weights, repacked")
        self.assertEqual(repacked["bytes"], sum(len(b) for n, k, s, b in tensors if len(s) > 1), "as float32")

    def all_types(self):
        """A model whose matrices are each of another type, of the blocks in tests/data/gguf."""
        blocks = {}
        for line in (ROOT / "tests" / "data" / "gguf" / "blocks.txt").read_text().split("\n"):
            if line:
                name, data, _ = line.split()
                size = gguf_file.TYPES[name.upper()][2]
                blocks[name.upper()] = bytes.fromhex(data)[size:]  # not the first, whose scales are tiny
        blocks["MXFP4"] = bytes([118]) + bytes(range(16)) + bytes([119]) + bytes(range(100, 116))
        matrices = [("token_embd", 96, 256), ("output", 96, 256), ("blk.0.attn_q", 256, 256), ("blk.0.attn_k", 128, 256), ("blk.0.attn_v", 128, 256),
                    ("blk.0.attn_output", 256, 256), ("blk.0.ffn_gate", 512, 256), ("blk.0.ffn_up", 512, 256), ("blk.0.ffn_down", 256, 512)]
        norms = [("output_norm", 256), ("blk.0.attn_norm", 256), ("blk.0.ffn_norm", 256), ("blk.0.attn_q_norm", 64), ("blk.0.attn_k_norm", 64)]
        kinds = sorted(blocks)
        for at in range(0, len(kinds), len(matrices)):
            tensors = [(f"{n}.weight", "F32", [d], struct.pack(f"<{d}f", *[1.0] * d)) for n, d in norms]
            for (name, rows, width), kind in zip(matrices, kinds[at:] + kinds):
                need = gguf_file.n_bytes(kind, [rows, width])
                tensors.append((f"{name}.weight", kind, [rows, width], (blocks[kind] * (need // len(blocks[kind]) + 1))[:need]))
            yield gguf_file.config_pairs(SIZES, "qwen3"), tensors

    def test_every_type_runs_on_every_backend(self):
        seen = set()
        for pairs, tensors in self.all_types():
            made = self.write("m.gguf", pairs, tensors)
            seen.update(kind for _, kind, _, _ in tensors)
            options = ("logits", made, "--ids", "1,2,3,4,5,6,7", "-o", self.folder / "l")
            self.good(*options, "--set", "backend.plugin=reference")
            exact = logits_of((self.folder / "l").read_bytes())
            self.good(*options)
            fast = logits_of((self.folder / "l").read_bytes())
            scale = max(map(abs, exact))
            self.assertGreater(scale, 1e-3)
            worst = max(abs(a - b) for a, b in zip(exact, fast))
            self.assertLess(worst, 0.05 * scale)
            shown = json.loads(self.good("inspect", made, "--json"))
            self.assertEqual({t["format"] for t in shown["tensors"]} - {"float32"}, {k.lower() for _, k, _, _ in tensors if k != "F32"})
        self.assertEqual(len(seen), 14)

    def test_inspect_and_plan_say_what_is_in_it(self):
        made = self.write("demo.gguf", *gguf_file.model(DEMO))
        shown = json.loads(self.good("inspect", made, "--json"))
        original = json.loads(self.good("inspect", DEMO, "--json"))
        for key in ("architecture", "parameters", "layers", "d_model", "vocab_size", "context", "tokenizer_ids", "chat_template", "unused_tensors"):
            self.assertEqual(shown[key], original[key], key)
        self.assertIn(b"qwen3", self.good("inspect", made))
        pairs, tensors = gguf_file.model(TIED, "Q8_0")
        plan = self.good("plan", self.write("m.gguf", pairs, tensors)).decode()
        self.assertRegex(plan, r"weights, repacked .*of q8_0")

    def test_faults_are_one_line_with_the_file(self):
        pairs, tensors = gguf_file.model(TIED)
        whole = gguf_file.file_bytes(pairs, tensors)
        for data, code, words in ((whole[:-1], FILE, ("download incomplete?",)), (whole[:1000], FILE, ("download incomplete?",)),
                                  (b"FUGG" + whole[4:], FILE, ('expected "GGUF"',)), (b"", FILE, ('expected "GGUF"',)),
                                  (whole[:4] + struct.pack(">I", 3) + whole[8:], UNSUPPORTED, ("big-endian",)),
                                  (b"GGUF\3\0\0\0" + bytes(16), FILE, ("general.architecture",))):
            (self.folder / "m.gguf").write_bytes(data)
            for command in (["run", "m.gguf", "hi"], ["plan", "m.gguf"], ["logits", "m.gguf", "--ids", "1", "-o", "o"]):
                self.bad(code, command, "m.gguf: ", *words)
        self.write("m.gguf", gguf_file.config_pairs(SIZES, "starling"), tensors)
        self.bad(UNSUPPORTED, ["plan", "m.gguf"], "starling")
        self.write("m.gguf", [p for p in pairs if p[0] != "qwen3.block_count"], tensors)
        self.bad(FILE, ["plan", "m.gguf"], 'm.gguf: has no key "qwen3.block_count"')
        self.write("m.gguf", pairs, [t for t in tensors if t[0] != "blk.1.ffn_up.weight"])
        self.bad(FILE, ["plan", "m.gguf"], "model.layers.1.mlp.up_proj.weight")
        words = gguf_file.tokenizer_pairs(DEMO, "no-such-cut")
        self.write("m.gguf", pairs[:-1] + words, tensors)
        self.bad(UNSUPPORTED, ["run", "m.gguf", "hi"], 'm.gguf: key "tokenizer.ggml.pre" is "no-such-cut", expected', "tokenizer.path")
        self.write("m.gguf", *gguf_file.model(TIED, "Q8_0"))
        self.bad(USAGE, ["plan", "m.gguf", "--set", "backend.weights=int4"], "is stored as q8_0")
        self.write("n.gguf", pairs, tensors)
        self.bad(USAGE, ["plan", self.folder], "2 GGUF models", "m.gguf", "n.gguf")


if __name__ == "__main__":
    unittest.main()
