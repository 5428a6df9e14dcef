"""What --json prints is JSON in UTF-8, whatever bytes are in texts, tokens and paths; --help of every command.
usage: json_output_test.py DOVETAIL
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "qwen3"
DOVETAIL = sys.argv.pop(1)
PLUGINS = pathlib.Path(DOVETAIL).resolve().parents[1] / "lib" / "dovetail" / "plugins"
DEMO = ROOT / "configs" / "demo"
TEXT = "Elizabeth 😀 走了, 日本語 e\u0301 \U0001F469\u200D\U0001F680\n"
SMALL = ["--set", "generate.max_tokens=24"]
NOISE = ["--set", "sampler=[{temperature: 100}]", "--set", "generate.seed=1"]  # any byte may come
checked = set()


def program(args, stdin=b""):
    return subprocess.run([DOVETAIL, *args], capture_output=True, input=stdin, timeout=120)


def reject(word):
    raise ValueError(f"{word} is no JSON")


class JsonOutput(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = os.fsencode(holder.name)

    def json(self, command, *args, stdin=b""):
        checked.add(command)
        done = program([*command.split(), *args], stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.decode("utf-8", "strict"), parse_constant=reject)

    def pieces(self, tokens):
        """The bytes that the pieces stand for; `bytes` is there exactly where text cannot say them."""
        out = b""
        for token in tokens:
            if "bytes" in token:
                raw = bytes(token["bytes"])
                with self.assertRaises(UnicodeDecodeError):
                    raw.decode("utf-8")
                self.assertEqual(token["piece"], raw.decode("utf-8", "replace"))
            else:
                raw = token["piece"].encode()
            out += raw
        return out

    def test_the_pieces_of_emoji_and_cjk_are_their_bytes(self):
        for command, args in (("demo tokens", [TEXT]), ("tokenize", ["--tokenizer", str(DEMO), TEXT])):
            tokens = self.json(command, "--json", *args)
            self.assertEqual(self.pieces(tokens).decode(), TEXT.replace("e\u0301", "\u00e9"))  # NFC
            self.assertTrue(any("bytes" in t for t in tokens))

    def test_the_next_tokens_after_half_a_character_have_pieces(self):
        self.pieces(self.json("demo next", "--json", TEXT))

    def test_texts_of_any_bytes_are_utf8(self):
        replaced = 0
        for prompt in (["--raw", TEXT], ["--ids", "173,254"]):
            out = self.json("run", "--json", *SMALL, *NOISE, *prompt)
            self.assertEqual(len(out["ids"]), 24)
            replaced += out["text"].count("\ufffd")
        self.assertGreater(replaced, 0, "no half character came: choose another seed")

    def test_decoded_ids_are_utf8(self):
        ids = [t["id"] for t in self.json("tokenize", "--json", "--tokenizer", str(DEMO), TEXT)]
        half = ",".join(map(str, ids[:len(ids) // 2 + 1]))
        self.assertIn("Elizabeth", self.json("tokenize", "--json", "--tokenizer", str(DEMO), "--decode", half)["text"])
        lines = "".join(json.dumps({"ids": ids[:n]}) + "\n" for n in range(1, len(ids) + 1))
        done = program(["tokenize", "--tokenizer", str(DEMO), "--jsonl", "--decode"], lines.encode())
        texts = [json.loads(line)["text"] for line in done.stdout.decode("utf-8", "strict").splitlines()]
        self.assertEqual(len(texts), len(ids))
        self.assertTrue(any("\ufffd" in t for t in texts[:-1]))
        self.assertNotIn("\ufffd", texts[-1])

    def test_paths_of_any_bytes_are_utf8(self):
        for name, shown in (("模型 😀".encode(), "模型 😀"), (b"caf\xe9", "caf\ufffd")):
            path = os.path.join(self.folder, name)
            os.symlink(GOLDEN, path)
            self.assertIn(shown, self.json("inspect", "--json", path)["path"])
            self.assertGreater(len(self.json("plan", "--json", path)), 0)
            self.assertIn(shown, self.json("config show", "--json", path)["model"]["path"])
            out = os.path.join(self.folder, b"out-" + name)
            self.assertIn("out-" + shown, self.json("quantize", "--json", path, "-o", out, "--weights", "int4")["output"])
            pulled = os.path.join(self.folder, b"pulled-" + name)
            os.mkdir(pulled)
            with open(os.path.join(pulled, b".pull.json"), "w", encoding="utf-8") as record:
                json.dump({"model": "Org/Name", "files": {"模型.json": {"size": 1}}}, record)
            report = self.json("pull", "--json", "--offline", "--dry-run", "Org/Name", "-o", pulled)
            self.assertEqual((report["files"][0]["file"], report["files"][0]["state"]), ("模型.json", "missing"))
            self.assertIn("pulled-" + shown, report["folder"])
            plugins = os.path.join(self.folder, b"plugins-" + name)
            os.symlink(PLUGINS, plugins)
            self.assertGreater(len(self.json("plugins list", "--json", "--path", plugins)), 0)
            self.assertIn(shown, json.dumps(self.json("plugins explain", "greedy", "--json", "--path", plugins), ensure_ascii=False))
            self.assertIn("folder", self.json("cache ls", "--json"))
            self.json("plugins inspect", os.path.join(plugins, b"sampler", b"greedy.so"), "--json")

    def test_a_plugin_is_inspected_by_its_name_with_its_parameters(self):
        by_file = self.json("plugins inspect", str(PLUGINS / "sampler" / "top_k.so"), "--json")
        self.assertNotIn("parameters", by_file)  # it was not loaded
        for name in ("top_k", "sampler/top_k", by_file["manifest"]["id"]):
            by_name = self.json("plugins inspect", name, "--json")
            parameter, = by_name.pop("parameters")
            self.assertEqual(by_name, by_file)
            self.assertEqual((parameter["name"], parameter["type"], parameter["default"], parameter["required"]), ("top_k", "integer", "0", False))
            self.assertTrue(parameter["help"])
        text = program(["plugins", "inspect", "top_k"]).stdout.decode()
        self.assertRegex(text, r"parameters\n  top_k  integer  default 0  ")

    def test_templates_and_conversations_are_json(self):
        template = ROOT / "tests" / "data" / "chat" / "templates" / "qwen3.jinja"
        self.assertTrue(self.json("template check", str(template), "--json")["supported"])
        self.assertEqual(len(self.json("chat", "--json", *SMALL, *NOISE, stdin=TEXT.encode())["ids"]), 24)

    def test_measurements_are_json(self):
        path = os.path.join(self.folder, b"\xff\xe4\xb8")
        os.symlink(GOLDEN, path)
        bench = self.json("bench", path, "--json", "-p", "4", "-n", "4", "--repeats", "1")
        self.assertTrue(bench["model"].endswith("/\ufffd\ufffd"))
        # four prompts that are read one after the other would end at different steps: bench refuses that
        bench = self.json("bench", path, "--json", "-p", "40", "-n", "4", "--streams", "4", "--repeats", "1")
        self.assertEqual((bench["prefill"]["tokens"], bench["decode"]["streams"]), (160, 4))
        score = self.json("perplexity", path, "--json", "--ids", "5,17,42,99,3,8,1", "--context", "6")
        self.assertEqual((score["tokens_counted"], score["windows"], "\ufffd" in score["model"]), (2, 1, True))
        healthy = self.json("doctor", path, "--json", "--ids", "5,17,42")
        self.assertTrue(healthy["within"])
        self.assertIn("\ufffd", healthy["config"])
        self.assertEqual(self.json("doctor", TEXT, "--json")["prompt"]["text"], TEXT)
        found = self.json("compare", path, path, "--json", "--ids", "5,17,42")
        self.assertEqual((found["equal"], "\ufffd" in found["a"]["config"]), (True, True))
        self.pieces([self.json("compare", TEXT, "--json", "--b-set", "backend.weights=int4", "--tolerance", "1")["kl"]["max_after"]])
        for command in ("demo cache", "demo fast"):
            self.json(command, "--json", "-n", "4", TEXT, *(["--repeats", "1"] if "fast" in command else []))

    def test_a_long_prompt_gets_a_context_that_holds_it(self):
        path = os.path.join(self.folder, b"long")
        shutil.copytree(os.fsencode(GOLDEN), path)
        config_path = os.path.join(path, b"config.json")
        with open(config_path) as f:
            config = json.load(f)
        config["max_position_embeddings"] = 8192
        with open(config_path, "w") as f:
            json.dump(config, f)
        bench = self.json("bench", path, "--json", "-p", "4100", "-n", "4", "--repeats", "1")  # the default context is 4096
        self.assertEqual(bench["prefill"]["tokens"], 4100)
        refused = program(["bench", path, "-p", "4100", "-n", "4", "--set", "context=4096"])
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr.decode(), "4100 tokens and 5 more need a context of 4105, this one holds 4096; set `context` higher")


class NothingIsForgotten(unittest.TestCase):
    def test_every_command_with_json_was_tried(self):
        offered = commands_with_json()  # this class is the last to run
        self.assertGreaterEqual(len(offered), 11)
        self.assertEqual(offered - checked, set())


class Help(unittest.TestCase):
    def test_every_command_has_an_example_of_itself_and_nothing_of_the_programs(self):
        texts = help_texts()
        self.assertGreaterEqual(len(texts), 25)
        for command, text in texts.items():
            with self.subTest(command):
                examples = re.split(r"^Examples?:\n", text, flags=re.M)
                self.assertEqual(len(examples), 2, text)
                self.assertIn(f"dovetail {command}".rstrip(), examples[1])
                self.assertEqual("Exit codes" in text, command == "")
                self.assertEqual("--help-all" in text, command == "")
                self.assertNotIn("(0x)", text)
                for rows in re.findall(r"^Positionals:\n((?:  .*\n)+)", text, re.M):
                    one_line_each = re.sub(r"\n {20,}", " ", rows)
                    self.assertNotRegex(one_line_each, re.compile(r"(REQUIRED|TEXT)\s*$", re.M))  # each is described

    def test_a_wrong_line_names_the_help_of_its_command(self):
        for command in help_texts():
            for args in (["--nope"], ["nope"]):
                if args == ["nope"] and "Subcommands:" not in help_texts()[command]:
                    continue
                done = program([*command.split(), *args])
                with self.subTest(command=command, args=args):
                    self.assertEqual(done.returncode, 2)
                    self.assertRegex(done.stderr.decode(), "^dovetail: error: [^\n]*" + re.escape(f"(see dovetail {command}".rstrip() + " --help)") + "\n$")

    def test_an_option_that_is_a_key_of_the_config_gets_the_way_to_set_it(self):
        done = program(["run", "Once", "--temperature", "0"])
        self.assertIn("--set sampler.0.temperature=0.2", done.stderr.decode())


@functools.cache
def help_texts(*above):
    """The help of every command, found by walking the help texts."""
    text = program([*above, "--help"]).stdout.decode()
    found = {" ".join(above): text}
    listed = re.split(r"^(?:Subcommands|SUBCOMMANDS):\s*$", text, flags=re.M)
    for name in re.findall(r"^  ([a-z][a-z-]*)\s{2,}", listed[1].split("\n\n")[0], re.M) if len(listed) > 1 else []:
        found |= help_texts(*above, name)
    return found


def commands_with_json():
    return {command for command, text in help_texts().items() if re.search(r"^\s+--json\b", text, re.M)}


if __name__ == "__main__":
    unittest.main()
