"""`dovetail doctor` against a backend that is wrong on purpose and against right ones, its cases, and bad input.
usage: doctor_test.py DOVETAIL FOLDER-OF-THE-FLAWED-BACKEND FOLDER-OF-TEST-PLUGINS
"""
import array
import json
import math
import pathlib
import random
import re
import struct
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import program_case  # noqa: E402

DOVETAIL, FLAWED, PLUGINS = sys.argv[1:4]
del sys.argv[1:4]
GOLDEN = ROOT / "tests" / "golden"
DEMO = str(ROOT / "configs" / "demo.yaml")
USAGE, FILE, UNSUPPORTED, DIFFERS = 2, 3, 4, 6


def flawed(fault="epsilon", scope="layers.1.ffn"):
    keys = (f"plugins.path=[{FLAWED}]", "backend.plugin=flawed", f"backend.fault={fault}", f"backend.scope={scope}")
    return [word for key in keys for word in ("--set", key)]


class Case:
    """A written case, as any program would read it."""

    def __init__(self, path):
        self.path = path
        data = path.read_bytes()
        (n,) = struct.unpack_from("<Q", data)
        self.header = json.loads(data[8:8 + n])
        self.data = data[8 + n:]
        self.case = json.loads(self.header["__metadata__"]["dovetail.case"])

    def floats(self, name):
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":
            return [struct.unpack("<f", b"\0\0" + self.data[i:i + 2])[0] for i in range(begin, end, 2)]
        return list(array.array("f", self.data[begin:end]))

    def write(self, path):
        header = {**self.header, "__metadata__": {**self.header["__metadata__"], "dovetail.case": json.dumps(self.case)}}
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + self.data)
        return path


class DoctorCase(program_case.ProgramCase):
    dovetail = DOVETAIL

    def examined(self, *args, code=0):
        done = self.program("doctor", *args, "--json")
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        self.assertEqual(re.sub(rb"(?m)^examining ops: .*\n", b"", done.stderr), b"")  # the progress that a slow machine sees
        got = json.loads(done.stdout)
        self.assertEqual(got["within"], code == 0)
        return got

    def replayed(self, path, *args, code):
        done = self.program("doctor", "--replay", path, "--path", FLAWED, "--json", *args)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return json.loads(done.stdout)


class PlantedFaults(DoctorCase):
    def test_a_wrong_epsilon_is_found_in_its_layer(self):
        for scope in ("layers.1.ffn", "layers.4.attn", "head"):
            got = self.examined(DEMO, *flawed(scope=scope), code=DIFFERS)
            found = got["finding"]
            self.assertEqual((found["scope"], found["op"], found["together"]), (scope, "rms_norm", False))
            self.assertEqual(found["attributes"]["eps"], 1e-6)
            self.assertRegex(found["inputs"][0], r"^\[[TR], 256\] float32$")
            self.assertRegex(found["inputs"][1], r"weight \[256\] bf16$")
            self.assertGreater(found["error"]["relative"], found["tolerance"])
            worst = found["error"]["worst_element"]
            self.assertEqual(len(worst["index"]), 2)
            self.assertGreater(abs(worst["got"] - worst["expected"]), 0)
            # The case is small, goes on being wrong there, and is right elsewhere.
            path = self.folder / found["case"]["file"]
            self.assertEqual(path.name, f"doctor-{scope}-rms_norm.safetensors")
            self.assertLess(path.stat().st_size, 20_000)
            self.assertEqual((path.stat().st_size, found["case"]["tokens"]), (found["case"]["bytes"], 1))
            again = self.replayed(path, code=DIFFERS)
            self.assertEqual((again["op"], again["scope"], again["backend"], again["natively"]), ("rms_norm", scope, "flawed", True))
            self.assertGreater(again["error"]["relative"], again["tolerance"])
            for backend, is_native in (("reference", False), ("cpu", True)):
                right = self.replayed(path, "--backend", backend, code=0)
                self.assertEqual((right["backend"], right["natively"]), (backend, is_native))
                self.assertLess(right["error"]["relative"], 1e-6)

    def test_a_case_holds_what_the_op_reads_and_what_is_right(self):
        got = self.examined(DEMO, *flawed(), "-o", "norm.safetensors", code=DIFFERS)
        case = Case(self.folder / "norm.safetensors")
        (node,) = case.case["nodes"]
        self.assertEqual((node["op"], node["scope"]), ("rms_norm", "layers.1.ffn"))
        (eps,) = next(a["floats"] for a in node["attrs"] if a["key"] == "eps")
        x, weight, expected = (case.floats(name) for name in ("fed.0", "weight.0", "expected.0"))
        scale = 1 / math.sqrt(math.fsum(v * v for v in x) / len(x) + eps)
        for i, (v, w) in enumerate(zip(x, weight)):
            self.assertAlmostEqual(expected[i], v * scale * w, delta=1e-5)
        self.assertEqual(case.case["tolerance"], got["finding"]["tolerance"])
        self.assertEqual((case.case["backend"], case.case["trusted"]), ("flawed", "reference"))

    def test_no_op_is_blamed_for_an_error_before_it(self):
        got = self.examined(DEMO, *flawed(scope="layers.0.attn"), "--tolerance", "100")
        self.assertEqual(got["examined"], got["ops"] - 2 * 6)  # writes to the cache are seen in what reads it
        for entry in got["by_op"]:
            if entry["op"] == "rms_norm":
                self.assertGreater(entry["worst"], 1e-3)
                self.assertEqual(entry["scope"], "layers.0.attn")
            else:
                self.assertLess(entry["worst"], 1e-6, entry)
        # ... as it would be if whole runs were compared.
        compared = self.program("compare", DEMO, "--a-set", "backend.plugin=reference", *(w.replace("--set", "--b-set") for w in flawed(scope="layers.0.attn")),
                                "--json", "--tolerance", "100")
        self.assertGreater(json.loads(compared.stdout)["layers"][-1]["relative_max"], 1e-3)

    def test_ops_that_are_wrong_only_together_are_found(self):
        got = self.examined(GOLDEN / "qwen3", *flawed("joined", "layers.1.ffn"), code=DIFFERS)
        found = got["finding"]
        self.assertEqual((found["together"], found["ops"], found["scope"]), (True, ["add", "rms_norm"], "layers.1.ffn"))
        self.assertIn("right alone", got["verdict"])
        self.assertEqual(got["groups"], 2)
        path = self.folder / found["case"]["file"]
        self.assertLess(path.stat().st_size, 20_000)
        self.replayed(path, code=DIFFERS)
        self.replayed(path, "--backend", "cpu", code=0)

    def test_one_wrong_row_of_a_matrix_is_found_and_cut_out(self):
        for model, weights in ((DEMO, []), (DEMO, ["--set", "kv_cache.dtype=bf16"]), (str(GOLDEN / "qwen3"), [])):
            got = self.examined(model, *flawed("row", "layers.0.ffn"), *weights, code=DIFFERS)
            found = got["finding"]
            self.assertEqual((found["op"], found["scope"], found["error"]["worst_element"]["index"][1]), ("linear", "layers.0.ffn", 2))
            self.assertEqual(found["error"]["worst_element"]["got"], 0)
            path = self.folder / found["case"]["file"]
            self.assertLess(path.stat().st_size, 20_000)
            self.assertEqual(Case(path).case["weights"][0]["shape"][0], 16)
            again = self.replayed(path, code=DIFFERS)
            self.assertEqual(again["error"]["worst_element"]["index"], [0, 2])
            self.replayed(path, "--backend", "cpu", code=0)

    def test_an_op_that_is_wrong_only_for_a_token_alone_is_found(self):
        got = self.examined(GOLDEN / "qwen3", *flawed("decode", "layers.1.attn"), code=DIFFERS)
        found = got["finding"]
        self.assertEqual((found["scope"], found["op"]), ("layers.1.attn", "attend"))
        self.assertEqual(found["ops"], ["cache_write", "cache_write", "attend"])
        self.assertEqual(found["error"]["token"], len(got["prompt"]["ids"]) - 1)
        path = self.folder / found["case"]["file"]
        self.assertEqual([s["positions"] for s in Case(path).case["steps"]], [[0], [1]])
        self.replayed(path, code=DIFFERS)
        self.replayed(path, "--backend", "cpu", code=0)

    def test_the_report_for_people(self):
        done = self.program("doctor", DEMO, "Mr. Darcy was", *flawed())
        self.assertEqual((done.returncode, done.stderr), (DIFFERS, b""))
        text = done.stdout.decode()
        self.assertTrue(text.startswith("layers.1.ffn: rms_norm is the first op of flawed beyond its tolerance.\n"), text)
        for words in ("backend     flawed (flawed), against reference", 'tokens: "Mr. Darcy was"', "op          layers.1.ffn: rms_norm, node ",
                      "inputs      [T, 256] float32, model.layers.1.", "attributes  eps 1e-06; unit_offset 0", "output      [T, 256] float32",
                      "the tolerance is 0.002 %", "got ", "expected ", "dovetail doctor --replay doctor-layers.1.ffn-rms_norm.safetensors\n"):
            self.assertIn(words, text)
        again = self.program("doctor", "--replay", "doctor-layers.1.ffn-rms_norm.safetensors", "--path", FLAWED)
        self.assertEqual((again.returncode, again.stderr), (DIFFERS, b""))
        self.assertTrue(again.stdout.startswith(b"layers.1.ffn: rms_norm on flawed is beyond its tolerance.\n"), again.stdout)


class RightBackends(DoctorCase):
    def test_nothing_is_found_where_nothing_is_wrong(self):
        for args in (flawed("none"), [], ["--set", "backend.plugin=reference"], ["--against", "cpu", "--set", "backend.plugin=reference"],
                     ["--set", "backend.isa=portable"], ["--set", "kv_cache.dtype=int8"], ["--set", "kv_cache.dtype=float32"]):
            got = self.examined(DEMO, *args)
            self.assertIsNone(got["finding"])
            self.assertEqual(list(self.folder.glob("*.safetensors")), [])
            self.assertGreaterEqual(got["groups"], 6)
            self.assertGreater(got["examined"], 100)
        self.assertIn(b"No op of cpu is beyond its tolerance: ", self.good("doctor"))

    def test_every_golden_checkpoint_and_format_of_weights(self):
        models = sorted(path.parent for path in GOLDEN.glob("*/config.json"))
        self.assertGreaterEqual(len(models), 9)
        for model in models:
            got = self.examined(model)
            self.assertEqual(got["examined"], got["ops"])
            self.assertEqual(len(got["prompt"]["ids"]), 12)
        for model, weights, tolerance in ((GOLDEN / "qwen3", "", 2e-5), (DEMO, "", 0.005), *((DEMO, w, 0.05) for w in ("int8", "int6", "int4", "int4q"))):
            got = self.examined(model, *(["--set", f"backend.weights={weights}"] if weights else []))
            linear = next(e for e in got["by_op"] if e["op"] == "linear")
            self.assertEqual(linear["tolerance"], tolerance)
            self.assertGreater(linear["worst"], 0)

    def test_the_device_backend_by_emulation(self):
        cuda = ["--set", f"plugins.path=[{PLUGINS}]", "--set", "backend.plugin=cuda_emulated"]
        got = self.examined(GOLDEN / "qwen3", *cuda, "--ids", "5,17,42,99,3")
        self.assertEqual(got["examined"], got["ops"])
        self.assertEqual({e["op"] for e in got["by_op"]} & {"rms_norm", "swiglu", "attention"}, {"rms_norm", "swiglu", "attention"})

    def test_an_op_of_a_plugin(self):
        hashed = self.folder / "hash.yaml"
        hashed.write_text(f"dovetail: 1\nmodel: {{arch: hash, vocab_size: 64}}\nplugins: {{path: [{PLUGINS}]}}\n")
        got = self.examined(hashed, "--ids", "1,2,3,4")
        self.assertTrue(any("/" in e["op"] for e in got["by_op"]), got["by_op"])

    def test_one_token_and_ids(self):
        self.assertEqual(self.examined(GOLDEN / "qwen3", "--ids", "5")["prompt"]["ids"], [5])
        self.assertEqual(self.examined(DEMO, "Mr. Darcy")["prompt"]["text"], "Mr. Darcy")


class Explanations(DoctorCase):
    def test_ops_are_grouped_and_nothing_is_generated(self):
        text = self.good("run", "--explain").decode()
        self.assertRegex(text, r"^backend cpu \(\w+\): all \d+ ops run natively\n")
        self.assertRegex(text, r"\n  rms_norm +25  layers\.0-5\.attn, layers\.0-5\.ffn, head +natively\n")
        self.assertNotIn("definition", text)
        by_definition = self.good("run", "--explain", "--set", "backend.plugin=reference").decode()
        self.assertRegex(by_definition, r"\n  rms_norm .* by its definition in core ops: this backend has no such op\n")
        self.assertRegex(by_definition, r"\n  linear .* natively\n")

    def test_json(self):
        got = json.loads(self.good("run", "--explain", "--json", "--set", "backend.plugin=reference"))
        self.assertEqual((got["backend"], got["variant"]), ("reference", "reference"))
        by_op = {e["op"]: e for e in got["placement"]}
        self.assertEqual(sum(e["count"] for e in by_op.values()), got["ops"])
        self.assertEqual((by_op["rms_norm"]["runs"], by_op["linear"]["runs"], by_op["linear"]["reason"]), ("by definition", "natively", None))
        self.assertEqual(got["by_definition"], sum(by_op[op]["count"] for op in ("rms_norm", "swiglu", "attention")))
        self.assertEqual(by_op["swiglu"]["scopes"], [f"layers.{i}.ffn" for i in range(6)])
        answer = json.loads(self.good("run", "Once", "-n", "2", "--json", "--explain"))
        self.assertEqual((answer["explanation"]["backend"], len(answer["ids"])), ("cpu", 2))

    def test_the_device_backend_runs_all_ops_natively(self):
        got = json.loads(self.good("run", "--explain", "--json", "--set", f"plugins.path=[{PLUGINS}]", "--set", "backend.plugin=cuda_emulated"))
        self.assertEqual((got["backend"], got["by_definition"]), ("cuda_emulated", 0))


class BadInput(DoctorCase):
    def case(self):
        self.examined(GOLDEN / "qwen3", *flawed(), "-o", "case.safetensors", code=DIFFERS)
        return Case(self.folder / "case.safetensors")

    def test_wrong_words(self):
        self.bad(USAGE, ["doctor", "--against", "referense"], "referense", "did you mean", "reference")
        self.bad(USAGE, ["doctor", "--set", "backend.plugin=none"], "none", "looked in")
        self.bad(FILE, ["doctor", "gone.yaml"], "gone.yaml", "does not exist")
        self.bad(USAGE, ["doctor", DEMO, "Mr. Darcy", "--ids", "1,2"], "a prompt or ids")
        self.bad(USAGE, ["doctor", GOLDEN / "qwen3", "a prompt"], "no tokenizer")
        self.bad(USAGE, ["doctor", GOLDEN / "qwen3", "--ids", "160"], "outside the vocabulary")
        self.bad(USAGE, ["doctor", "--backend", "cpu"], "--replay")
        self.bad(USAGE, ["doctor", "--tolerance", "0"], "--tolerance")
        self.bad(FILE, ["doctor", DEMO, *flawed(), "-o", "no/such/folder"], "no/such")

    def test_the_help_names_every_option(self):
        text = self.good("doctor", "--help").decode()
        for option in ("--against", "--set", "--json", "--ids", "--raw", "--tolerance", "--output", "--replay", "--backend", "--path"):
            self.assertIn(option + " ", text)

    def test_files_that_hold_no_case(self):
        self.bad(FILE, ["doctor", "--replay", "gone.safetensors"], "gone.safetensors", "no such file")
        self.bad(FILE, ["doctor", "--replay", GOLDEN / "qwen3" / "model.safetensors"], "holds no case")
        (self.folder / "text").write_text("to be or not to be")
        self.bad(FILE, ["doctor", "--replay", "text"], "text", "no safetensors file")
        case = self.case()
        self.bad(USAGE, ["doctor", "--replay", case.path, DEMO], "takes no config")
        self.bad(USAGE, ["doctor", "--replay", case.path], "flawed")  # which is not found without --path
        self.bad(USAGE, ["doctor", "--replay", case.path, "--backend", "none"], "none")

    def test_damaged_cases(self):
        case = self.case()
        whole = case.path.read_bytes()
        for n in (0, 7, 100, len(whole) // 2, len(whole) - 1):
            case.path.write_bytes(whole[:n])
            self.bad(FILE, ["doctor", "--replay", case.path, "--path", FLAWED], "case.safetensors")
        case.path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
        self.bad(FILE, ["doctor", "--replay", case.path, "--path", FLAWED], "damaged")

    def test_cases_that_make_no_sense(self):
        def changed(change, *words):
            case = self.case()
            change(case.case)
            case.write(case.path)
            self.bad(FILE, ["doctor", "--replay", case.path, "--path", FLAWED], "case.safetensors", *words)

        changed(lambda c: c.update(version=2), '"version" is 2')
        changed(lambda c: c.pop("nodes"), '"nodes" is missing')
        changed(lambda c: c.update(page_len=0), '"page_len" is 0')
        changed(lambda c: c["nodes"][0].update(op="rms_norn"), "no op of this name")
        changed(lambda c: c["nodes"][0].update(attrs=[]), '"eps" is missing')
        changed(lambda c: c["nodes"][0].update({"in": [70000, 70001]}), "70000 is not given")
        changed(lambda c: c["steps"][0].update(positions=[]), "no tokens")
        changed(lambda c: c["steps"][0].update(tokens=[1]), "1 ids")
        changed(lambda c: c["steps"][0].update(rows=[9]), "row 9")
        changed(lambda c: c["fed"][0].update(shape=[7]), "fed.0")
        changed(lambda c: c["weights"][0].update(shape=[7]), "is missing, or has not the bytes")
        changed(lambda c: c.update(wanted=[70000]), "70000 is not given")

    def test_no_change_of_a_case_ends_the_program_by_a_signal(self):
        rng = random.Random(1)
        for fault in ("row", "decode"):
            self.examined(GOLDEN / "qwen3", *flawed(fault, "layers.0.attn"), "-o", "case.safetensors", code=DIFFERS)
            self.change_at_random(Case(self.folder / "case.safetensors"), rng)

    def change_at_random(self, case, rng):
        text = json.dumps(case.case)
        codes = set()
        for _ in range(100):
            case.case = json.loads(text)
            at, key = case.case, None
            while isinstance(at, (dict, list)) and at:
                holder, key = at, rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
                at = holder[key]
            holder[key] = rng.choice([0, -1, 1, 7, 1 << 20, 1 << 31, (1 << 63) - 1, 0.5, "", "x", None, [], {}, True])
            case.write(self.folder / "mutated.safetensors")
            done = self.program("doctor", "--replay", "mutated.safetensors", "--path", FLAWED)
            self.assertIn(done.returncode, (0, USAGE, FILE, UNSUPPORTED, DIFFERS, 1, 5), (holder, key, done.stderr))
            codes.add(done.returncode)
        self.assertLessEqual({FILE, DIFFERS}, codes)


if __name__ == "__main__":
    unittest.main()
