#!/usr/bin/env python3
"""tools/bench/weight_formats.py: its arithmetic, its rows and bits, its page and its errors.

Usage: weight_formats_test.py DOVETAIL
"""
import contextlib
import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "bench"))
import weight_formats  # noqa: E402

DOVETAIL = None
CONFIG = str(ROOT / "configs" / "demo.yaml")
CHECKPOINT = ROOT / "configs" / "demo"
N_WEIGHTS = 5181440
TEXT = "Mr. Darcy was not a man to be easily persuaded, and Elizabeth knew it."


class Arithmetic(unittest.TestCase):
    def test_windows_count_by_their_positions(self):
        sums = weight_formats.Sums()
        for n, same, kl, nll in ((8, 6, 0.5, 2.0), (3, 3, 0.25, 5.0)):
            sums.add({"top": {"positions": n, "same": same}, "kl": {"mean": kl}, "nll": {"tokens": n - 1, "a": 99.0, "b": nll}})
        got = sums.result()
        self.assertEqual((got["positions"], got["same_top"]), (11, 9 / 11))
        self.assertAlmostEqual(got["kl"], (8 * 0.5 + 3 * 0.25) / 11, 12)
        self.assertAlmostEqual(got["perplexity"], math.exp((7 * 2.0 + 2 * 5.0) / 9), 12)


class Page(unittest.TestCase):
    RESULT = {"as stored": {"bits": 16.0, "bytes": 2**20, "kl": 0.0, "same_top": 1.0, "perplexity": 30.0, "positions": 7}}

    def section(self):
        return weight_formats.section("## Cost", self.RESULT, "a command")

    def test_a_section_replaces_the_old_one_up_to_its_table(self):
        page = "# Page\n\n## Cost\n\nOld.\n\n| a |\n|---|\n| 1 |\n\nWritten by hand.\n\n## More\n\n| b |\n"
        got = weight_formats.with_section(page, "## Cost", self.section())
        self.assertEqual(got, f"# Page\n\n{self.section()}\nWritten by hand.\n\n## More\n\n| b |\n")
        self.assertEqual(weight_formats.with_section(got, "## Cost", self.section()), got)

    def test_a_new_section_is_the_last(self):
        self.assertEqual(weight_formats.with_section("# Page\n", "## Cost", self.section()), f"# Page\n\n{self.section()}")

    def test_a_section_without_a_table_keeps_the_next_one(self):
        got = weight_formats.with_section("# Page\n\n## Cost\n\nOld.\n\n## More\n\n| b |\n", "## Cost", self.section())
        self.assertTrue(got.endswith("## More\n\n| b |\n"), got)


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT, encoding="utf-8")

    def checkpoint(self, name, change):
        """A copy of the demo model; change(bytearray) alters the file of weights."""
        folder = self.folder / name
        folder.mkdir()
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(CHECKPOINT / file, folder)
        data = bytearray((CHECKPOINT / "model.safetensors").read_bytes())
        change(data)
        (folder / "model.safetensors").write_bytes(data)
        return str(folder)

    def run_tool(self, *words):
        """(exit message or None, standard output)."""
        out = io.StringIO()
        argv, sys.argv = sys.argv, ["weight_formats.py", DOVETAIL, CONFIG, str(self.text), *words]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                weight_formats.main()
        except SystemExit as e:
            return e.code, out.getvalue()
        finally:
            sys.argv = argv
        return None, out.getvalue()

    def measured(self, *words):
        failure, out = self.run_tool(*words, "--json")
        self.assertIsNone(failure)
        return json.loads(out)

    def test_a_checkpoint_beside_is_compared_with_the_weights_as_stored(self):
        def coarser(data):  # the last weights lose three bits of their mantissa
            for i in range(len(data) - 2**20, len(data), 2):
                data[i] &= 0xF8

        same = self.checkpoint("same", lambda data: None)
        got = self.measured("--formats", "int8", "--beside", "same", "16", same,
                            "--beside", "coarser", "13.5", self.checkpoint("coarser", coarser))
        self.assertEqual(list(got), ["as stored", "`int8`", "same", "coarser"])
        self.assertLess(abs(got["same"]["kl"]), 1e-12)
        self.assertEqual(got["same"]["perplexity"], got["as stored"]["perplexity"])
        self.assertEqual(got["same"]["same_top"], 1)
        self.assertGreater(got["coarser"]["kl"], 1e-7)
        self.assertEqual((got["coarser"]["bits"], got["coarser"]["bytes"]), (13.5, 13.5 * N_WEIGHTS / 8))
        # 8.25 bits and a float of each row of 256 or 640; vectors are few
        self.assertAlmostEqual(got["`int8`"]["bits"], 8.37, delta=0.02)
        self.assertAlmostEqual(got["as stored"]["bits"], 16, delta=0.02)

    def test_the_page_gives_the_command_without_this_machine_s_folders(self):
        page = self.folder / "page.md"
        failure, out = self.run_tool("--formats", "--beside", "Q 4", "4.5", self.checkpoint("as-q4", lambda data: None),
                                     "--set", "backend.threads=1", "--markdown", str(page), "--section", "Others")
        self.assertIsNone(failure)
        text = page.read_text(encoding="utf-8")
        self.assertIn("## Others\n", text)
        self.assertIn(" text.txt --window 256 --windows 8 --formats --set backend.threads=1 --beside 'Q 4' 4.5 as-q4`", text)
        self.assertNotIn(str(self.folder), text)
        self.assertIn("| Q 4 | 4.50 | 2.8 MiB | 0.00000 | 100.0 % |", text)
        self.assertTrue(text.endswith(out))

    def test_wrong_rows_are_named(self):
        other = str(self.folder / "other")
        subprocess.run([sys.executable, ROOT / "tools" / "make_checkpoint.py", other, "--hidden-size", "64", "--num-hidden-layers", "2",
                        "--vocab-size", "512", "--tokenizer", "none"], check=True, capture_output=True)
        for words, expected in ((("Q", "many", other), "--beside Q: bits a weight are 'many', expected a number"),
                                (("Q", "0", other), "--beside Q: 0 bits a weight, expected more than 0 and at most 64"),
                                (("Q", "nan", other), "--beside Q: nan bits a weight, expected more than 0"),
                                (("Q", "4", str(self.folder)), "is no checkpoint's folder, it has no config.json"),
                                (("Q", "4", other), rf"Q has \d+ weights, expected {N_WEIGHTS} as in .*demo.yaml")):
            failure, _ = self.run_tool("--beside", *words)
            self.assertRegex(failure, expected)

    def test_a_format_that_is_none_ends_with_the_program_s_exit_code(self):
        failure, out = self.run_tool("--formats", "int5")
        self.assertRegex(failure, "inspect` ended with exit code 4")
        self.assertEqual(out, "")


if __name__ == "__main__":
    DOVETAIL = sys.argv.pop(1)
    unittest.main()
