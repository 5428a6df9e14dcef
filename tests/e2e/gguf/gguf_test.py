"""GGUF files through the program: a file or a folder is run, inspected and tokenised as the safetensors folder that it
was made of; exact types give the same logits bit by bit, block formats those of the numbers they stand for; each
fault is one line. usage: gguf_test.py DOVETAIL
"""
import json
import pathlib
import struct
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import gguf_file  # noqa: E402
import program_case  # noqa: E402

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


class Gguf(program_case.ProgramCase):
    dovetail = DOVETAIL

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

    def test_blocks_may_be_expanded_for_good(self):
        exact = ("--set", "backend.plugin=reference")
        for arch, kind in (("qwen3", "Q8_0"), ("qwen3", "Q4_0"), ("llama", "Q8_0")):
            made = self.write("m.gguf", *gguf_file.model(TIED, kind, arch=arch, pairs_rows=arch == "llama"))
            use = ("--set", "model.arch=qwen3")  # of llama it is only the order of rows
            want = self.logits(made, *use, *exact)
            for options in (exact, ("--set", "backend.threads=3")):
                out = self.folder / "expanded"
                self.good("quantize", made, "-o", out, "--weights", "float32", "--force", *use, *options)
                self.assertTrue(self.logits(out, *use, *exact) == want, (arch, kind))
                self.assertTrue(self.logits(made, *use, *options, "--set", "backend.weights=float32") == self.logits(out, *use, *options))
            self.good("quantize", out, "-o", self.folder / "again", "--weights", "int4", "--force", *use)
            self.bad(USAGE, ["plan", made, *use, "--set", "backend.weights=bf16"], "is stored as " + kind.lower(), "--weights float32")

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


    def refused(self, data, code, *words, name="m.gguf"):
        """By every command that opens a model, in one line."""
        (self.folder / name).write_bytes(data)
        for command in (["run", name, "hi"], ["plan", name], ["inspect", name], ["tokenize", "--tokenizer", name, "hi"]):
            with self.subTest(command=command[0], words=words):
                self.bad(code, command, f"{name}: ", *words)

    def test_b032_header_and_key_faults_are_refused(self):
        huge = 2 ** 64 - 1
        head = lambda version=3, n_tensors=0, n_pairs=0: b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_pairs)
        pair = lambda key, kind, body=b"": gguf_file.string(key) + struct.pack("<I", kind) + body
        alignment = lambda kind, v: gguf_file.file_bytes([("general.alignment", kind, v)], [])
        self.refused(b"FUGG" + head()[4:], FILE, 'expected "GGUF"')
        for version in (0, 4, 2 ** 31):
            self.refused(head(version), UNSUPPORTED, f"has GGUF version {version}, expected 2 or 3")
        self.refused(head(1), UNSUPPORTED, "version 1, which is not supported")
        self.refused(head(3 << 24), UNSUPPORTED, "is big-endian")
        self.refused(head(n_tensors=huge), FILE, f"says that it has {huge} tensors")
        self.refused(head(n_pairs=huge), FILE, f"says that it has {huge} keys")
        self.refused(head(n_pairs=1) + struct.pack("<Q", huge) + bytes(64), FILE, f"has {huge} bytes, expected 1 to 65535")
        self.refused(head(n_pairs=1) + pair("", 4, bytes(4)), FILE, "has 0 bytes, expected 1 to 65535")
        self.refused(head(n_pairs=1) + pair("k", 999, bytes(8)), FILE, 'key "k" has type 999')
        self.refused(head(n_pairs=1) + pair("k", 9, struct.pack("<IQ", 999, 0)), FILE, 'an element of key "k" has type 999')
        self.refused(head(n_pairs=1) + pair("k", 9, struct.pack("<IQ", 9, 0)), UNSUPPORTED, 'key "k" is an array of arrays')
        for element in (0, 4, 7, 8, 12):
            self.refused(head(n_pairs=1) + pair("k", 9, struct.pack("<IQ", element, huge)), FILE, f'key "k" has {huge} elements')
        self.refused(head(n_pairs=1) + pair("k", 8, struct.pack("<Q", huge)), FILE, 'ends inside key "k"')
        self.refused(head(n_pairs=2) + 2 * pair("k", 4, bytes(4)), FILE, 'has key "k" twice')
        for kind, v in (("u32", 13), ("u32", 0), ("i32", 32), ("u64", 32), ("string", "32")):
            self.refused(alignment(kind, v), FILE, '"general.alignment"', "expected a power of two of type UINT32")
        (self.folder / "m.gguf").write_bytes(head())  # a file of nothing is right, but no model
        self.bad(FILE, ["plan", "m.gguf"], 'm.gguf: has no key "general.architecture"')

    def model_with(self, infos, n, data=b""):
        """A model's keys, and tensors whose entries in the table are given as bytes."""
        pairs, _ = gguf_file.model(TIED)
        empty = gguf_file.file_bytes(pairs, [])
        head = empty[:8] + struct.pack("<Q", n) + empty[16:] + infos
        return head + gguf_file.pad(len(head), 32) + data

    @staticmethod
    def info(name, ne, kind, offset=0):
        return gguf_file.string(name) + struct.pack(f"<I{len(ne)}Q", len(ne), *ne) + struct.pack("<IQ", kind, offset)

    def test_b034_a_zero_dimension_is_an_empty_tensor(self):
        pairs, tensors = gguf_file.model(TIED)
        for ne in ([0], [0, 5], [5, 0], [4, 0, 3]):
            made = self.write("m.gguf", pairs, tensors + [("extra.weight", "F32", list(reversed(ne)), b"")])
            shown = json.loads(self.good("inspect", made, "--json"))
            self.assertIn({"name": "extra.weight", "shape": list(reversed(ne))}, [{k: t[k] for k in ("name", "shape")} for t in shown["tensors"]])
        (self.folder / "m.gguf").write_bytes(self.model_with(self.info("token_embd.weight", [0, 0], 8), 1))
        self.bad(FILE, ["plan", "m.gguf"], "m.gguf (config)", '"vocab_size" is missing')
        self.refused(self.model_with(self.info("w", [0, 2 ** 62, 2 ** 62], 0), 1), FILE, 'tensor "w" has a shape whose size overflows')

    def test_b035_products_that_overflow_are_refused(self):
        for ne, kind, words in (([2 ** 63 - 1, 2, 1, 1], 24, "size overflows"), ([2 ** 22, 2 ** 42 + 1, 1, 1], 24, "size overflows"),
                                ([2 ** 64 - 1, 2, 1, 1], 24, "18446744073709551615 as dimension"), ([2 ** 61, 2], 0, "bytes overflow"),
                                ([2 ** 32, 2 ** 32], 0, "overflow"), ([256, 2 ** 57], 14, "overflow"), ([1] * 5, 0, "5 dimensions"),
                                ([2 ** 40], 0, "download incomplete?"), ([33], 8, "a multiple of 32"), ([16], 999, "type number 999")):
            self.refused(self.model_with(self.info("w", ne, kind), 1, bytes(64)), FILE, 'tensor "w"', words)
        for offset, words in ((4, "alignment"), (2 ** 63, "download incomplete?"), (2 ** 64 - 32, "beyond 2^64")):
            self.refused(self.model_with(self.info("w", [16], 0, offset), 1, bytes(64)), FILE, 'tensor "w"', words)
        twice = self.info("a", [16], 0) + self.info("b", [8], 0, 32)
        self.refused(self.model_with(twice, 2, bytes(96)), FILE, 'tensor "b"', 'inside tensor "a"')
        self.refused(self.model_with(2 * self.info("a", [4], 0), 2, bytes(96)), FILE, 'has tensor "a" twice')

    def test_b031_a_file_cut_short_anywhere_is_refused(self):
        pairs, tensors = gguf_file.model(TIED)
        whole = gguf_file.file_bytes(pairs, tensors)
        for size in [*range(0, 24), *range(24, len(whole), len(whole) // 40), len(whole) - 1]:
            (self.folder / "m.gguf").write_bytes(whole[:size])
            self.bad(FILE, ["plan", "m.gguf"], "m.gguf: ")

    def test_b037_b038_parts_that_are_missing_or_strange_are_refused(self):
        pairs, tensors = gguf_file.model(UNTIED)
        parts = gguf_file.split_bytes(pairs, [tensors[:5], tensors[5:6], tensors[6:]])
        name = lambda i: f"m-{i + 1:05}-of-00003.gguf"

        def write(*which):
            for i in range(3):
                (self.folder / name(i)).unlink(missing_ok=True)
            for i, part in enumerate(which):
                if part is not None:
                    (self.folder / name(i)).write_bytes(part)

        def refused(*words):
            for command in (["plan", name(0)], ["run", name(0), "hi"], ["plan", str(self.folder)]):
                self.bad(FILE, command, *words)
        write(parts[0], None, parts[2])
        refused(f"not there: {name(1)}; download incomplete?")
        write(parts[0], parts[2], parts[1])
        refused(f"{name(1)}: says that it is part 3 of 3", "expected part 2 of 3")
        write(parts[0], parts[1][:-1], parts[2])
        refused(f"{name(1)}: ", "download incomplete?")
        write(parts[0], gguf_file.file_bytes([], tensors[5:6]), parts[2])
        refused(f"{name(1)}: says that it is part ? of ?")
        own = lambda no, count, n, kind="u16": [("split.no", kind, no), ("split.count", kind, count), ("split.tensors.count", "i32", n)]
        write(parts[0], gguf_file.file_bytes(own(1, 4, len(tensors)), tensors[5:6]), parts[2])
        refused(f"{name(1)}: says that it is part 2 of 4")
        write(parts[0], gguf_file.file_bytes(own(-3, -1, len(tensors), "i32"), tensors[5:6]), parts[2])
        refused(f"{name(1)}: says that it is part -2 of -1")
        write(parts[0], gguf_file.file_bytes(own(1, 3, len(tensors)), tensors[4:6]), parts[2])
        refused(f"{name(1)}: has tensor", "which a part before it has too")
        write(parts[0], gguf_file.file_bytes(own(1, 3, len(tensors)), []), parts[2])
        refused(f"{name(0)}: says that all parts have {len(tensors)} tensors")
        write(*parts)
        outside = self.folder / "elsewhere" / "x.gguf"
        outside.parent.mkdir()
        model = self.folder / "model"
        model.mkdir()
        for i in (0, 2):
            (self.folder / name(i)).rename(model / name(i))
        (self.folder / name(1)).rename(outside)
        (model / name(1)).symlink_to(outside)
        self.bad(FILE, ["plan", str(model)], f"{name(1)}")

    def test_vocabularies_that_are_damaged_are_refused(self):
        pairs, tensors = gguf_file.model(TIED)
        tokens = ["<unk>", "a", "b", "ab", "\u2581a", "<s>"]
        spm = lambda scores, **more: [("tokenizer.ggml.model", "string", "llama"), ("tokenizer.ggml.tokens", "[string]", more.get("tokens", tokens)),
                                      ("tokenizer.ggml.scores", "[f32]", scores), *more.get("pairs", [])]
        fine = self.write("m.gguf", pairs + spm([0.0, -1, -2, -3, -4, 0]), tensors)
        self.good("tokenize", "--tokenizer", fine, "ab")
        for made, words in ((spm([0.0, -1, float("nan"), -3, -4, 0]), "tokenizer.ggml.scores[2] is nan"),
                            (spm([0.0, -1, float("-inf"), -3, -4, 0]), "tokenizer.ggml.scores[2] is -inf"),
                            (spm([0.0]), "has 1 tokenizer.ggml.scores, expected 6"),
                            (spm([0.0] * 6, pairs=[("tokenizer.ggml.token_type", "[i32]", [1] * 7)]), "an array of 7 INT32, expected an array of 6"),
                            (spm([0.0] * 6, pairs=[("tokenizer.ggml.bos_token_id", "string", "1")]), '"tokenizer.ggml.bos_token_id" is "1"'),
                            (spm([0.0] * 6, tokens=tokens[:5] + [b"\xff\xfe"]), "UTF-8")):
            self.write("m.gguf", pairs + made, tensors)
            self.bad(FILE, ["tokenize", "--tokenizer", "m.gguf", "ab"], "m.gguf", words)
        long = ["a" * n for n in range(1, 2900)]  # each made of the others: in 4.2 million ways
        self.write("m.gguf", pairs + spm([0.0] * len(long), tokens=long), tensors)
        self.bad(FILE, ["tokenize", "--tokenizer", "m.gguf", "ab"], "m.gguf: its tokens are made of each other in more than 4000000 ways")
        one = ["<unk>", "a", "b" * 3_000_000]  # time with its length, not with the square
        self.good("tokenize", "--tokenizer", self.write("m.gguf", pairs + spm([0.0] * 3, tokens=one), tensors), "a")


if __name__ == "__main__":
    unittest.main()
