"""A test of the program: in a folder of its own, with a cache of its own, and each fault one line."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest


class ProgramCase(unittest.TestCase):
    dovetail = None  # the program's path: each class of tests sets it

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.env = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}

    def program(self, *args, **options):
        return subprocess.run([os.path.abspath(self.dovetail), *map(str, args)], capture_output=True, stdin=subprocess.DEVNULL,
                              env=self.env, cwd=self.folder, timeout=200, **options)

    def good(self, *args, **options):
        done = self.program(*args, **options)
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
