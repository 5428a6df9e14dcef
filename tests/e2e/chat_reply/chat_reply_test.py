"""What run and chat make of answers with reasoning and tool calls: a model that says what a script tells it,
with Qwen3's template and its tokenizer without the merges, so that a start is quick.
usage: chat_reply_test.py DOVETAIL
"""
import functools
import json
import lzma
import os
import pathlib
import pty
import select
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"
DOVETAIL = sys.argv.pop(1)
PLUGINS = pathlib.Path(DOVETAIL).resolve().parents[1] / "tests" / "plugins"
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather.",
                                           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
ARGUMENTS = '{"t":"ÄÖÜ 日本 😊","n":{"a":[1]}}'
CALL = '<tool_call>\n{"name":"get_weather","arguments":' + ARGUMENTS + "}\n</tool_call>"
holder = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(holder.name)


def setUpModule():
    """Two tokenizers: as it is, and with the tags of calls and reasoning as special tokens."""
    definition = json.loads(lzma.decompress((DATA / "qwen3-tokenizer" / "tokenizer.json.xz").read_bytes()))
    model = definition["model"]
    model["merges"], model["vocab"] = [], dict(sorted(model["vocab"].items(), key=lambda entry: entry[1])[:256])
    for n, token in enumerate(definition["added_tokens"]):
        token["id"] = 256 + n
    for name in ("plain", "special"):
        (FOLDER / name).mkdir()
        for token in definition["added_tokens"]:
            if name == "special" and token["content"] in ("<tool_call>", "</tool_call>", "<think>", "</think>"):
                token["special"] = True
        (FOLDER / name / "tokenizer.json").write_text(json.dumps(definition, ensure_ascii=False), encoding="utf-8")
    (FOLDER / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")


def tearDownModule():
    holder.cleanup()


@functools.cache
def ids_of(text, tokenizer="plain"):
    done = subprocess.run([DOVETAIL, "tokenize", "--tokenizer", str(FOLDER / tokenizer), "--jsonl"], check=True, capture_output=True,
                          input=json.dumps({"text": text, "special": True}).encode() + b"\n", timeout=60)
    return json.loads(done.stdout)["ids"]


def config(says, tokenizer="plain", template="qwen3", end=True, **chat):
    """A config file of a model that says a text (or these ids), and then <|im_end|>."""
    script = ids_of(says, tokenizer) if isinstance(says, str) else says
    (stop,) = ids_of("<|im_end|>")
    if isinstance(template, str):
        chat["template_file"] = str(DATA / "chat" / "templates" / f"{template}.jinja")
    document = {"dovetail": 1, "model": {"arch": "scripted", "vocab_size": 512, "script": script + ([stop] if end else [])},
                "tokenizer": {"path": str(FOLDER / tokenizer)}, "plugins": {"path": [str(PLUGINS)]}, "sampler": ["greedy"],
                "generate": {"stop_ids": [stop], "max_tokens": 400}, "chat": chat}
    path = FOLDER / f"config-{abs(hash(json.dumps(document)))}.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def program(*args, stdin=b""):
    return subprocess.run([DOVETAIL, *args], input=stdin, capture_output=True, timeout=100)


class Run(unittest.TestCase):
    def answer(self, says, *args, prompt="Hi", **options):
        done = program("run", config(says, **options), prompt, "--json", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def parts(self, says, *args, **options):
        a = self.answer(says, *args, **options)
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in a.get("tool_calls", [])]
        return a.get("reasoning_content"), a["content"], calls

    def test_reasoning_and_calls_are_parts_of_their_own(self):
        a = self.answer("<think>\nhm\n</think>\n\nLet me see.\n" + CALL, "--tools", str(FOLDER / "tools.json"))
        self.assertEqual((a["reasoning_content"], a["content"], a["finish_reason"]), ("hm", "Let me see.", "tool_calls"))
        self.assertEqual(a["text"], "<think>\nhm\n</think>\n\nLet me see.\n" + CALL)
        (call,) = a["tool_calls"]
        self.assertEqual((call["type"], call["function"]), ("function", {"name": "get_weather", "arguments": ARGUMENTS}))
        self.assertRegex(call["id"], r"\A[0-9A-Za-z]{9}\Z")

    def test_a_plain_answer_has_neither(self):
        a = self.answer("Yes.")
        self.assertEqual((a["content"], a["text"], a["finish_reason"]), ("Yes.", "Yes.", "stop"))
        self.assertNotIn("reasoning_content", a)
        self.assertNotIn("tool_calls", a)

    def test_b013_tags_that_are_special_tokens_reach_the_parser_and_nobody_else(self):
        says = "<think>\nhm\n</think>\n\nSo.\n" + CALL
        for tokenizer in ("plain", "special"):
            self.assertEqual(self.parts(says, tokenizer=tokenizer), ("hm", "So.", [("get_weather", ARGUMENTS)]))
            done = program("run", config(says, tokenizer=tokenizer), "Hi")
            self.assertEqual(done.stdout.decode(), f"So.\ncall get_weather {ARGUMENTS}\n")
            self.assertEqual(done.stderr.decode(), "hm\n")

    def test_b052_a_tag_split_across_tokens(self):
        ids = ids_of("a</thin") + ids_of("k>b")
        self.assertNotIn(ids_of("</think>")[0], ids)
        self.assertEqual(self.parts_after("{{ messages[0].content }}<think>\n", ids), ("a", "b", []))

    def parts_after(self, template, says, prompt="Hi"):
        """The parts of an answer to a template of the test's own."""
        path = FOLDER / "own.jinja"
        path.write_text(template, encoding="utf-8")
        return self.parts(says, prompt=prompt, template=None, template_file=str(path), reasoning="think")

    def test_b053_the_prompts_end_says_where_the_answer_begins(self):
        opened, closed, neither = "{{ messages[0].content }}<think>", "x<think>\n\n</think>\n\n", "{{ messages[0].content }}\n"
        self.assertEqual(self.parts_after(opened, "x</think>y"), ("x", "y", []))
        self.assertEqual(self.parts_after(closed, "y"), (None, "y", []))
        self.assertEqual(self.parts_after(neither, "y"), (None, "y", []))
        self.assertEqual(self.parts_after("{{ messages[0].content }}", "y", prompt="<think>"), (None, "y", []), "what a user wrote opens nothing")

    def test_b050_held_text_goes_through_the_parser_at_the_end(self):
        stop = ["--set", 'generate.stop=["XYZ"]']
        self.assertEqual(self.parts("<think>\na\n</think>\n\naXYb", *stop), ("a", "aXYb", []))
        self.assertEqual(self.parts("<think>\naXY", *stop, end=False)[0][:3], "aXY")
        a = self.answer("<think>\naXYZ</think>b" + CALL, *stop)
        self.assertEqual((a["reasoning_content"], a["content"], a.get("tool_calls")), ("a", "", None))
        self.assertEqual(self.parts("one </thin", "--set", 'generate.stop=["two"]'), (None, "one </thin", []))

    def test_b067_calls_of_any_tokens(self):
        whole = ("get_weather", ARGUMENTS)
        byte_by_byte = [i for c in CALL for i in ids_of(c)]
        self.assertEqual(self.parts(CALL + "\n" + CALL), (None, "", [whole, whole]))
        self.assertEqual(self.parts(byte_by_byte), (None, "", [whole]))
        a = self.answer(CALL + "\n" + CALL, "-n", str(len(ids_of(CALL)) + 12))
        self.assertEqual(a["finish_reason"], "length")
        self.assertEqual([c["function"]["arguments"] for c in a["tool_calls"]], [ARGUMENTS])
        self.assertTrue(a["content"].lstrip().startswith("<tool_call>"), "an unfinished call is text")

    def test_what_is_no_call_is_text(self):
        says = "<tool_call>\n{no json}\n</tool_call>"
        self.assertEqual(self.parts(says), (None, says, []))

    def test_styles_may_be_named_or_turned_off(self):
        says = "<think>\nhm\n</think>\n\n" + CALL
        self.assertEqual(self.parts(says, reasoning="none", tools="none"), (None, says, []))
        self.assertEqual(self.parts(says, reasoning="none"), (None, "<think>\nhm\n</think>", [("get_weather", ARGUMENTS)]))
        done = program("config", "check", config("x", tools="herms"))
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"hermes", done.stderr)

    def test_b023_an_empty_list_of_tools_is_none(self):
        path = FOLDER / "none.json"
        n = {}
        for name, text in (("list", "[]"), ("null", "null")):
            path.write_text(text, encoding="utf-8")
            n[name] = self.answer("x", "--tools", str(path))["prompt_tokens"]
        n["absent"] = self.answer("x")["prompt_tokens"]
        self.assertEqual(len(set(n.values())), 1, n)
        self.assertGreater(self.answer("x", "--tools", str(FOLDER / "tools.json"))["prompt_tokens"], n["absent"] + 20)

    def test_wrong_tools_are_one_clear_error(self):
        path = FOLDER / "wrong.json"
        for text, words in (("{", "wrong.json:1:"), ('{"a": 1}', "expected a list of functions"), ("[{}]", "tools[0] has no name"),
                            ('[{"type": "function", "function": {}}]', "tools[0] has no name")):
            path.write_text(text, encoding="utf-8")
            done = program("run", config("x"), "Hi", "--tools", str(path))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr.decode())

    def test_an_answer_that_ends_amid_its_reasoning_says_so(self):
        done = program("run", config("<think>\nlong thought"), "Hi", "-n", "3")
        self.assertEqual((done.returncode, done.stdout), (0, b"\n"))
        self.assertIn("before its reasoning does; generate.max_tokens allows more", done.stderr.decode())

    def test_raw_text_is_not_taken_apart(self):
        done = program("run", config("<think>x</think>y"), "Hi", "--raw", "--json")
        a = json.loads(done.stdout)
        self.assertEqual(a["text"], "<think>x</think>y")
        self.assertNotIn("content", a)


class Chat(unittest.TestCase):
    def chat(self, lines, path, *args):
        done = program("chat", path, *args, stdin="".join(line + "\n" for line in lines).encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def messages(self, lines, path, *args):
        saved = FOLDER / "saved.json"
        self.chat([*lines, f"/save {saved}"], path, *args)
        return json.loads(saved.read_text(encoding="utf-8"))["messages"]

    def test_the_history_keeps_reasoning_and_calls(self):
        path = config("<think>\nhm\n</think>\n\nSo.\n" + CALL)
        messages = self.messages(["Hi", "/tool 21 degrees"], path, "--tools", str(FOLDER / "tools.json"))
        self.assertEqual([m["role"] for m in messages], ["user", "assistant", "tool", "assistant"])
        said, result = messages[1:3]
        self.assertEqual((said["content"], said["reasoning_content"]), ("So.", "hm"))
        self.assertEqual(said["tool_calls"][0]["function"], {"name": "get_weather", "arguments": ARGUMENTS})
        self.assertEqual(result, {"role": "tool", "content": "21 degrees", "tool_call_id": said["tool_calls"][0]["id"], "name": "get_weather"})
        self.assertNotEqual(messages[3]["tool_calls"][0]["id"], said["tool_calls"][0]["id"])

    def test_the_next_prompt_is_what_the_template_makes_of_the_history(self):
        """The tokens of the second prompt are those of the template over the saved messages."""
        path = config("<think>\nhm\n</think>\n\nSo.\n" + CALL)
        saved, tools = FOLDER / "two.json", FOLDER / "tools.json"
        out, _ = self.chat(["Hi", "/tool 21", f"/save {saved}", "/stats"], path, "--tools", str(tools))
        messages = json.loads(saved.read_text(encoding="utf-8"))["messages"][:3]
        case = {"context": {"messages": messages, "tools": TOOLS, "add_generation_prompt": True}}
        rendered = program("template", "render", str(DATA / "chat" / "templates" / "qwen3.jinja"), "--input", "-", stdin=json.dumps(case).encode())
        self.assertIn(ARGUMENTS, rendered.stdout.decode(), "as the model wrote them")
        self.assertIn("<think>\nhm\n</think>", rendered.stdout.decode())
        stats = json.loads(out[out.index("{\n"):])
        self.assertEqual(stats["prompt_tokens"], len(ids_of(rendered.stdout.decode())))
        self.assertEqual(stats["finish_reason"], "tool_calls")

    def test_results_go_to_calls_in_their_order(self):
        path = config(CALL + "\n" + CALL.replace("get_weather", "add"))
        out, _ = self.chat(["/tool early", "Hi", "/tool one", "/tool two", "/history"], path)
        self.assertIn("no call waits for a result\n", out)
        self.assertIn("next is the result of add\n", out)
        self.assertIn("tool: one\ntool: two\n", out)
        self.assertIn("assistant: call add " + ARGUMENTS + "\n", out)

    def test_reasoning_is_apart_from_the_answer(self):
        out, err = self.chat(["Hi"], config("<think>\nhm\n\nwell\n</think>\n\nSo."))
        self.assertEqual((out, err), ("So.\n", "hm\n\nwell\n"))

    def test_json_lines_have_all_parts(self):
        out, err = self.chat(["Hi", "/stats", "x" * 40000], config("<think>\nhm\n</think>\n\nSo.\n" + CALL), "--json")
        first, second = map(json.loads, out.splitlines())
        self.assertEqual((first["content"], first["reasoning_content"], first["finish_reason"]), ("So.", "hm", "tool_calls"))
        self.assertEqual(first["tool_calls"][0]["function"]["arguments"], ARGUMENTS)
        self.assertIn("the prompt has", second["error"])
        self.assertIn('"prompt_tokens"', err)

    def test_on_a_terminal_reasoning_is_dim(self):
        path = config("<think>\nhm\n</think>\n\nSo.")
        for no_color, expected in (("", b"\x1b[2mhm\x1b[0m\r\n\r\nSo.\r\n> "), ("1", b"hm\r\n\r\nSo.\r\n> ")):
            pid, fd = pty.fork()
            if pid == 0:
                os.execve(DOVETAIL, [DOVETAIL, "chat", path], {**os.environ, "NO_COLOR": no_color})
            seen, deadline, asked = b"", time.monotonic() + 60, False
            while not seen.endswith(expected) and time.monotonic() < deadline:
                if select.select([fd], [], [], 1)[0]:
                    try:
                        seen += os.read(fd, 65536)
                    except OSError:
                        break
                if not asked and seen.endswith(b"> "):
                    os.write(fd, b"Hi\r")
                    asked = True
            self.assertTrue(seen.endswith(expected), seen)
            os.write(fd, b"\x04")
            os.waitpid(pid, 0)
            os.close(fd)

    def test_what_the_template_raises_is_said_as_it_is(self):
        template = FOLDER / "raises.jinja"
        template.write_text("{{ raise_exception('Only one turn, please.') if messages|length > 1 }}x", encoding="utf-8")
        out, _ = self.chat(["a", "b", "/history"], config("y", template=None, template_file=str(template)))
        self.assertIn("cannot answer: Only one turn, please.\n", out)
        self.assertTrue(out.endswith("user: a\nassistant: y\n"), out)


if __name__ == "__main__":
    unittest.main()
