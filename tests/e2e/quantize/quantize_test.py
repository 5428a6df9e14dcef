"""`dovetail quantize`: a folder that runs as it is and gives the bytes of packing at load, on every backend; whole or
not there; each fault one line. usage: quantize_test.py DOVETAIL
"""
import json
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import program_case  # noqa: E402

DOVETAIL = sys.argv.pop(1)
DEMO = ROOT / "configs" / "demo"  # bf16, tied, with a tokenizer
UNTIED = ROOT / "tests" / "golden" / "qwen3"  # float32
TIED = ROOT / "tests" / "golden" / "qwen3_tied"  # float32
SHARDED = ROOT / "tests" / "golden" / "qwen3_sharded"
MIXED = "{default: int4, lm_head: int8, embed: int4q, v_proj: int8, down_proj: int6}"
IDS = ",".join(str(i * 7 % 160) for i in range(1, 40))
ISAS = ("portable", "avx2", "avx512", "neon")
FILE, USAGE, UNSUPPORTED, INTERRUPTED = 3, 2, 4, 130


def header(path):
    data = path.read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    return json.loads(data[8:8 + n]), 8 + n, data


def make_checkpoint(folder, *options):
    subprocess.run([sys.executable, ROOT / "tools" / "make_checkpoint.py", folder, *options, "--tokenizer", "none"], check=True, capture_output=True)
    (folder / "generation_config.json").write_text('{"eos_token_id": 0}')  # one of the few ids that there are


class Quantize(program_case.ProgramCase):
    dovetail = DOVETAIL

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.big = pathlib.Path(holder.name) / "big"  # 85 MB in bf16, the head of 32 MiB
        make_checkpoint(cls.big, "--hidden-size", "512", "--intermediate-size", "1536", "--num-hidden-layers", "8", "--vocab-size", "32768",
                        "--max-position-embeddings", "512")

    def quantize(self, model, weights, *options):
        out = self.folder / f"{pathlib.Path(model).name}-{len(list(self.folder.iterdir()))}"
        return out, json.loads(self.good("quantize", model, "-o", out, "--weights", weights, "--json", *options))

    def logits(self, model, *options):
        out = self.folder / "logits.safetensors"
        self.good("logits", model, "--ids", IDS, "-o", out, *options)
        return out.read_bytes()

    def test_logits_are_those_of_packing_at_load(self):
        for model in (UNTIED, TIED, SHARDED, DEMO):
            for weights in ("int8", "int6", "int4", "int4q", MIXED):
                out, _ = self.quantize(model, weights)
                for backend in ("cpu", "reference"):
                    use = ("--set", f"backend.plugin={backend}")
                    stored, made = self.logits(model, *use), self.logits(out, *use)
                    packed = self.logits(model, *use, "--set", f"backend.weights={weights}")
                    self.assertTrue(made == packed, (model, weights, backend))
                    self.assertFalse(made == stored, (model, weights, backend))

    def test_greedy_text_is_that_of_packing_at_load(self):
        greedy = ("It is a truth universally acknowledged", "-n", "40", "--set", "sampler=[greedy]")
        for weights in ("int8", "int6", "int4", "int4q", MIXED):
            out, _ = self.quantize(DEMO, weights)
            text = self.good("run", out, *greedy)
            self.assertEqual(text, self.good("run", DEMO, *greedy, "--set", f"backend.weights={weights}"))
            self.assertGreater(len(text), 100)

    def test_large_weights_go_in_pieces_and_need_no_cache(self):
        cache = self.folder / "cache" / "dovetail" / "weights"
        out, _ = self.quantize(self.big, "int8")
        made = self.logits(out)
        self.assertFalse(cache.exists())
        self.assertTrue(made == self.logits(self.big, "--set", "backend.weights=int8"))
        self.assertEqual(len(list(cache.iterdir())), 1, "packing at load is kept")

    def test_the_packed_bytes_serve_every_instruction_set(self):
        out, _ = self.quantize(UNTIED, MIXED)
        n_run = 0
        for isa in ISAS:
            use = ("--set", f"backend.isa={isa}")
            if b"cannot run isa" in self.program("plan", UNTIED, *use).stderr:
                continue
            again, _ = self.quantize(UNTIED, MIXED, *use)
            self.assertEqual((again / "model.safetensors").read_bytes(), (out / "model.safetensors").read_bytes(), isa)
            self.assertTrue(self.logits(out, *use) == self.logits(UNTIED, *use, "--set", f"backend.weights={MIXED}"), isa)
            n_run += 1
        self.assertGreaterEqual(n_run, 1)

    def test_large_models_are_spread_over_files(self):
        one, _ = self.quantize(DEMO, "int4")
        out, report = self.quantize(DEMO, "int4", "--max-file-mib", "1")
        self.assertGreater(len(report["files"]), 2)
        self.assertEqual(sorted(report["files"]), sorted(p.name for p in out.glob("*.safetensors")))
        for name in report["files"]:
            self.assertLessEqual((out / name).stat().st_size, (1 << 20) + 8192)
        self.assertTrue(self.logits(out) == self.logits(one))
        self.assertTrue(self.logits(out, "--set", "backend.plugin=reference") == self.logits(one, "--set", "backend.plugin=reference"))
        again, _ = self.quantize(SHARDED, "int8")  # from shards to one file
        self.assertEqual([p.name for p in again.glob("*.safetensors*")], ["model.safetensors"])

    def test_the_file_is_safetensors_and_names_the_formats(self):
        out, report = self.quantize(UNTIED, MIXED)
        tensors, begin, data = header(out / "model.safetensors")
        self.assertEqual(begin % 64, 0)
        named = {k[len("dovetail.format."):]: v for k, v in tensors.pop("__metadata__").items() if k.startswith("dovetail.format.")}
        self.assertEqual(named["lm_head.weight"], "int8.1 [160, 64]")
        self.assertEqual(named["model.embed_tokens.weight"], "int4q.1 [160, 64]")
        self.assertEqual(named["model.layers.0.mlp.down_proj.weight"], "int6.1 [64, 96]")
        at = 0
        for name, t in sorted(tensors.items(), key=lambda i: i[1]["data_offsets"]):
            self.assertEqual(t["data_offsets"][0], at, "no holes")
            at = t["data_offsets"][1]
            if name in named:
                self.assertEqual((t["dtype"], t["shape"]), ("U8", [at - t["data_offsets"][0]]))
                align = 16 if named[name].startswith(("int8", "int6")) else 32
                self.assertEqual((begin + t["data_offsets"][0]) % align, 0, f"{name} is not read where it lies")
        self.assertEqual(begin + at, len(data))
        # 160 rows are ten groups: 64 bytes and two blocks of 16 * 33, or 16 * 18 bytes; 64 are four, of three blocks of 16 * 25.
        size = lambda n: tensors[n]["data_offsets"][1] - tensors[n]["data_offsets"][0]
        self.assertEqual(size("lm_head.weight"), 10 * (64 + 2 * 16 * 33))
        self.assertEqual(size("model.embed_tokens.weight"), 10 * (64 + 2 * 16 * 18))
        self.assertEqual(size("model.layers.0.mlp.down_proj.weight"), 4 * (64 + 3 * 16 * 25))
        self.assertEqual(set(report["formats"]), {"int4.1", "int4q.1", "int6.1", "int8.1", "float32"})
        self.assertEqual(sum(f["tensors"] for f in report["formats"].values()), len(tensors))
        self.assertEqual((report["bytes"], sum(f["bytes"] for f in report["formats"].values())), (at, at))

    def test_inspect_and_plan_tell_formats_and_bytes(self):
        out, report = self.quantize(DEMO, "int4")
        seen = json.loads(self.good("inspect", out, "--json"))
        before = json.loads(self.good("inspect", DEMO, "--json"))
        self.assertEqual(seen["parameters"], before["parameters"])
        shapes = lambda i: {t["name"]: t["shape"] for t in i["tensors"]}
        self.assertEqual(shapes(seen), shapes(before))
        sums = {}
        for t in seen["tensors"]:
            sums[t["format"]] = sums.get(t["format"], 0) + t["bytes"]
        self.assertEqual(sums, {f: s["bytes"] for f, s in report["formats"].items()})
        self.assertIn(b"of int4.1, ", self.good("inspect", out))
        items = {i["name"]: i for i in json.loads(self.good("plan", out, "--json"))["items"]}
        self.assertEqual(items["weights, mapped"]["bytes"], report["formats"]["int4.1"]["bytes"])
        self.assertFalse(items["weights, mapped"]["private"])
        self.assertIn(f"{report['formats']['int4.1']['tensors']} of int4.1", items["weights, mapped"]["detail"])
        packed = {i["name"]: i for i in json.loads(self.good("plan", DEMO, "--json", "--set", "backend.weights=int4"))["items"]}
        self.assertEqual(packed["weights, repacked"]["bytes"], items["weights, mapped"]["bytes"] + items["weights, repacked"]["bytes"])
        self.assertIn("of int4.1", packed["weights, repacked"]["detail"])

    def test_what_stands_beside_the_tensors_comes_along(self):
        source = self.folder / "source"
        shutil.copytree(DEMO, source)
        extra = {"chat_template.jinja": "{{ messages[0].content }}", "additional_chat_templates/rag.jinja": "r", "merges.txt": "a b\n",
                 "LICENSE": "take it\n"}
        (source / "additional_chat_templates").mkdir()
        for name, text in extra.items():
            (source / name).write_text(text)
        (source / "training.log").write_text("no part of a model")
        out, _ = self.quantize(source, "int8")
        names = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", *extra}
        self.assertEqual({p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}, names)
        for name in names - {"model.safetensors"}:
            self.assertEqual((out / name).read_bytes(), (source / name).read_bytes(), name)

        self.good("quantize", source, "-o", out, "--weights", "int8", "--force")

    def test_a_config_with_its_own_tokenizer_and_template_is_followed(self):
        (self.folder / "c.yaml").write_text(f"dovetail: 1\nmodel: {{path: {UNTIED}}}\nbackend: {{weights: int4}}\ntokenizer: {{path: {DEMO}}}\n"
                                            "chat: {template: \"{{ messages[0].content }}!\"}\n")
        out = self.folder / "out"
        self.good("quantize", self.folder / "c.yaml", "-o", out)
        self.assertEqual((out / "tokenizer.json").read_bytes(), (DEMO / "tokenizer.json").read_bytes())
        self.assertEqual((out / "chat_template.jinja").read_text(), "{{ messages[0].content }}!")

    def test_what_the_model_does_not_read_is_left_out_and_said(self):
        source = self.folder / "source"
        make_checkpoint(source, "--hidden-size", "64", "--intermediate-size", "96", "--num-hidden-layers", "1", "--num-attention-heads", "2",
                        "--num-key-value-heads", "2", "--head-dim", "32", "--vocab-size", "160", "--tied", "--store-tied-head")
        out, report = self.quantize(source, "int4")
        self.assertEqual(report["left_out"], ["lm_head.weight"])
        self.assertTrue(self.logits(out) == self.logits(source, "--set", "backend.weights=int4"))
        self.assertIn(b"left out, as the model does not read it: lm_head.weight", self.good("quantize", source, "-o", self.folder / "o", "--weights", "int4"))

    def test_a_quantised_folder_may_be_quantised_further(self):
        part, _ = self.quantize(UNTIED, "{lm_head: int8}")
        both = "{default: int4, lm_head: int8}"
        out, _ = self.quantize(part, both)
        whole, _ = self.quantize(UNTIED, both)
        self.assertEqual((out / "model.safetensors").read_bytes(), (whole / "model.safetensors").read_bytes())

    def test_what_is_packed_may_be_expanded_for_good(self):
        for weights in ("int8", "int6", "int4", "int4q"):
            packed, _ = self.quantize(UNTIED, weights)
            exact = ("--set", "backend.plugin=reference")
            want = self.logits(packed, *exact)
            for options in (exact, ("--set", "backend.isa=portable"), ()):
                out, report = self.quantize(packed, "float32", *options)
                self.assertEqual(list(report["formats"]), ["float32"])
                self.assertTrue(self.logits(out, *exact) == want, (weights, options))
                self.assertTrue(self.logits(packed, "--set", "backend.weights=float32", *options) == self.logits(out, *options), (weights, options))

    def test_another_format_than_the_files_is_refused(self):
        out, _ = self.quantize(TIED, "int4")
        self.assertTrue(self.logits(out) == self.logits(out, "--set", "backend.weights=int4"), "the same is no other")
        for backend in ("cpu", "reference"):
            for command in (["plan", out], ["logits", out, "--ids", "1", "-o", self.folder / "l"]):
                self.bad(USAGE, [*command, "--set", "backend.weights=int8", "--set", f"backend.plugin={backend}"],
                         "model.embed_tokens.weight", "stored as int4.1", "asks for int8")
        self.bad(USAGE, ["quantize", out, "-o", self.folder / "x", "--weights", "int4q"], "stored as int4.1", "asks for int4q")
        self.bad(UNSUPPORTED, ["quantize", out, "-o", self.folder / "x", "--weights", "int4"], "nothing to quantise")

    def change(self, folder, change):
        """A copy of a quantised folder, with its header changed."""
        out = self.folder / f"changed-{len(list(self.folder.iterdir()))}"
        shutil.copytree(folder, out)
        tensors, begin, data = header(out / "model.safetensors")
        tail = change(tensors) or b""
        text = json.dumps(tensors).encode()
        text += b" " * (-(8 + len(text)) % 64)
        (out / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data[begin:] + tail)
        return out

    def test_wrong_formats_in_a_file_are_one_line(self):
        good, _ = self.quantize(UNTIED, "int4")
        name = "lm_head.weight"
        key = "dovetail.format." + name

        def longer(tensors):  # the last tensor of bytes, so that the others stay
            last = max((k for k in tensors if k != "__metadata__"), key=lambda k: tensors[k]["data_offsets"])
            moved = tensors[name]["data_offsets"]
            tensors[name] = {"dtype": "U8", "shape": [moved[1] - moved[0] + 64], "data_offsets": [tensors[last]["data_offsets"][1], 0]}
            tensors[name]["data_offsets"][1] = tensors[name]["data_offsets"][0] + tensors[name]["shape"][0]
            tensors["hole"] = {"dtype": "U8", "shape": [moved[1] - moved[0]], "data_offsets": moved}
            return bytes(tensors[name]["shape"][0])

        cases = (
            (lambda t: t["__metadata__"].__setitem__(key, "int4.2 [160, 64]"), UNSUPPORTED, ["int4.2"]),
            (lambda t: t["__metadata__"].__setitem__(key, "int9 [160, 64]"), UNSUPPORTED, ["int9"]),
            (lambda t: t["__metadata__"].__setitem__(key, "int8.1 [160, 64]"), FILE, ["int8.1", "6400 bytes", "11200"]),
            (lambda t: t["__metadata__"].__setitem__(key, "int4.1 [160, 32]"), FILE, ["[160, 32]", "[160, 64]"]),
            (lambda t: t["__metadata__"].__setitem__(key, "int4.1 160 64"), FILE, ["int4.1 160 64", "expected"]),
            (lambda t: t["__metadata__"].__setitem__(key, "int4.1 [9223372036854775807, 64]"), FILE, ["overflows"]),
            (lambda t: t["__metadata__"].__delitem__(key), FILE, ["[6400]", "[160, 64]"]),
            (longer, FILE, ["6464 bytes", "need 6400"]),
        )
        for change, code, words in cases:
            folder = self.change(good, change)
            quiet = ["--set", "log.level=error"]  # nothing uses "hole"
            for backend in ("cpu", "reference"):
                self.bad(code, ["logits", folder, "--ids", "1", "-o", self.folder / "l", *quiet, "--set", f"backend.plugin={backend}"], name, *words)
            self.bad(code, ["logits", folder, "--ids", "1", "-o", self.folder / "l", *quiet], name, *words)

    def test_a_tensor_that_lies_badly_is_copied_and_computes_the_same(self):
        good, report = self.quantize(UNTIED, "int4")

        def shift(tensors):
            for k, t in tensors.items():
                if k != "__metadata__":
                    t["data_offsets"] = [b + 4 for b in t["data_offsets"]]
            tensors["first"] = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}

        folder = self.change(good, shift)
        data = (folder / "model.safetensors").read_bytes()
        _, begin, _ = header(folder / "model.safetensors")
        (folder / "model.safetensors").write_bytes(data[:begin] + b"abcd" + data[begin:])
        self.assertTrue(self.logits(folder, "--set", "log.level=error") == self.logits(good))  # nothing uses "first"
        items = {i["name"]: i["bytes"] for i in json.loads(self.good("plan", folder, "--json"))["items"]}
        self.assertEqual(items["weights, mapped"], report["formats"]["float32"]["bytes"])  # for these, four bytes are enough
        self.assertEqual(items["weights, repacked"], report["formats"]["int4.1"]["bytes"])

    def test_faults_of_the_command_are_one_line(self):
        out = self.folder / "out"
        self.bad(USAGE, ["quantize", UNTIED, "-o", out], "no format is asked for", "--weights int4")
        self.bad(UNSUPPORTED, ["quantize", UNTIED, "-o", out, "--weights", "int5"], "int5", "int4q")
        self.bad(UNSUPPORTED, ["quantize", UNTIED, "-o", out, "--weights", "int4", "--set", "backend.plugin=reference"], "nothing to quantise", "reference")
        self.bad(FILE, ["quantize", self.folder / "gone", "-o", out, "--weights", "int4"], "gone")
        self.bad(FILE, ["quantize", UNTIED, "-o", self.folder / "no" / "out", "--weights", "int4"], "no/out", "no such file")
        self.bad(USAGE, ["quantize", UNTIED, "--weights", "int4"], "--output")
        copy = self.folder / "copy"
        shutil.copytree(UNTIED, copy)
        self.bad(FILE, ["quantize", copy, "-o", copy, "--weights", "int4"], "is there already")
        self.bad(USAGE, ["quantize", copy, "-o", copy, "--weights", "int4", "--force"], "is the folder that is read")
        self.assertEqual((copy / "model.safetensors").read_bytes(), (UNTIED / "model.safetensors").read_bytes())
        self.assertFalse(out.exists())

    def test_a_folder_that_is_there_is_replaced_only_if_asked(self):
        out, _ = self.quantize(UNTIED, "int4")
        before = (out / "model.safetensors").read_bytes()
        self.bad(FILE, ["quantize", UNTIED, "-o", out, "--weights", "int8"], "is there already", "--force")
        self.assertEqual((out / "model.safetensors").read_bytes(), before)
        self.good("quantize", UNTIED, "-o", out, "--weights", "int8", "--force")
        self.assertNotEqual((out / "model.safetensors").read_bytes(), before)
        (out / "notes").mkdir()
        self.bad(FILE, ["quantize", UNTIED, "-o", out, "--weights", "int4", "--force"], "notes")
        letters = self.folder / "letters"
        letters.mkdir()
        self.good("quantize", UNTIED, "-o", letters, "--weights", "int4")  # an empty one is as good as none
        for p in letters.iterdir():
            p.unlink()
        (letters / "dear.txt").write_text("dear")
        self.bad(FILE, ["quantize", UNTIED, "-o", letters, "--weights", "int4", "--force"], "no model's folder")
        self.assertEqual([p.name for p in letters.iterdir()], ["dear.txt"])
        (self.folder / "file").write_text("x")
        self.bad(FILE, ["quantize", UNTIED, "-o", self.folder / "file", "--weights", "int4", "--force"], "no folder")
        self.assertEqual([p.name for p in self.folder.iterdir() if ".part-" in p.name], [])

    def test_a_disk_that_takes_no_more_is_said_and_nothing_stays(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        done = self.program("quantize", DEMO, "-o", self.folder / "out", "--weights", "int8", preexec_fn=limit, restore_signals=False)
        self.assertEqual(done.returncode, FILE)
        self.assertRegex(done.stderr.decode(), r"^dovetail: error: .*model\.safetensors: cannot write: file too large\n$")
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name != "cache"], [])

    def test_stopped_and_killed_runs_leave_nothing_half_valid(self):
        for how in (signal.SIGINT, signal.SIGKILL):
            out = self.folder / f"out-{how}"
            run = subprocess.Popen([DOVETAIL, "quantize", self.big, "-o", out, "--weights", "int4", "--set", "backend.threads=1"], stderr=subprocess.PIPE)
            deadline = time.monotonic() + 60
            while run.poll() is None and time.monotonic() < deadline and not list(self.folder.glob(f".{out.name}.part-*/.model.safetensors.part-*")):
                time.sleep(0.001)
            run.send_signal(how)
            stderr = run.communicate(timeout=60)[1].decode()
            self.assertFalse(out.exists())
            left = list(self.folder.glob(f".{out.name}.part-*"))
            if how == signal.SIGINT:
                self.assertEqual((run.returncode, left), (INTERRUPTED, []), stderr)
                self.assertIn("interrupted", stderr)
            else:
                self.assertEqual(run.returncode, -how)
                self.bad(FILE, ["plan", left[0]], "no checkpoint was found")
                self.good("quantize", self.big, "-o", out, "--weights", "int4")
                self.assertFalse(left[0].exists(), "the next run removes it")


if __name__ == "__main__":
    unittest.main(verbosity=2)
