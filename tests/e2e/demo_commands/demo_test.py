"""dovetail demo with the embedded model. Speeds are printed, not judged: python3 demo_test.py DOVETAIL"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

DOVETAIL = sys.argv.pop(1)


def demo(*args):
    done = subprocess.run([DOVETAIL, "demo", *args], capture_output=True, stdin=subprocess.DEVNULL, timeout=100)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Demo(unittest.TestCase):
    def json(self, *args):
        code, out, err = demo(*args, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_the_pieces_of_a_text_join_to_the_text(self):
        self.assertEqual("".join(t["piece"] for t in self.json("tokens", "Elizabeth smiled")), "Elizabeth smiled")

    def test_the_next_tokens_come_likeliest_first(self):
        p = [t["probability"] for t in self.json("next", "Mr.")]
        self.assertEqual(len(p), 5)
        self.assertEqual(p, sorted(p, reverse=True))
        self.assertTrue(0 < sum(p) <= 1)

    def test_the_cache_changes_no_token_and_the_chart_is_xml(self):
        with tempfile.TemporaryDirectory() as folder:
            svg = pathlib.Path(folder) / "cache.svg"
            got = self.json("cache", "-n", "12", "--svg", str(svg))
            self.assertEqual([len(got["cached_s"]), len(got["uncached_s"])], [12, 12])
            self.assertEqual(len(xml.dom.minidom.parse(str(svg)).getElementsByTagName("polyline")), 2)

    def test_the_fast_loop_gives_the_plain_loops_tokens_on_both_backends(self):
        for backend in ("cpu", "reference"):
            got = self.json("fast", "-n", "12", "--repeats", "1", "--set", "backend.plugin=" + backend)
            self.assertGreater(got["ratio"], 0)

    def test_more_tokens_than_the_context_holds_are_refused(self):
        code, _, err = demo("cache", "-n", "5000")
        self.assertEqual(code, 2)
        self.assertIn("context holds 1024", err)


if __name__ == "__main__":
    unittest.main()
