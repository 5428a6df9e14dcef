"""`dovetail perplexity` against the same measure computed here from `dovetail logits`, and its bad input.
usage: perplexity_test.py DOVETAIL
"""
import json
import math
import pathlib
import shutil
import statistics
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
GOLDEN = str(ROOT / "tests" / "golden" / "qwen3")
TEXT = (ROOT / "tests" / "data" / "demo" / "austen-pride_and_prejudice.txt").read_text(encoding="utf-8")[:3000] + "é 走 😀 end."


def program(*args, stdin=None):
    return subprocess.run([DOVETAIL, *args], input=stdin, capture_output=True, encoding="utf-8", timeout=120)


def tokens_of(where, text):
    out = program("tokenize", "--tokenizer", where, "--json", text)
    return json.loads(out.stdout)


def demo_with_bos(folder):
    """The embedded model with a tokenizer that puts id 0 before every text."""
    folder = pathlib.Path(folder) / "with-bos"
    shutil.copytree(ROOT / "configs" / "demo", folder)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    bos = next(t["content"] for t in tokenizer["added_tokens"] if t["id"] == 0)
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {bos: {"id": bos, "ids": [0], "tokens": [bos]}}}
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    return str(folder)


def expected(config, ids, windows, prefix=()):
    """nll of every counted token; windows are (begin, first counted, end)."""
    out = []
    for begin, counted, end in windows:
        part = [*prefix, *ids[begin + len(prefix):end]]
        rows = logits_file.logits(DOVETAIL, config, part)["logits"]
        out += [-logits_file.log_probabilities(rows[pos - begin - 1])[ids[pos]] for pos in range(counted, end)]
    return out


class Perplexity(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.file = self.folder / "text.txt"
        self.file.write_text(TEXT, encoding="utf-8")

    def score(self, *args, stdin=None):
        done = program("perplexity", *args, "--json", stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def agree(self, got, nll):
        self.assertEqual(got["tokens_counted"], len(nll))
        mean = math.fsum(nll) / len(nll)
        error = statistics.stdev(nll) / math.sqrt(len(nll))
        for key, want in (("nll", mean), ("nll_error", error), ("perplexity", math.exp(mean)),
                          ("perplexity_error", math.exp(mean) * error), ("bits_per_token", mean / math.log(2))):
            self.assertAlmostEqual(got[key] / want, 1, delta=1e-9, msg=key)

    def test_second_halves_of_windows(self):
        ids = [t["id"] for t in tokens_of(DEMO, TEXT)]
        got = self.score(DEMO, str(self.file), "--context", "64", "--windows", "3")
        self.agree(got, expected(DEMO, ids, [(0, 33, 64), (64, 97, 128), (128, 161, 192)]))
        self.assertEqual((got["windows"], got["context"], got["stride"], got["tokens"], got["prefix"]), (3, 64, None, len(ids), []))
        whole = self.score(DEMO, str(self.file), "--context", "64")
        self.assertEqual(whole["windows"], len(ids) // 64)

    def test_a_stride_counts_every_token_but_the_first(self):
        tokens = tokens_of(DEMO, TEXT)
        ids = [t["id"] for t in tokens][-150:]
        got = self.score(DEMO, "--ids", ",".join(map(str, ids)), "--context", "64", "--stride", "48")
        self.agree(got, expected(DEMO, ids, [(0, 1, 64), (48, 64, 112), (96, 112, 150)]))
        self.assertIsNone(got["bits_per_byte"])
        whole = self.score(DEMO, str(self.file), "--context", "64", "--stride", "48")
        self.assertEqual(whole["tokens_counted"], len(tokens) - 1)
        piece = bytes(tokens[0]["bytes"]) if "bytes" in tokens[0] else tokens[0]["piece"].encode()
        n_bytes = len(TEXT.encode()) - len(piece)
        self.assertAlmostEqual(whole["bits_per_byte"] * n_bytes, whole["bits_per_token"] * (len(tokens) - 1), delta=1e-6)

    def test_a_tokenizers_beginning_is_in_every_window(self):
        model = demo_with_bos(self.folder)
        ids = [t["id"] for t in tokens_of(model, TEXT)]
        self.assertEqual(ids[0], 0)
        got = self.score(model, str(self.file), "--context", "64", "--windows", "2")
        self.agree(got, expected(model, ids, [(0, 33, 64), (64, 97, 128)], prefix=[0]))
        self.assertEqual([t["id"] for t in got["prefix"]], [0])
        told = program("perplexity", model, str(self.file), "--context", "64", "--windows", "2").stdout
        self.assertIn(f"each begins     with {json.dumps(got['prefix'][0]['piece'])}\n", told)

    def test_the_same_from_standard_input_and_in_other_steps(self):
        def but_time(score):
            return {k: v for k, v in score.items() if k not in ("seconds", "text")}
        whole = self.score(DEMO, str(self.file), "--context", "128")
        self.assertEqual(whole["text"], str(self.file))
        for args in (["-"], []):
            self.assertEqual(but_time(self.score(DEMO, *args, "--context", "128", stdin=TEXT)), but_time(whole))
        for sets in ("scheduler.max_batch_tokens=7", "backend.threads=1"):
            self.assertEqual(but_time(self.score(DEMO, str(self.file), "--context", "128", "--set", sets)), but_time(whole))

    def test_control_tokens_in_a_text_are_text(self):
        end = json.loads((ROOT / "configs" / "demo" / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"][0]["content"]
        plain = self.score(DEMO, "-", "--context", "8", stdin=(end + " ") * 8)
        self.assertGreater(plain["tokens"], 16, "spelled out, it takes several tokens")

    def test_the_default_window_is_what_fits_up_to_512(self):
        self.assertEqual(self.score(DEMO, str(self.file), stdin=None)["context"], 512)
        small = self.score(DEMO, str(self.file), "--set", "context=96")
        self.assertEqual(small["context"], 96)
        wide = self.score(DEMO, str(self.file), "--context", "128", "--set", "context=64", "--set", "kv_cache.max_tokens=64")
        self.assertEqual(wide["context"], 128, "--context wins over the config's")

    def test_the_report_for_people(self):
        told = program("perplexity", DEMO, str(self.file), "--context", "64", "--windows", "2").stdout
        self.assertRegex(told, r"^perplexity \d+\.\d{4} \+- \d+\.\d{4} over 62 tokens of .*text\.txt\n")
        self.assertIn("windows         2 of 64 tokens, the second half of each counted\n", told)
        self.assertRegex(told, r"bits per token  \d+\.\d{4}\n  bits per byte   \d+\.\d{4}\n")

    def bad(self, code, words, *args, stdin=""):
        done = program("perplexity", *args, stdin=stdin)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("dovetail: error: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_bad_input_gets_one_clear_error(self):
        text = str(self.file)
        empty = self.folder / "empty.txt"
        empty.write_text("")
        short = self.folder / "short.txt"
        short.write_text("Only a few words.")
        self.bad(2, ["empty.txt", "the text is empty"], DEMO, str(empty))
        self.bad(2, ["standard input", "the text is empty"], DEMO)
        self.bad(2, ["short.txt", "tokens", "512", "--context"], DEMO, str(short))
        self.bad(2, ["tokens", "64", "--context"], DEMO, "--context", "64", "--stride", "8", stdin="Only a few words.")
        self.bad(2, ["context is 4096", "at most 1024"], DEMO, text, "--context", "4096")
        self.bad(2, ["--stride is 100", "64"], DEMO, text, "--context", "64", "--stride", "100")
        self.bad(2, ["--context"], DEMO, text, "--context", "1")
        self.bad(2, ["--stride"], DEMO, text, "--stride", "0")
        self.bad(3, ["gone.txt"], DEMO, str(self.folder / "gone.txt"))
        self.bad(3, ["is a folder"], DEMO, str(self.folder))
        self.bad(3, ["gone.yaml"], "gone.yaml", text)
        self.bad(2, ["no tokenizer", "--ids"], GOLDEN, text)
        self.bad(2, ["--ids has 160", "160"], GOLDEN, "--ids", "1,2,160,3,4", "--context", "4")
        self.bad(2, ["--ids"], GOLDEN, text, "--ids", "1,2,3,4,5")
        self.bad(2, ["CONFIG"])

    def test_logits_that_are_no_numbers_are_an_error(self):
        model = self.folder / "broken"
        shutil.copytree(GOLDEN, model)
        weights = model / "model.safetensors"
        data = bytearray(weights.read_bytes())
        (n,) = struct.unpack_from("<Q", data)
        begin, _ = json.loads(data[8:8 + n])["model.norm.weight"]["data_offsets"]
        struct.pack_into("<f", data, 8 + n + begin, math.nan)
        weights.write_bytes(data)
        self.bad(1, ["token 3 of the text", "not finite"], str(model), "--ids", "1,2,3,4,5", "--context", "4")


if __name__ == "__main__":
    unittest.main(verbosity=2)
