"""dovetail tokenize and train-tokenizer, as a program or a person calls them.

python3 tokenize_test.py DOVETAIL
"""
import json
import lzma
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = ROOT / "tests/data"
DOVETAIL = sys.argv.pop(1)


def dovetail(*args, stdin=""):
    return subprocess.run([DOVETAIL, *map(str, args)], input=stdin.encode(), capture_output=True, timeout=240)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


class Qwen3Tokenizer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        packed = lzma.open(DATA / "qwen3-tokenizer/tokenizer.json.xz").read()
        (pathlib.Path(cls.folder.name) / "tokenizer.json").write_bytes(packed)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def jsonl(self, rows, *args):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        done = dovetail("tokenize", "--tokenizer", self.folder.name, "--jsonl", *args, stdin=text)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def test_every_text_of_the_vectors_gives_its_ids(self):
        cases = lines(DATA / "tokenizer/qwen3.jsonl")
        got = self.jsonl([{"text": c["text"], "special": True} for c in cases])
        self.assertEqual(len(got), len(cases))
        for case, row in zip(cases, got):
            self.assertEqual(row["ids"], case["ids"], case["text"][:80])

    def test_every_list_of_ids_gives_its_text(self):
        cases = lines(DATA / "tokenizer/qwen3-decode.jsonl")
        rows = [{"ids": c["ids"], "skip_special": c["skip_special_tokens"]} for c in cases]
        got = self.jsonl(rows, "--decode")
        self.assertEqual([r["text"] for r in got], [c["text"] for c in cases])

    def ids(self, texts, **fields):
        return [row["ids"] for row in self.jsonl([{"text": text, **fields} for text in texts])]

    def test_merges_do_not_cross_the_split(self):  # B001
        self.assertEqual(self.ids(["->", "(x):\n"]), [[405], [2075, 982]])

    def test_added_tokens_are_cut_out_before_the_split(self):  # B002
        texts = ["X.<|im_end|>", "a.<|im_end|>\n", "a</think>b", '<tool_call>\n{"name": "f"}\n</tool_call>', "<think>\n\n</think>\n\n"]
        self.assertEqual(self.ids(texts, special=True), [[55, 13, 151645], [64, 13, 151645, 198], [64, 151668, 65],
                         [151657, 198, 4913, 606, 788, 330, 69, 16707, 151658], [151667, 271, 151668, 271]])

    def test_marks_are_composed(self):  # B004
        texts = ["e\u0301", "cafe\u0301", "\u212b", "\u2126", "\u1100\u1161"]
        self.assertEqual(self.ids(texts), [[963], [924, 58858], [144044], [144572], [19969]])

    def test_ids_give_whole_characters(self):  # B007, B008
        cases = {(32, 220, 99244, 370): "A \u4e16ab", (134088, 144596, 136999): "\uc0bc\uacb9\uc0b4", (145468, 58560, 2010, 74, 963): "\u010f\u00e1belsk\u00e9",
                 (9707, 26525, 232): "Hello \U0001f60a", (419, 374, 11162, 99, 247, 13, 10821): " this is \U0001f999.cpp",
                 (146440, 378, 235, 149921, 30543): "\U0001f636\u200d\U0001f32b\ufe0f", (9707, 26525): "Hello \ufffd"}
        got = self.jsonl([{"ids": list(ids)} for ids in cases], "--decode")
        self.assertEqual([row["text"] for row in got], list(cases.values()))

    def test_escapes_are_undone_once_and_nul_cuts_nothing(self):  # B010, B011
        cases = {"a\\nb": [64, 1699, 65], "a\nb": [64, 198, 65], "12345": [16, 17, 18, 19, 20],
                 "1,234.5": [16, 11, 17, 18, 19, 13, 20], "can't": [4814, 944], "CAN'T": [41955, 17323],
                 "I'LL we'Re": [40, 6, 4086, 582, 49427], "don\u2019t": [15007, 1405],
                 "a\u00a0b": [64, 4102, 65], "\u3000": [22441], "\ufeffhi": [3225, 6023], "\ufffd": [5691],
                 "a\0b": [64, 188, 65], "\u00bd": [26062], "x\u00b2": [87, 29456], "": [],
                 "\u0928\u092e\u0938\u094d\u0924\u0947": [60096, 87244, 78368, 30484, 97, 34370]}
        got = self.jsonl([{"text": text} for text in cases])
        self.assertEqual([r["ids"] for r in got], list(cases.values()))

    def test_a_text_on_the_command_line_is_taken_as_it_is(self):  # B010
        done = dovetail("tokenize", "--tokenizer", self.folder.name, "--json", "a\\nb")
        self.assertEqual([t["id"] for t in json.loads(done.stdout)], [64, 1699, 65])

    def test_special_tokens_are_plain_text_unless_asked_for(self):  # B005
        plain, special = self.jsonl([{"text": "<|im_end|>"}, {"text": "<|im_end|>", "special": True}])
        self.assertEqual((plain["ids"], special["ids"]), ([27, 91, 318, 6213, 91, 29], [151645]))
        for option, ids in (([], plain["ids"]), (["--special"], special["ids"])):
            done = dovetail("tokenize", "--tokenizer", self.folder.name, "--json", "<|im_end|>", *option)
            self.assertEqual([t["id"] for t in json.loads(done.stdout)], ids)
        self.assertEqual(self.jsonl([{"ids": [151657, 198, 151658, 151645], "skip_special": True}], "--decode"),  # B013
                         [{"text": "<tool_call>\n</tool_call>"}])

    def test_a_wrong_line_is_named(self):
        for bad in ['{"text": 5}', '{"ids": [1]}', '{"text": ', '[]', '{"text": "a", "special": 1}']:
            done = dovetail("tokenize", "--tokenizer", self.folder.name, "--jsonl", stdin='{"text": "a"}\n' + bad + "\n")
            self.assertEqual(done.returncode, 2, bad)
            self.assertIn("line 2 of standard input", done.stderr.decode(), bad)
            self.assertEqual(done.stdout.decode().count("\n"), 1)  # what came before was answered


class Training(unittest.TestCase):
    def test_the_novel_gives_the_demo_tokenizer_again(self):
        with tempfile.TemporaryDirectory() as folder:
            done = dovetail("train-tokenizer", DATA / "demo/austen-pride_and_prejudice.txt", "-o", folder,
                            "--vocab-size", 4096, "--min-frequency", 2, "--special", "<|endoftext|>")
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            got = json.loads((pathlib.Path(folder) / "tokenizer.json").read_text())
            want = json.loads((ROOT / "configs/demo/tokenizer.json").read_text())
            self.assertEqual(got["model"]["vocab"], want["model"]["vocab"])
            pairs = lambda merges: [m if isinstance(m, list) else m.split(" ") for m in merges]
            self.assertEqual(pairs(got["model"]["merges"]), pairs(want["model"]["merges"]))
            self.assertEqual([t["content"] for t in got["added_tokens"]], ["<|endoftext|>"])

    def test_a_missing_file_leaves_no_output(self):
        with tempfile.TemporaryDirectory() as folder:
            done = dovetail("train-tokenizer", folder + "/absent.txt", "-o", folder, "--vocab-size", 300)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


if __name__ == "__main__":
    unittest.main()
