"""`dovetail pull` against a hub on this machine that fails in every way a hub and a network do: files are whole and
right or not there, what came is not fetched twice, the token goes to the hub alone, each fault is one clear line.
usage: pull_test.py DOVETAIL
"""
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import fake_hub
from fake_hub import Fault, Reply

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOVETAIL = os.path.abspath(sys.argv.pop(1))
CERTIFICATE = pathlib.Path(__file__).with_name("localhost.pem")
DEMO = ROOT / "configs" / "demo"
FAILED, USAGE, FILE, UNSUPPORTED, INTERRUPTED = 1, 2, 3, 4, 130
MODEL = "Org/Tiny-1.5"
MIB = 1 << 20


def noise(seed, n):
    return random.Random(seed).randbytes(n)


def small_model(seed=1):
    shards = {f"model-0000{i}-of-00003.safetensors": noise(10 * seed + i, 100_000 + i) for i in (1, 2, 3)}
    index = {"metadata": {}, "weight_map": {f"w{i}": name for i, name in enumerate(shards)}}
    return {"config.json": b'{"model_type": "x", "seed": %d}' % seed, "tokenizer.json": noise(seed, 5000).hex().encode(), "chat_template.jinja": b"{{ messages }}",
            "model.safetensors.index.json": json.dumps(index).encode(), **shards}


OTHERS = {"README.md": b"# read", ".gitattributes": b"*.safetensors filter=lfs", "pytorch_model.bin": b"pickle", "training_args.bin": b"pickle",
          "consolidated.safetensors": b"twice", "onnx/model.onnx": b"o", "original/tokenizer.model": b"t", "figures/a.png": b"p", "LICENSE": b"terms"}


class Case(unittest.TestCase):
    certificates = (None, None)

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.hub = fake_hub.Hub(*self.certificates)
        self.addCleanup(self.hub.close)
        self.env = {"HOME": str(self.folder / "home"), "HF_ENDPOINT": self.hub.endpoint, "XDG_CACHE_HOME": str(self.folder / "cache"),
                    "PATH": os.environ["PATH"], **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}

    def command(self, *args):
        return [DOVETAIL, "pull", *map(str, args)]

    def pull(self, *args, env=None, **options):
        done = subprocess.run(self.command(*args), capture_output=True, stdin=subprocess.DEVNULL, cwd=self.folder, env={**self.env, **(env or {})}, timeout=60,
                              text=True, **options)
        done.stderr = re.sub(r"(?m)^(pulling|checking [^:]*): \d+.*\n", "", done.stderr)  # the progress that a slow machine sees
        return done

    def start(self, *args, **env):
        return subprocess.Popen(self.command(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, env={**self.env, **env}, text=True)

    def good(self, *args, **options):
        done = self.pull(*args, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def bad(self, code, *args, says=(), **options):
        """It fails in one line, after warnings at most."""
        done = self.pull(*args, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        *before, last = done.stderr.splitlines()
        self.assertTrue(last.startswith("dovetail: error: "), done.stderr)
        for line in before:
            self.assertTrue(line.startswith("warning: pull: "), done.stderr)
        for words in (says,) if isinstance(says, str) else says:
            self.assertIn(words, last)
        return done

    def files(self, where="models/Tiny-1.5"):
        """What is there but the record, hidden files too."""
        base = self.folder / where
        return {str(p.relative_to(base)): p.read_bytes() for p in base.rglob("*") if p.is_file() and p.name != ".pull.json"} if base.exists() else {}

    def wait_for(self, what):
        deadline = time.monotonic() + 30
        while not what():
            self.assertLess(time.monotonic(), deadline, "waited in vain")
            time.sleep(0.01)

    def downloads(self, name=""):
        return [r for r in self.hub.log if r["server"] == "cdn" or "/resolve/" in r["path"] if name in r["path"]]


class WhatIsPulled(Case):
    def test_a_sharded_model_without_what_nobody_reads(self):
        model = small_model()
        sha = self.hub.add(MODEL, {**OTHERS, **model})
        self.hub.add(MODEL, small_model(2), revision="later")
        done = self.good(MODEL)
        self.assertEqual(self.files(), {**model, "LICENSE": b"terms"})
        self.assertIn(f"models/Tiny-1.5: {MODEL}, commit {sha[:12]}, 8 files", done.stdout)
        self.assertEqual(done.stderr, 'next: dovetail run models/Tiny-1.5 "Why is the sky blue?"\n')
        self.assertTrue(all(sha in r["path"] for r in self.downloads()), "all files are of the commit that was listed")

    def test_a_whole_folder_is_known_by_one_request(self):
        self.hub.add(MODEL, small_model())
        self.good(MODEL)
        self.hub.log.clear()
        done = self.good(MODEL)
        self.assertIn("all there", done.stdout)
        self.assertEqual([r["path"] for r in self.hub.log], [f"/api/models/{MODEL}/revision/main?blobs=true"])

    def test_a_pulled_model_runs(self):
        names = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
        self.hub.add(MODEL, {n: (DEMO / n).read_bytes() for n in names} | {"model.safetensors.index.json": b"not asked for"})
        done = self.good(MODEL, "-o", "my models/demo", "--json")
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual((report["model"], report["folder"], report["whole"], report["bytes_missing"]), (MODEL, "my models/demo", True, 0))
        self.assertEqual([f["file"] for f in report["files"]][-1], "model.safetensors")
        self.assertEqual(report["files"][-1]["sha256"], hashlib.sha256((DEMO / names[2]).read_bytes()).hexdigest())
        self.assertEqual(report["bytes_fetched"], sum((DEMO / n).stat().st_size for n in names))
        run = subprocess.run([DOVETAIL, "run", "my models/demo", "It was", "-n", "8", "--seed", "1", "--json"], capture_output=True, cwd=self.folder, env=self.env)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(json.loads(run.stdout)["text"])
        self.assertIn("run 'my models/demo' ", self.good(MODEL, "-o", "my models/demo").stderr)

    def test_patterns_and_names_choose(self):
        model = small_model()
        self.hub.add(MODEL, {**OTHERS, **model})

        def pulled(*args):
            done = self.good(MODEL, "-o", "out", "--dry-run", "--json", *args)
            return {f["file"] for f in json.loads(done.stdout)["files"]}

        self.assertEqual(pulled("--include", "*.json"), {n for n in model if n.endswith(".json")})
        self.assertEqual(pulled("--include", "onnx/", "--include", "*.png"), {"onnx/model.onnx", "figures/a.png"})
        self.assertEqual(pulled("--exclude", "*.safetensors", "--exclude", "LIC*"), {n for n in model if not n.endswith(".safetensors")})
        self.assertEqual(pulled("README.md", "figures/a.png"), {"README.md", "figures/a.png"})
        self.assertEqual(pulled("--include", "[!c]*.jinja", "--include", "LICENS?"), {"LICENSE"})
        self.assertNotIn(".gitattributes", pulled("--include", "*"))
        self.assertEqual(self.files("out"), {})
        self.good(MODEL, "onnx/model.onnx", "-o", "out")
        self.assertEqual(self.files("out"), {"onnx/model.onnx": b"o"})
        self.bad(USAGE, MODEL, "REDME.md", says='has no file "REDME.md", did you mean "README.md"?')
        self.bad(USAGE, MODEL, "--include", "*.nothing", says="nothing is left to pull of its files: README.md")

    def test_pickles_are_never_pulled(self):
        self.hub.add(MODEL, {**OTHERS, **small_model()})
        done = self.good(MODEL, "--include", "*")
        self.assertIn("left out, since they can run code when they are loaded: pytorch_model.bin, training_args.bin", done.stderr)
        self.assertFalse([n for n in self.files() if n.endswith(".bin")])
        self.bad(USAGE, MODEL, "pytorch_model.bin", says="can run code")
        self.bad(USAGE, MODEL, "--include", "*.bin", says="pickles are not pulled")
        self.hub.add("Org/Old", {"config.json": b"{}", "pytorch_model.bin": b"pickle"})
        self.bad(UNSUPPORTED, "Org/Old", says=("has no weights that Dovetail reads", "pytorch_model.bin (6 bytes)", "--include"))
        index = json.dumps({"weight_map": {"w": "pytorch_model.bin"}}).encode()
        self.hub.add("Org/Trap", {"model.safetensors.index.json": index, "pytorch_model.bin": b"pickle"})
        self.bad(FILE, "Org/Trap", says='tensor "w" is in "pytorch_model.bin", expected a .safetensors file')
        self.assertFalse((self.folder / "models" / "Trap").exists())

    def test_gguf_models_are_named(self):
        parts = {f"big-Q8_0-0000{i}-of-00002.gguf": noise(i, 1000) for i in (1, 2)}
        files = {"README.md": b"r", "x-Q4_0.gguf": b"four", **parts}
        self.hub.add("Org/X-GGUF", files)
        self.bad(USAGE, "Org/X-GGUF", says=("has 2 GGUF models", "dovetail pull Org/X-GGUF x-Q4_0.gguf", "x-Q4_0.gguf (4 bytes)", "big-Q8_0-00001-of-00002.gguf"))
        done = self.good("Org/X-GGUF", "x-Q4_0.gguf")
        self.assertEqual(self.files("models/X-GGUF"), {"x-Q4_0.gguf": b"four"})
        self.assertIn("dovetail run models/X-GGUF/x-Q4_0.gguf ", done.stderr)
        self.good("Org/X-GGUF", "big-Q8_0-00002-of-00002.gguf")
        self.assertEqual(self.files("models/X-GGUF"), {"x-Q4_0.gguf": b"four", **parts})
        self.hub.add("Org/One", {"README.md": b"r", **parts})
        self.good("Org/One")
        self.assertEqual(self.files("models/One"), parts)

    def test_names_that_lead_out_are_refused(self):
        evil = ("../evil.txt", "/tmp/dovetail-evil.txt", "a/../../evil.txt", "a\\evil.txt", "./evil.txt", "a//evil.txt", "a/.pull.json", ".pull.json", "evil/")
        for name in evil:
            with self.subTest(name):
                self.hub.add("Org/Evil", {"config.json": b"{}", name: b"evil"})
                self.bad(FILE, "Org/Evil", name, "-o", "deep/out", says="Org/Evil: ")
                index = json.dumps({"weight_map": {"w": "../evil.safetensors"}}).encode()
                self.hub.add("Org/Evil", {"model.safetensors.index.json": index, "../evil.safetensors": b"evil"})
                self.bad(FILE, "Org/Evil", "-o", "deep/out", says="leads outside")
        self.assertEqual([p for p in self.folder.rglob("*") if p.is_file()], [])
        for wrong in ("../x", "a/b/c", "a b/c", "-x/y", "a/..", "https://example.org/a/b"):
            done = self.pull("--", wrong)
            self.assertEqual(done.returncode, USAGE)
            self.assertIn("expected ORG/NAME", done.stderr)
        self.assertEqual(len([r for r in self.hub.log if "Evil" not in r["path"]]), 0)

    def test_revisions_and_the_page_of_a_model(self):
        self.hub.add(MODEL, small_model())
        sha = self.hub.add(MODEL, small_model(7), revision="refs/pr/1")
        self.good(MODEL, "--revision", "refs/pr/1", "-o", "a")
        self.good(f"{self.hub.endpoint}/{MODEL}/", "--revision", sha, "-o", "b")
        self.assertEqual(self.files("a"), small_model(7))
        self.assertEqual(self.files("b"), small_model(7))
        self.bad(USAGE, MODEL, "--revision", "nope", says=("at nope", "has no such revision"))

    def test_the_folder_is_that_of_the_configs(self):
        self.hub.add(MODEL, small_model())
        self.good(MODEL, env={"DOVETAIL_MODELS": str(self.folder / "elsewhere")})
        self.assertEqual(self.files("elsewhere/Tiny-1.5"), small_model())

    def test_a_model_that_has_moved(self):
        self.hub.add(MODEL, small_model())
        self.hub.moved = {"Old/Name": MODEL}
        self.good("Old/Name")
        self.assertEqual(self.files("models/Name"), small_model())

    def test_a_hub_that_lists_neither_sizes_nor_checksums(self):
        self.hub.listing_has_blobs = False
        self.hub.add(MODEL, small_model())
        self.hub.fail("model-00002-of-00003.safetensors", Fault(cut=5000), Fault(flip=60_000))
        done = self.good(MODEL)
        self.assertEqual(self.files(), small_model())
        self.assertIn("has SHA-256", done.stderr)
        self.hub.log.clear()
        self.assertIn("all there", self.good(MODEL).stdout)
        self.hub.fail("config.json", Fault(etag="W-opaque"))
        done = self.good(MODEL, "config.json", "-o", "other")
        self.assertIn("the hub gives no checksum, the size alone was checked: config.json", done.stderr)


class Faults(Case):
    NAME = "model.safetensors"
    DATA = noise(5, 3 * MIB + 17)

    def setUp(self):
        super().setUp()
        self.model = {"config.json": b'{"a": 1}', self.NAME: self.DATA}
        self.hub.add(MODEL, self.model)

    def received(self):
        return sum(r["sent"] for r in self.downloads(self.NAME) if r["server"] == "cdn")

    def arrives(self, *faults, name=NAME, **options):
        self.hub.fail(name, *faults)
        done = self.good(MODEL, **options)
        self.assertEqual(self.files(), self.model)
        return done

    def test_a_body_that_ends_early_is_resumed(self):
        for fault in (Fault(cut=MIB), Fault(cut=MIB, reset=True), Fault(cut=MIB, no_length=True)):
            with self.subTest(str(vars(fault))):
                self.hub.log.clear()
                done = self.arrives(fault)
                first, second = (r for r in self.downloads(self.NAME) if r["server"] == "cdn")
                self.assertNotIn("range", first["headers"])
                self.assertRegex(second["headers"]["range"], r"^bytes=\d+-$")
                if not fault.reset:  # of which some bytes may be lost
                    self.assertEqual(second["headers"]["range"], f"bytes={MIB}-")
                    self.assertEqual(self.received(), len(self.DATA))
                self.assertEqual(second["headers"]["if-range"], f'"{hashlib.md5(self.DATA).hexdigest()}"')
                self.assertIn("; again in 0.5 s (1 of 5)", done.stderr)
                self.assertNotIn("Signature", done.stderr)
                for p in (self.folder / "models" / "Tiny-1.5").iterdir():
                    p.unlink()

    def test_a_server_that_says_nothing_more_is_left(self):
        done = self.arrives(Fault(cut=MIB, stall=True), env={"HF_HUB_DOWNLOAD_TIMEOUT": "1"})
        self.assertIn("again in", done.stderr)
        self.assertEqual(self.received(), len(self.DATA))

    def test_a_range_that_is_ignored_or_mistaken_starts_again(self):
        for second in (Fault(ignore_range=True), Fault(shift=10), Fault(gzipped=True), Fault(status=416), Fault(etag="another")):
            with self.subTest(str(vars(second))):
                self.arrives(Fault(cut=MIB), second)
                for p in (self.folder / "models" / "Tiny-1.5").iterdir():
                    p.unlink()

    def test_a_compressed_body_is_taken_apart(self):
        self.arrives(Fault(gzipped=True))
        self.assertEqual(self.downloads(self.NAME)[-1]["headers"]["accept-encoding"], "identity")

    def test_errors_that_pass(self):
        done = self.arrives(Fault(status=503), Fault(status=429, headers={"Retry-After": "1"}), Fault(status=500))
        self.assertIn("HTTP status 503; again in 0.5 s (1 of 5)", done.stderr)
        self.assertIn("HTTP status 429; with a token in HF_TOKEN it takes more; again in 1.0 s (2 of 5)", done.stderr)
        self.assertIn("HTTP status 500; again in 2.0 s (3 of 5)", done.stderr)

    def test_errors_that_do_not(self):
        self.hub.fail(self.NAME, Fault(status=503), Fault(status=503))
        done = self.bad(FILE, MODEL, "--retries", 1, says=("HTTP status 503", "given up after 2 tries", "what came is kept"))
        self.assertEqual(done.stderr.count("\n"), 2)
        for status, headers, words in ((429, {"Retry-After": "3600"}, "it asks to come back in 3600 s"), (404, {"X-Error-Code": "EntryNotFound"}, "is not there any more"),
                                       (403, {"X-Error-Message": "bad\x1b[2J day"}, "refuses it"), (451, {}, "HTTP status 451")):
            self.hub.fail(self.NAME, Fault(status=status, headers=headers))
            said = self.bad(FILE if status in (429, 451) else USAGE, MODEL, says=words).stderr
            self.assertEqual(said.count("\n"), 1)
            self.assertNotIn("\x1b", said)
        self.assertNotIn(self.NAME, self.files())

    def test_the_listing_too_is_asked_for_again(self):
        self.hub.api[MODEL] = [Reply(502), None]
        self.assertIn("HTTP status 502; again in", self.good(MODEL).stderr)
        for body in (b"<html>Welcome to the Hotel</html>", b"{}", b'{"sha": "x", "siblings": []}', b'{"sha": "' + b"0" * 40 + b'", "siblings": [{}]}'):
            self.hub.api[MODEL] = [Reply(200, {}, body)]
            self.bad(FILE, MODEL, says="the listing of " + MODEL)

    def test_wrong_bytes_are_fetched_once_more_and_never_shown(self):
        done = self.arrives(Fault(flip=2 * MIB))
        self.assertRegex(done.stderr, r"model.safetensors: has SHA-256 [0-9a-f]{64}, expected [0-9a-f]{64}; fetched once more")
        self.hub.fail("config.json", Fault(flip=3))
        self.assertIn("config.json: has git SHA-1", self.good(MODEL, "-o", "second").stderr)
        self.assertEqual(self.files("second"), self.model)
        other = ("-o", "other")
        for faults in ((Fault(flip=9), Fault(flip=9)), (Fault(add=b"x"), Fault(add=b"x")), (Fault(cut=MIB), Fault(flip=MIB + 1), Fault(flip=1))):
            self.hub.fail(self.NAME, *faults)
            self.bad(FILE, MODEL, *other, says=(f"other/{self.NAME}: has ", ", twice; nothing of it is kept"))
            self.assertFalse((self.folder / "other" / self.NAME).exists())
            self.assertEqual([n for n in self.files("other") if ".part-" in n], [])
        self.hub.fail("config.json", Fault(flip=0), Fault(flip=0))
        self.bad(FILE, MODEL, "-o", "third", says="config.json: has git SHA-1")
        self.hub.fail(self.NAME)
        self.good(MODEL, *other)
        self.assertEqual(self.files("other"), self.model)

    def test_a_stopped_pull_goes_on_where_it_was(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how):
                out = f"out-{how}"
                self.hub.log.clear()
                self.hub.fail(self.NAME, Fault(cut=2 * MIB, stall=True))
                run = self.start(MODEL, "-o", out)
                self.wait_for(lambda: any(".part-" in n and len(d) == 2 * MIB for n, d in self.files(out).items()))
                run.send_signal(how)
                _, said = run.communicate(timeout=30)
                self.assertFalse((self.folder / out / self.NAME).exists())
                if how != signal.SIGKILL:
                    self.assertEqual((run.returncode, said), (INTERRUPTED, f"dovetail: error: interrupted; what came is kept in {out}, the same command goes on from there\n"))
                dry = json.loads(self.good(MODEL, "-o", out, "--dry-run", "--json").stdout)
                self.assertEqual((dry["files"][-1]["state"], dry["files"][-1]["bytes_there"], dry["bytes_missing"]), ("begun", 2 * MIB, len(self.DATA) - 2 * MIB))
                report = json.loads(self.good(MODEL, "-o", out, "--json").stdout)
                self.assertEqual(report["bytes_fetched"], len(self.DATA) - 2 * MIB)
                self.assertEqual(self.received(), len(self.DATA))
                self.assertEqual(self.files(out), self.model)

    def test_a_part_of_another_version_is_not_joined(self):
        self.hub.fail(self.NAME, Fault(cut=2 * MIB), Fault(status=404))
        self.bad(USAGE, MODEL)
        self.model = {**self.model, self.NAME: noise(6, len(self.DATA))}
        self.hub.add(MODEL, self.model)
        self.hub.log.clear()
        self.arrives()
        self.assertNotIn("range", self.downloads(self.NAME)[-1]["headers"])

    def test_a_part_that_was_damaged_is_given_up(self):
        self.hub.fail(self.NAME, Fault(cut=2 * MIB), Fault(status=404))
        self.bad(USAGE, MODEL)
        part, = (self.folder / "models" / "Tiny-1.5").glob(".*.part-*")
        part.write_bytes(bytes(2 * MIB))
        self.assertIn("fetched once more", self.arrives().stderr)
        self.assertEqual(part.exists(), False)

    def test_an_empty_file(self):
        self.model["tokenizer_config.json"] = b""
        self.hub.add(MODEL, self.model)
        self.arrives()

    def test_a_disk_that_takes_no_more(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, 2 * MIB))

        self.bad(FILE, MODEL, preexec_fn=limit, restore_signals=False, says=(f"models/Tiny-1.5/{self.NAME}: cannot write: file too large", "what came is kept"))
        self.hub.log.clear()
        self.arrives()
        self.assertLessEqual(self.received(), len(self.DATA) - MIB)

    def test_room_is_checked_before_the_start(self):
        listing = {"sha": "0" * 40, "siblings": [{"rfilename": self.NAME, "size": 1 << 60, "lfs": {"sha256": "0" * 64, "size": 1 << 60}}]}
        self.hub.api[MODEL] = [Reply(200, {}, json.dumps(listing).encode())]
        self.bad(FILE, MODEL, says=("models/Tiny-1.5: 1.0 EiB are to be fetched, but the disk has", "free"))
        self.assertEqual(self.downloads(), [])
        self.assertFalse((self.folder / "models" / "Tiny-1.5").exists())

    def test_two_pulls_at_once_fetch_once(self):
        self.hub.fail(self.NAME, Fault(cut=MIB, stall=True))
        first = self.start(MODEL)
        self.wait_for(lambda: self.received() > 0)
        second = self.start(MODEL)
        self.wait_for(lambda: len(self.hub.requests("/api/")) == 2)
        time.sleep(0.2)
        self.hub.released.set()
        said = [run.communicate(timeout=30) for run in (first, second)]
        self.assertEqual((first.returncode, second.returncode), (0, 0), said)
        self.assertIn("another pull is at work there; waiting for it", said[1][1])
        self.assertIn("all there", said[1][0])
        self.assertEqual(self.received(), len(self.DATA))
        self.assertEqual(self.files(), self.model)

    def test_a_hub_that_is_not_there(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.bad(FILE, MODEL, "--retries", 0, env={"HF_ENDPOINT": f"http://127.0.0.1:{port}"}, says=(MODEL, f"http://127.0.0.1:{port}: "))
        for wrong in ("huggingface.co", "ftp://huggingface.co", "https://a b"):
            self.bad(USAGE, MODEL, env={"HF_ENDPOINT": wrong}, says=("HF_ENDPOINT is", wrong))
        self.bad(USAGE, MODEL, env={"HF_HUB_DOWNLOAD_TIMEOUT": "soon"}, says=("HF_HUB_DOWNLOAD_TIMEOUT", "soon"))


class Access(Case):
    def setUp(self):
        super().setUp()
        self.hub.add(MODEL, small_model())

    def test_the_token_goes_to_the_hub_alone(self):
        self.hub.token = "hf_secret"
        (self.folder / "home/.cache/huggingface").mkdir(parents=True)
        (self.folder / "hf").mkdir()
        (self.folder / "named").write_text(" hf_secret\n")
        (self.folder / "hf/token").write_text("hf_secret")
        (self.folder / "cache/huggingface").mkdir(parents=True)
        (self.folder / "cache/huggingface/token").write_text("hf_secret")
        for i, env in enumerate(({"HF_TOKEN": "hf_secret"}, {"HF_TOKEN_PATH": str(self.folder / "named")}, {"HF_HOME": str(self.folder / "hf")}, {})):
            with self.subTest(env):
                self.hub.log.clear()
                done = self.good(MODEL, "-o", f"out{i}", env=env)
                self.assertEqual({r["headers"].get("authorization") for r in self.hub.log if r["server"] == "hub"}, {"Bearer hf_secret"})
                on_cdn = [r for r in self.hub.log if r["server"] == "cdn"]
                self.assertEqual(len(on_cdn), 3)
                for r in on_cdn:
                    self.assertNotIn("authorization", r["headers"])
                    self.assertNotIn("hf_secret", str(r))
                self.assertNotIn("hf_secret", done.stdout + done.stderr)
        self.bad(USAGE, MODEL, "-o", "none", env={"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, says="give a token in HF_TOKEN")
        self.bad(USAGE, MODEL, env={"HF_TOKEN": "a\r\nX: b"}, says="HF_TOKEN: the token has a blank")

    def test_who_may_not_is_told_why(self):
        self.bad(USAGE, "Org/None", says=("has no such model or file, or it is private", "give a token in HF_TOKEN"))
        self.hub.gated = {MODEL}
        self.bad(USAGE, MODEL, says=("is gated: accept its terms on its page of localhost", "give a token in HF_TOKEN"))
        self.bad(USAGE, MODEL, env={"HF_TOKEN": "hf_a"}, says=("is gated", "as the user of the token"))
        self.hub.token = "hf_secret"
        self.bad(USAGE, MODEL, env={"HF_TOKEN": "hf_wrong"}, says="does not know the token that is given")
        self.bad(USAGE, "Org/None", env={"HF_TOKEN": "hf_secret"}, says="the token given does not open it")
        self.assertFalse((self.folder / "models").exists())

    def test_proxies(self):
        for name, is_used in (("HTTP_PROXY", True), ("http_proxy", True), ("ALL_PROXY", True), ("HTTPS_PROXY", False)):
            with self.subTest(name):
                proxy = fake_hub.Proxy()
                self.addCleanup(proxy.close)
                self.good(MODEL, "-o", name, env={name: proxy.url, "HF_ENDPOINT": self.hub.endpoint.replace("localhost", "127.0.0.1")})
                self.assertEqual(len(proxy.seen), 1 + 8 + 3 if is_used else 0, proxy.seen)
                self.assertEqual(self.files(name), small_model())
        proxy.seen.clear()
        self.good(MODEL, "-o", "none", env={"http_proxy": proxy.url, "no_proxy": "localhost"})
        self.assertEqual(proxy.seen, [])


class Https(Case):
    certificates = (CERTIFICATE, CERTIFICATE)

    def test_certificates(self):
        self.hub.add(MODEL, small_model())
        self.bad(FILE, MODEL, says=("certificate", "ca-certificates", "SSL_CERT_FILE"))
        for i, name in enumerate(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")):
            self.good(MODEL, "-o", f"out{i}", env={name: str(CERTIFICATE)})
            self.assertEqual(self.files(f"out{i}"), small_model())
        self.bad(USAGE, MODEL, env={"SSL_CERT_FILE": "/nowhere"}, says=('SSL_CERT_FILE is "/nowhere"', "certificates"))


class HttpsToHttp(Case):
    certificates = (CERTIFICATE, None)

    def test_a_redirect_may_not_leave_https(self):
        self.hub.add(MODEL, small_model())
        self.bad(FILE, MODEL, "--retries", 0, env={"SSL_CERT_FILE": str(CERTIFICATE)}, says="a redirect from https may not leave it")
        self.assertEqual([r for r in self.hub.log if r["server"] == "cdn"], [])


class Folders(Case):
    def setUp(self):
        super().setUp()
        self.hub.add(MODEL, small_model())

    def path(self, name, folder="models/Tiny-1.5"):
        return self.folder / folder / name

    def test_somebodys_files_are_not_replaced_unless_asked(self):
        self.path("").mkdir(parents=True)
        self.path("config.json").write_text("mine")
        self.path("tokenizer.json").write_bytes(small_model()["tokenizer.json"])
        self.bad(USAGE, MODEL, says=("models/Tiny-1.5: is not changed", "put there or which were changed since: config.json;", "--force"))
        self.assertEqual(set(self.files()), {"config.json", "tokenizer.json"})
        report = json.loads(self.good(MODEL, "--force", "--json").stdout)
        self.assertEqual({f["state"] for f in report["files"] if f["file"] == "tokenizer.json"}, {"there"})
        self.assertEqual(self.files(), small_model())
        self.path("config.json").write_text("changed")
        self.bad(USAGE, MODEL, says="config.json")
        self.path("config.json").unlink()
        self.good(MODEL)
        self.assertEqual(self.files(), small_model())

    def test_a_folder_that_another_tool_filled_is_taken_over(self):
        for name, data in small_model().items():
            self.path("").mkdir(parents=True, exist_ok=True)
            self.path(name).write_bytes(data)
        self.assertIn("all there", self.good(MODEL).stdout)
        self.assertEqual(self.downloads("safetensors?"), [])

    def test_one_folder_is_one_model(self):
        self.hub.add("Other/Tiny-1.5", small_model(4))
        self.good(MODEL)
        self.bad(USAGE, "Other/Tiny-1.5", says=f"models/Tiny-1.5: holds {MODEL}, not Other/Tiny-1.5; -o names another folder")
        self.assertEqual(self.files(), small_model())

    def test_a_newer_commit_brings_what_changed(self):
        self.good(MODEL)
        newer = {**small_model(), "config.json": b"{}", "model-00002-of-00003.safetensors": b"new"}
        del newer["chat_template.jinja"]
        self.hub.add(MODEL, newer)
        self.hub.log.clear()
        self.hub.fail("model-00002-of-00003.safetensors", Fault(status=404))
        self.bad(USAGE, MODEL, "-j", 1)  # the record knows afterwards that the old shard is its own
        done = self.good(MODEL)
        self.assertIn("of an earlier pull, and no more in this commit: chat_template.jinja", done.stderr)
        self.assertEqual(self.files(), {**newer, "chat_template.jinja": small_model()["chat_template.jinja"]})
        self.assertEqual({pathlib.PurePath(r["path"].split("?")[0]).name for r in self.downloads()},
                         {"config.json", "model-00002-of-00003.safetensors"})

    def test_verify_reads_again_and_mends(self):
        self.good(MODEL)
        name = "model-00001-of-00003.safetensors"
        before = self.path(name).stat()
        damaged = bytearray(small_model()[name])
        damaged[5] ^= 1
        self.path(name).write_bytes(damaged)
        os.utime(self.path(name), ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertIn("all there", self.good(MODEL).stdout)
        self.bad(FILE, MODEL, "--offline", "--verify", says=name)
        self.assertIn("fetched", self.good(MODEL, "--verify").stdout)
        self.assertEqual(self.files(), small_model())

    def test_without_the_hub(self):
        self.bad(FILE, MODEL, "--offline", says="models/Tiny-1.5: no pull has been here")
        self.good(MODEL)
        self.hub.log.clear()
        for args, env in ((["--offline"], {}), ([], {"HF_HUB_OFFLINE": "1"}), (["--verify"], {"HF_HUB_OFFLINE": "true"}), (["--offline", "config.json"], {})):
            self.assertIn("all there", self.good(MODEL, *args, env=env).stdout)
        self.path("config.json").unlink()
        self.path("model-00003-of-00003.safetensors").write_bytes(b"short")
        done = self.bad(FILE, MODEL, "--offline", says="not whole, and the hub is not asked (--offline or HF_HUB_OFFLINE): config.json, model-00003-of-00003.safetensors")
        self.assertRegex(done.stdout, r"missing +config\.json\n")
        self.assertRegex(done.stdout, r"there +tokenizer\.json\n")
        report = json.loads(self.good(MODEL, "--offline", "--dry-run", "--json").stdout)
        self.assertEqual((report["whole"], {f["file"] for f in report["files"] if f["state"] != "there"}), (False, {"config.json", "model-00003-of-00003.safetensors"}))
        self.bad(USAGE, MODEL, "--offline", "--revision", "v2", says="holds revision main, not v2")
        self.assertEqual(self.hub.log, [])

    def test_a_dry_run_changes_nothing(self):
        done = self.good(MODEL, "--dry-run")
        self.assertRegex(done.stdout, r"(?m)^ +97\.7 KiB  missing   model-00001-of-00003\.safetensors$")
        self.assertRegex(done.stdout, r" in 7 files, 3\d\d\.\d KiB of it to fetch\n$")
        self.assertFalse((self.folder / "models").exists())
        self.assertEqual([r for r in self.downloads() if "index" not in r["path"]], [])

    def test_a_damaged_record_is_said(self):
        self.good(MODEL)
        for text in ("", "[]", "{}", '{"model": "a", "files": 1}'):
            self.path(".pull.json").write_text(text)
            self.bad(FILE, MODEL, says=(".pull.json", "deleted, it is made again"))
        self.path(".pull.json").unlink()
        self.assertIn("all there", self.good(MODEL).stdout)

    def test_a_folder_has_the_name_of_a_file(self):
        self.path("config.json").mkdir(parents=True)
        self.bad(FILE, MODEL, says="config.json: is a folder, expected a file")
        (self.folder / "file").write_text("x")
        self.bad(FILE, MODEL, "-o", "file", says="file: cannot make the folder")
        self.bad(FILE, MODEL, "-o", "file/below", says="file/below: cannot make the folder")


class Hints(Case):
    def say(self, *args):
        done = subprocess.run([DOVETAIL, *args], capture_output=True, stdin=subprocess.DEVNULL, cwd=self.folder, env=self.env, text=True)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_who_misses_a_model_learns_how_to_get_it(self):
        self.assertIn("; dovetail pull ORG/Tiny-1.5 fetches it;", self.say("run", "models/Tiny-1.5", "hi"))
        self.assertIn(f"; for a model of a hub: dovetail pull {MODEL}", self.say("chat", MODEL))
        self.assertIn(f"; for a model of a hub: dovetail pull {MODEL};", self.say("run", MODEL, "hi"))
        config = self.folder / "my.yaml"
        config.write_text("dovetail: 1\nmodel: {path: models/Tiny-1.5}\n")
        self.assertIn(f"dovetail pull ORG/NAME -o {self.folder.resolve()}/models/Tiny-1.5", self.say("run", "my.yaml", "hi"))
        self.hub.add(MODEL, small_model())
        self.good(MODEL)
        self.assertIn("; did you mean models/Tiny-1.5?", self.say("chat", MODEL))
        for other in ("gone.yaml", "docs/gone.yaml", "/gone", "./gone/x"):
            self.assertNotIn("pull", self.say("chat", other))


def tests_of(suite):
    return [t for part in suite for t in tests_of(part)] if isinstance(suite, unittest.TestSuite) else [suite.id().removeprefix("__main__.")]


def run_side_by_side(n):
    """The tests mostly wait, as a pull does before it tries again: they wait together. Exits as unittest does."""
    names = tests_of(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    runs = [subprocess.Popen([sys.executable, __file__, DOVETAIL, *names[i::n]]) for i in range(n)]
    sys.exit(max(run.wait() for run in runs))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        unittest.main(warnings="ignore")  # of sockets that a client has left
    run_side_by_side(8)
