"""dovetail template render and check: every vector of tests/data/chat through the program, inputs that are
wrong, and templates from every kind of file that has one.
usage: template_test.py DOVETAIL
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHAT = ROOT / "tests" / "data" / "chat"
DOVETAIL = sys.argv.pop(1)
sys.path.insert(0, str(ROOT / "tests" / "support"))
import gguf_file  # noqa: E402

NOW = "2026-03-07T09:05:04"
HELLO = {"context": {"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": True}}


def program(*args, stdin=b""):
    return subprocess.run([DOVETAIL, "template", *map(str, args)], input=stdin, capture_output=True, timeout=60)


def render(file, case, *args):
    return program("render", file, "--input", "-", *args, stdin=json.dumps(case).encode())


class Vectors(unittest.TestCase):
    def check(self, name, case, done):
        """Empty if the program did what the case says, else what it did."""
        if "rendered" in case:
            if (done.returncode, done.stderr) != (0, b""):
                return f"{name}: exit {done.returncode}: {done.stderr.decode()}"
            return "" if done.stdout == case["rendered"].encode() else f"{name}: got {done.stdout}"
        if done.returncode not in (2, 3, 4) or done.stdout:
            return f"{name}: exit {done.returncode}, expected an error: {done.stdout}"
        if case.get("kind") == "TemplateError" and case["message"].isprintable() and done.stderr.decode() != f"dovetail: error: {case['message']}\n":
            return f"{name}: {done.stderr.decode()}"
        return ""

    def run_all(self, jobs):
        """jobs: (name, case, file, input)"""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            wrong = list(pool.map(lambda j: self.check(j[0], j[1], render(j[2], j[3])), jobs))
        self.assertEqual([w for w in wrong if w], [])
        return len(jobs)

    def test_every_case_of_every_real_template(self):
        jobs = []
        for path in sorted(CHAT.glob("*.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            for case in data["cases"]:
                flat = {**case, **case.get("error", {})}
                jobs.append((f"{path.stem}: {case['name']}", flat, CHAT / data["template"], {"context": case["context"], "now": data["now"]}))
        self.assertEqual(self.run_all(jobs), 561)

    def test_every_case_of_the_language(self):
        jobs = []
        with tempfile.TemporaryDirectory() as folder:
            for n, line in enumerate((CHAT / "semantics.jsonl").read_text(encoding="utf-8").splitlines()):
                case = json.loads(line)
                file = pathlib.Path(folder) / f"{n}.jinja"
                file.write_bytes(case["template"].encode())
                jobs.append((case["template"], case, file, {"context": case.get("context", {}), "now": NOW}))
            self.assertEqual(self.run_all(jobs), 436)


class Files(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path

    def good(self, done, text):
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        self.assertEqual(done.stdout.decode(), text)

    def bad(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, b"")
        error = done.stderr.decode()
        self.assertRegex(error, r"\Adovetail: error: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, error)

    def test_nothing_is_added_to_the_text(self):
        self.good(render(self.write("a.jinja", "{{ x }}"), {"context": {"x": "a"}}), "a")
        self.good(render(self.write("b.jinja", ""), {"context": {}}), "")
        self.good(render(self.write("c.jinja", "{{ x }}"), {"context": {"x": "\r\n\x00\x1b[2m ä\n"}}), "\r\n\x00\x1b[2m ä\n")

    def test_an_input_file_is_like_standard_input(self):
        case = self.write("case.json", json.dumps(HELLO))
        self.good(program("render", self.write("a.jinja", "{{ messages[0].content }}"), "--input", case), "Hi")

    def test_order_kinds_and_sizes_of_values_are_kept(self):
        template = self.write("a.jinja", "{{ d }} {{ d|tojson }}")
        text = '{"context": {"d": {"b": 1, "a": 1.0, "n": 123456789012345678901234567890, "e": 1e2, "z": [true, null]}}}'
        self.good(program("render", template, "--input", "-", stdin=text.encode()),
                  "{'b': 1, 'a': 1.0, 'n': 123456789012345678901234567890, 'e': 100.0, 'z': [True, None]} "
                  '{"b": 1, "a": 1.0, "n": 123456789012345678901234567890, "e": 100.0, "z": [true, null]}')

    def test_the_clock_is_the_inputs_or_todays(self):
        template = self.write("a.jinja", "{{ strftime_now('%Y-%m-%d %H:%M:%S %a %j') }}")
        self.good(render(template, {"context": {}, "now": "2024-02-29T23:59:01"}), "2024-02-29 23:59:01 Thu 060")
        done = render(template, {"context": {}})
        self.assertRegex(done.stdout.decode(), r"\A20\d\d-")

    def test_wrong_inputs_are_one_clear_error(self):
        template = self.write("a.jinja", "x")
        for text, words in (('{"context": {}, "nwo": 1}', ['unknown key "nwo"', 'did you mean "now"']),
                            ('{"messages": []}', ['unknown key "messages"', 'go into "context"']),
                            ("{}", ['has no "context"']), ("[]", ["got a list", '{"context": {...}}']),
                            ('{"context": []}', ['"context" is a list']), ('{"context": null}', ['"context" is null']),
                            ('{"context": {}, "now": "today"}', ['"now" is "today"', "2026-03-07T09:05:04"]),
                            ('{"context": {}, "now": "2026-02-30T00:00:00"}', ['"now" is']),
                            ('{"context": {}, "now": 3}', ['"now" is an integer']),
                            ('{"context": {"a": 1,}}', ["standard input:1:"]), ('{"context": {"a": 1, "a": 2}}', ["standard input:1:", '"a"']),
                            ("", ["standard input"]), ('{"context": {}} x', ["standard input:1:"])):
            with self.subTest(text):
                self.bad(program("render", template, "--input", "-", stdin=text.encode()), 2, *words)
        self.bad(program("render", template, "--input", self.folder / "no.json"), 3, "no.json")
        self.bad(program("render", self.folder / "no.jinja", "--input", "-"), 3, "no.jinja")

    def test_faults_of_templates_name_their_place(self):
        syntax = self.write("s.jinja", "a\n{{ 1 + }}")
        self.bad(render(syntax, HELLO), 3, "s.jinja:2:8: got the end of the print tag")
        self.bad(render(self.write("r.jinja", "a\n {{ x.y }}"), HELLO), 2, "r.jinja:2:5: 'x' is undefined, in `x.y`")
        self.bad(render(self.write("u.jinja", "{% include 'x' %}"), HELLO), 4, "u.jinja:1:4: the tag 'include'")
        done = render(self.write("e.jinja", "{{ raise_exception('Roles must\nalternate!') }}"), HELLO)
        self.assertEqual((done.returncode, done.stderr), (2, b"dovetail: error: Roles must\ndovetail: error: alternate!\n"))

    def test_a_template_is_found_wherever_a_model_has_it(self):
        two = [{"name": "default", "template": "D{{ messages|length }}"}, {"name": "tool_use", "template": "T"}]
        folder = self.folder / "model"
        self.write("model/tokenizer_config.json", json.dumps({"chat_template": two}))
        for place in (folder, folder / "tokenizer_config.json"):
            self.good(render(place, HELLO), "D1")
            self.good(render(place, HELLO, "--name", "tool_use"), "T")
            self.bad(render(place, HELLO, "--name", "tools"), 2, 'no chat template is called "tools"', "there are default, tool_use")
        self.write("model/chat_template.jinja", "J")
        self.write("model/additional_chat_templates/rag.jinja", "R")
        self.good(render(folder, HELLO), "J")
        self.good(render(folder, HELLO, "--name", "rag"), "R")
        gguf = self.folder / "m.gguf"
        gguf.write_bytes(gguf_file.file_bytes([("general.architecture", "string", "qwen3"), ("tokenizer.chat_template", "string", "G"),
                                               ("tokenizer.chat_template.tool_use", "string", "H")], []))
        self.good(render(gguf, HELLO), "G")
        self.good(render(gguf, HELLO, "--name", "tool_use"), "H")
        config = self.write("c.yaml", "dovetail: 1\nmodel: {path: m.gguf}\nchat: {template: 'Y'}\n")
        self.good(render(config, HELLO), "Y")
        self.bad(render(self.write("empty/tokenizer_config.json", "{}").parent, HELLO), 2, "there is no chat template")

    def test_check_says_what_is_used(self):
        done = program("check", CHAT / "templates" / "qwen3.jinja", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        report = json.loads(done.stdout)
        self.assertTrue(report["supported"])
        self.assertEqual((report["reasoning"], report["tools"]), ("think", "hermes"))
        names = {kind: [use["name"] for use in report[kind]] for kind in ("statements", "filters", "tests", "functions", "methods", "variables")}
        self.assertEqual(names["statements"], ["for", "if", "set"])
        self.assertEqual(names["functions"], ["namespace"])
        self.assertIn("tojson", names["filters"])
        self.assertIn("split", names["methods"])
        self.assertEqual(names["variables"], ["add_generation_prompt", "enable_thinking", "messages", "tools"])
        done = program("check", CHAT / "templates" / "qwen3.jinja")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"all that it uses is supported", done.stdout)
        self.assertRegex(done.stdout.decode(), r"(?m)^functions +namespace")

    def test_check_names_all_that_is_missing(self):
        file = self.write("bad.jinja", "{% include 'x' %}\n{{ a|nope }}\n{% if a is odd_one %}{{ len(a) }}{{ a.append(1) }}{% endif %}\n")
        done = program("check", file)
        self.assertEqual((done.returncode, done.stderr), (4, b""))
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[:6], [f"{file}:1: the tag 'include' is not supported in chat templates", f"{file}:2: no filter is named 'nope'",
                                     f"{file}:3: no test is named 'odd_one'", f"{file}:3: no function or macro is named 'len'",
                                     f"{file}:3: templates may not change lists and dicts, as 'append' would",
                                     f"{file}: not supported in 5 places"])
        report = json.loads(program("check", file, "--json").stdout)
        self.assertFalse(report["supported"])
        self.assertEqual(report["filters"], [{"name": "nope", "lines": [2], "supported": False, "reason": "no filter is named 'nope'"}])
        self.bad(program("check", self.write("syntax.jinja", "{% if %}")), 3, "syntax.jinja:1:")


if __name__ == "__main__":
    unittest.main()
