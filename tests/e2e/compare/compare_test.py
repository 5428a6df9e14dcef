"""`dovetail compare` against the same measures computed here from `dovetail logits`, its verdicts and its bad input.
usage: compare_test.py DOVETAIL
"""
import array
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import logits_file  # noqa: E402

DOVETAIL = sys.argv.pop(1)
DEMO = str(ROOT / "configs" / "demo.yaml")
GOLDEN = ROOT / "tests" / "golden"
PROMPT = "She was not at all surprised to see Mr. Darcy, who had walked over from Rosings to see her friend"
IDS = "5,17,42,99,3,150,8,77"
INT4 = ["--b-set", "backend.weights=int4"]
DIFFERS = 6


def program(*args, stdin=""):
    return subprocess.run([DOVETAIL, *args], input=stdin, capture_output=True, encoding="utf-8", timeout=120)


def changed(source, folder, tensor, change):
    """A copy of a checkpoint with one float32 tensor's numbers changed."""
    shutil.copytree(source, folder)
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    (n,) = struct.unpack_from("<Q", data)
    entry = json.loads(data[8:8 + n])[tensor]
    assert entry["dtype"] == "F32"
    begin, end = (8 + n + at for at in entry["data_offsets"])
    values = array.array("f", bytes(data[begin:end]))
    change(values)
    data[begin:end] = values.tobytes()
    weights.write_bytes(data)
    return str(folder)


class Compare(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def compared(self, *args, code=0, stdin=""):
        done = program("compare", *args, "--json", stdin=stdin)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def test_every_measure(self):
        got = self.compared(DEMO, PROMPT, *INT4, "--tolerance", "1")
        ids = got["prompt"]["ids"]
        a = logits_file.logits(DOVETAIL, DEMO, ids)
        b = logits_file.logits(DOVETAIL, DEMO, ids, "--set", "backend.weights=int4")
        self.assertEqual(len(got["layers"]), 6)
        for entry in [*got["layers"], got["logits"]]:
            rows = list(zip(a[entry["name"]], b[entry["name"]]))
            relative = [logits_file.relative_error(x, y) for x, y in rows]
            largest = [max(abs(v - u) for u, v in zip(x, y)) for x, y in rows]
            self.assertAlmostEqual(entry["relative_mean"] / (math.fsum(relative) / len(relative)), 1, delta=1e-9)
            self.assertAlmostEqual(entry["relative_max"] / max(relative), 1, delta=1e-9)
            self.assertEqual(entry["relative_max_pos"], relative.index(max(relative)))
            self.assertEqual(entry["abs_max"], max(largest))
            self.assertEqual(entry["abs_max_pos"], largest.index(max(largest)))
        kl = [logits_file.divergence(x, y) for x, y in zip(a["logits"], b["logits"])]
        self.assertAlmostEqual(got["kl"]["mean"], math.fsum(kl) / len(kl), delta=1e-9)
        self.assertAlmostEqual(got["kl"]["max"], max(kl), delta=1e-9)
        self.assertEqual(got["kl"]["max_pos"], kl.index(max(kl)))
        self.assertEqual(got["kl"]["max_after"]["id"], ids[kl.index(max(kl))])
        tops = [[x.index(max(x)), y.index(max(y))] for x, y in zip(a["logits"], b["logits"])]
        other = [pos for pos, (x, y) in enumerate(tops) if x != y]
        self.assertEqual((got["top"]["positions"], got["top"]["same"]), (len(ids), len(ids) - len(other)))
        self.assertTrue(other, "choose a prompt at which int4 names another token")
        first = got["top"]["first_other"]
        self.assertEqual(first["pos"], other[0])
        for side, rows in (("a", a["logits"]), ("b", b["logits"])):
            two = sorted(range(4096), key=lambda i, row=rows[other[0]]: -row[i])[:2]
            self.assertEqual([(t["id"], t["logit"]) for t in first[side]], [(i, rows[other[0]][i]) for i in two])
            self.assertTrue(all(t["piece"] for t in first[side]))
            nll = [-logits_file.log_probabilities(row)[after] for row, after in zip(rows, ids[1:])]
            self.assertAlmostEqual(got["nll"][side], math.fsum(nll) / len(nll), delta=1e-9)
        self.assertEqual(got["nll"]["tokens"], len(ids) - 1)

    def test_equal_ones_are_called_equal(self):
        for args in ((DEMO, DEMO, PROMPT), (DEMO, PROMPT, "--b-set", "backend.threads=1"), (DEMO, PROMPT, "--b-set", "scheduler.max_batch_tokens=3"),
                     (str(GOLDEN / "qwen3"), str(GOLDEN / "qwen3_sharded"), "--ids", IDS)):
            got = self.compared(*args, "--tolerance", "0")
            self.assertTrue(got["equal"] and got["within"])
            self.assertEqual(got["verdict"], "A and B give equal numbers in every layer and equal logits")
            self.assertEqual(got["kl"]["max"], 0)

    def test_backends_agree_on_every_golden_checkpoint(self):
        models = sorted(path.parent for path in GOLDEN.glob("*/config.json"))
        self.assertGreaterEqual(len(models), 9)
        for model in models:
            got = self.compared(str(model), "--ids", IDS, "--a-set", "backend.plugin=reference")
            self.assertIsNone(got["first_beyond"], model)
            self.assertIn("reference", got["a"]["backend"])
            self.assertGreaterEqual(len(got["layers"]), 2)

    def test_formats_of_weights_stay_within_their_default_tolerance(self):
        seen = [0]
        for weights in ("int8", "int6", "int4q"):
            got = self.compared(DEMO, PROMPT, "--b-set", f"backend.weights={weights}")
            self.assertEqual(got["b"]["weights"].split(".")[0], weights)
            self.assertGreater(got["tolerance"], seen[-1])
            seen.append(got["tolerance"])
            # The same weights on the other backend: only the rounding of activations is left.
            same = self.compared(DEMO, PROMPT, "--set", f"backend.weights={weights}", "--a-set", "backend.plugin=reference")
            self.assertEqual(same["a"]["weights"], same["b"]["weights"])
            self.assertEqual(same["tolerance"], seen[1])
            alone = self.compared(DEMO, PROMPT, "--set", "backend.plugin=reference", "--b-set", f"backend.weights={weights}")
            self.assertEqual(alone["tolerance"], got["tolerance"])

    def test_the_first_layer_beyond_the_tolerance_is_named(self):
        def change(values):
            for i in range(len(values)):
                values[i] *= 1.5
        model = changed(GOLDEN / "qwen3", self.folder / "changed", "model.layers.1.mlp.down_proj.weight", change)
        got = self.compared(str(GOLDEN / "qwen3"), model, "--ids", IDS, code=DIFFERS)
        self.assertEqual(got["first_beyond"], "layer_out.1")
        self.assertEqual([e["within"] for e in got["layers"]], [True, False, False])
        self.assertTrue(got["verdict"].startswith("A and B part at the output of layer 1: at position "), got["verdict"])
        told = program("compare", str(GOLDEN / "qwen3"), model, "--ids", IDS)
        self.assertEqual((told.returncode, told.stderr), (DIFFERS, ""))
        self.assertRegex(told.stdout, r"\n  layer_out\.1 .*<- the first beyond the tolerance\n")
        self.assertNotRegex(told.stdout, r"layer_out\.[02] .*<-")
        self.compared(str(GOLDEN / "qwen3"), model, "--ids", IDS, "--tolerance", "10")

    def test_numbers_that_are_none_are_beyond_any_tolerance(self):
        def change(values):
            values[0] = math.nan
        model = changed(GOLDEN / "qwen3", self.folder / "nan", "model.layers.2.mlp.down_proj.weight", change)
        got = self.compared(str(GOLDEN / "qwen3"), model, "--ids", IDS, "--tolerance", "1000", code=DIFFERS)
        self.assertEqual(got["first_beyond"], "layer_out.2")
        self.assertIsNone(got["layers"][2]["relative_max"])
        self.assertIn("not a number", got["verdict"])

    def test_of_models_with_other_layers_the_logits_are_compared(self):
        two = (str(GOLDEN / "qwen3"), str(GOLDEN / "qwen3_tied"), "--ids", IDS)
        got = self.compared(*two)
        self.assertEqual((got["layers"], got["tolerance"], got["within"]), ([], None, None))
        self.assertGreater(got["kl"]["mean"], 0)
        self.assertIn("only their logits", got["verdict"])
        self.assertEqual(self.compared(*two, "--tolerance", "0.01", code=DIFFERS)["first_beyond"], "logits")

    def test_a_prompt_from_standard_input_one_of_its_own_and_the_embedded_model(self):
        self.assertEqual(self.compared(DEMO, "-", *INT4, "--tolerance", "1", stdin=PROMPT)["prompt"]["text"], PROMPT)
        own = self.compared(*INT4, "--tolerance", "1")
        self.assertGreater(len(own["prompt"]["ids"]), 10)
        self.assertEqual(own["a"]["config"], "the embedded model")
        self.assertEqual(self.compared("Mr. Darcy", *INT4, "--tolerance", "1")["prompt"]["text"], "Mr. Darcy")

    def test_the_report_for_people(self):
        told = program("compare", DEMO, PROMPT, *INT4, "--tolerance", "1").stdout
        self.assertRegex(told, r"^A and B agree: no output is off by more than [\d.]+ % \(the (?:logits|output of layer \d); the tolerance is 100 %\), and the likeliest")
        for words in ("\n  A       " + DEMO, "weights int4", f'tokens: "{PROMPT}"', "KL divergence", "likeliest token the same at", "first other one at position",
                      "\n    A: \"", "\n    B: \"", "perplexity"):
            self.assertIn(words, told)

    def bad(self, code, words, *args, stdin=""):
        done = program("compare", *args, stdin=stdin)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("dovetail: error: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_bad_input_gets_one_clear_error(self):
        qwen3 = str(GOLDEN / "qwen3")
        self.bad(2, ["nothing to compare with", "--b-set"], DEMO, PROMPT)
        self.bad(2, ["nothing to compare with", "--b-set"])
        self.bad(2, ["third config", DEMO], DEMO, DEMO, DEMO, PROMPT)
        self.bad(2, ["needs quotes"], DEMO, DEMO, "Mr.", "Darcy")
        self.bad(3, ["B: ", "gone.yaml", "does not exist"], DEMO, "gone.yaml", PROMPT)
        self.bad(3, ["A: ", "gone.yaml", "does not exist"], "gone.yaml", DEMO, PROMPT)
        self.bad(2, ["A: ", "no tokenizer", "--ids"], qwen3, qwen3)
        self.bad(2, ["vocabulary of 4096", "160", "cannot be compared"], DEMO, qwen3, "--ids", "1,2")
        self.bad(2, ["A: ", "id 160 is outside the vocabulary of 160"], qwen3, qwen3, "--ids", "1,160")
        self.bad(2, ["a prompt or ids"], DEMO, DEMO, PROMPT, "--ids", "1,2")
        self.bad(2, ["prompt is empty"], DEMO, "-", *INT4)
        self.bad(2, ["tokens", "the context holds 16"], DEMO, PROMPT * 3, *INT4, "--set", "context=16")
        self.bad(2, ["--tolerance"], DEMO, PROMPT, *INT4, "--tolerance", "-1")
        self.bad(2, ["--tolerance"], DEMO, PROMPT, *INT4, "--tolerance", "small")
        self.bad(4, ["B: ", "int5"], DEMO, PROMPT, "--b-set", "backend.weights=int5")

    def test_different_tokenizers_are_named(self):
        other = self.folder / "other"
        shutil.copytree(ROOT / "configs" / "demo", other)
        path = other / "tokenizer.json"
        tokenizer = json.loads(path.read_text(encoding="utf-8"))
        vocabulary = tokenizer["model"]["vocab"]
        by_id = {i: piece for piece, i in vocabulary.items()}
        vocabulary[by_id[1001]], vocabulary[by_id[1002]] = 1002, 1001
        path.write_text(json.dumps(tokenizer), encoding="utf-8")
        self.bad(2, ["B: ", "different tokenizers", "id 1001 is "], DEMO, str(other), PROMPT)


if __name__ == "__main__":
    unittest.main(verbosity=2)
