"""dovetail chat through pipes and through a terminal, with a small random Qwen3 that has the real
tokenizer and template: what it says is noise, and the same noise for the same conversation.
usage: chat_test.py DOVETAIL
"""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOVETAIL = sys.argv.pop(1)
SHAPE = ["--hidden-size", "64", "--intermediate-size", "96", "--num-hidden-layers", "2", "--num-attention-heads", "4",
         "--num-key-value-heads", "2", "--head-dim", "16", "--dtype", "float32"]
GREEDY = ["--set", "sampler=[{temperature: 0}]", "--set", "kv_cache.dtype=float32", "--set", "generate.max_tokens=16"]
ENDLESS = ["--set", "context=40000", "--set", "generate.max_tokens=39000", "--set", "generate.ignore_eos=true"]
holder = tempfile.TemporaryDirectory()
MODEL = os.path.join(holder.name, "tiny")


def setUpModule():
    subprocess.run([sys.executable, str(ROOT / "tools" / "make_checkpoint.py"), MODEL, *SHAPE], check=True, capture_output=True)


def tearDownModule():
    holder.cleanup()


def chat(lines, *args, model=MODEL):
    done = subprocess.run([DOVETAIL, "chat", model, *GREEDY, *args], input="".join(line + "\n" for line in lines).encode(),
                          capture_output=True, timeout=100)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Pipes(unittest.TestCase):
    def conversation(self, lines, *args):
        """The messages as /save writes them, and what was printed."""
        path = os.path.join(holder.name, "saved.json")
        code, out, err = chat([*lines, "/save " + path], *args)
        self.assertEqual(code, 0, err)
        with open(path, encoding="utf-8") as f:
            return json.load(f)["messages"], out

    def stats(self, lines, *args):
        code, out, err = chat([*lines, "/stats"], *args)
        self.assertEqual(code, 0, err)
        return json.loads(out[out.index("{\n"):])

    def test_turns_alternate_and_the_end_of_input_ends_cleanly(self):
        messages, out = self.conversation(["Hello 😀", "", "And now?"])
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
        self.assertEqual([m["content"] for m in messages[::2]], ["Hello 😀", "And now?"])
        for m in messages[1::2]:
            self.assertTrue(m["content"])
            self.assertIn(m["content"] + "\n", out)

    def test_an_input_without_a_last_line_break_is_a_message(self):
        done = subprocess.run([DOVETAIL, "chat", MODEL, *GREEDY], input=b"Hello", capture_output=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.decode(), chat(["Hello"])[1])

    def test_an_answer_depends_on_what_was_said_before(self):
        whole, _ = self.conversation(["One", "Two"])
        alone, _ = self.conversation(["Two"])
        self.assertNotEqual(whole[3]["content"], alone[1]["content"])
        forgotten, _ = self.conversation(["One", "/reset", "Two"])
        self.assertEqual(forgotten, alone)

    def test_another_backend_goes_on_with_the_same_tokens(self):
        stayed, _ = self.conversation(["One", "Two", "Three"])
        moved, out = self.conversation(["One", "/backend", "/backend reference", "Two", "/backend cpu", "Three"])
        self.assertEqual(moved, stayed)
        self.assertRegex(out, r"the backend is cpu \(")
        self.assertRegex(out, r"now on reference: loaded in [\d.]+ s, no answer was under way\n")
        self.assertRegex(out, r"now on cpu \(.*\): loaded in [\d.]+ s, no answer was under way\n")

    def test_a_backend_that_is_not_there_changes_nothing(self):
        stayed, _ = self.conversation(["One", "Two"])
        moved, out = self.conversation(["One", "/backend nope", "Two"])
        self.assertEqual(moved, stayed)
        self.assertIn('still on cpu', out)
        self.assertIn('no backend plugin "nope" is installed', out)

    def test_thinking_is_the_templates_variable(self):
        encoded = subprocess.run([DOVETAIL, "tokenize", "--tokenizer", MODEL, "--jsonl"], check=True, capture_output=True,
                                 input=json.dumps({"text": "<think>\n\n</think>\n\n", "special": True}).encode() + b"\n").stdout
        empty_thought = len(json.loads(encoded)["ids"])
        self.assertGreater(empty_thought, 0)
        on = self.stats(["/thinking on", "Hi"])["prompt_tokens"]
        off = self.stats(["/thinking off", "Hi"])["prompt_tokens"]
        self.assertEqual(off - on, empty_thought)
        self.assertEqual(self.stats(["Hi"], "--set", "chat.enable_thinking=false")["prompt_tokens"], off)
        self.assertEqual(self.stats(["Hi"])["prompt_tokens"], on)

    def test_system_and_set_hold_for_what_follows(self):
        messages, _ = self.conversation(["One", "/system Be brief.", "Two"])
        self.assertEqual([m["role"] for m in messages], ["system", "user", "assistant"])
        self.assertEqual(messages[0]["content"], "Be brief.")
        hot = ["/set temperature 50", "Two"]
        first, _ = self.conversation(hot, "--set", "generate.seed=1")
        second, _ = self.conversation(hot, "--set", "generate.seed=2")
        self.assertNotEqual(first, second)
        cooled, _ = self.conversation(["/set temperature 50", "/set temperature null", "Two"], "--set", "generate.seed=1")
        self.assertEqual(cooled, self.conversation(["Two"])[0])

    def test_wrong_commands_are_said_and_change_nothing(self):
        for wrong, words in (("/set nope 1", 'no sampler stage of this model has a parameter "nope"'), ("/set temperature hot", "temperature"),
                             ("/set temperature", "expected /set KEY VALUE"), ("/thinking maybe", "expected /thinking on"),
                             ("/thinkin on", 'did you mean "/thinking"'), ("/save", "expected /save FILE"),
                             ("/save /no/such/folder/x", "not saved: ")):
            messages, out = self.conversation([wrong, "Two"])
            self.assertIn(words, out)
            self.assertEqual(messages, self.conversation(["Two"])[0])

    def test_two_slashes_say_one(self):
        self.assertEqual(self.conversation(["//no_think"])[0][0]["content"], "/no_think")

    def test_every_command_is_in_the_help_and_in_the_manual(self):
        _, out, _ = chat(["/help"])
        names = set(re.findall(r"^/[a-z]+", out, re.M))
        self.assertGreaterEqual(len(names), 11)
        self.assertEqual(names, set(re.findall(r"^\| `(/[a-z]+)", (ROOT / "docs" / "cli.md").read_text(), re.M)))

    def test_special_tokens_in_a_message_are_plain_text(self):
        plain = self.stats(["x"])["prompt_tokens"]
        self.assertGreater(self.stats(["<|im_end|>"])["prompt_tokens"], plain + 1)

    def test_a_model_without_a_template_is_refused(self):
        code, _, err = chat([], model=str(ROOT / "configs" / "demo"))
        self.assertEqual(code, 2)
        self.assertIn("no chat template", err)
        self.assertIn("configs/demo-chat.yaml", err)

    def test_without_a_config_the_embedded_model_goes_on_in_direct_speech(self):
        path = os.path.join(holder.name, "demo.json")
        lines = "Do you dance?\nAnd you, sir?\n/stats\n/backend reference\n/save " + path + "\n"
        done = subprocess.run([DOVETAIL, "chat", *GREEDY], input=lines.encode(), capture_output=True, timeout=100)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(path, encoding="utf-8") as f:
            messages = json.load(f)["messages"]
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
        prompt = '"Do you dance?"\n\n"' + messages[1]["content"] + '\n\n"And you, sir?"\n\n"'
        said = subprocess.run([DOVETAIL, "run", "--raw", *GREEDY, "--json", "--set", 'generate.stop=["\\n\\n"]', prompt], capture_output=True, timeout=100)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(json.loads(said.stdout)["text"], messages[3]["content"])

    def test_stats_are_counts_and_speed_without_the_tokens(self):
        self.assertEqual(set(self.stats(["Hi"])), {"finish_reason", "prompt_tokens", "completion_tokens", "seed", "timings"})

    def test_an_answer_that_the_context_cuts_short_says_so(self):
        code, _, err = chat(["Hello"], "--set", "context=16", "--set", "generate.ignore_eos=true")
        self.assertEqual(code, 0)
        self.assertRegex(err, "^warning: context: the answer ends after [0-9]+ of 16 tokens: the context of 16 is full\n$")

    def test_a_message_beyond_the_context_is_said_and_forgotten(self):
        messages, out = self.conversation(["word " * 300, "Two"], "--set", "context=128")
        self.assertIn("cannot answer: the prompt has", out)
        self.assertEqual(messages, self.conversation(["Two"], "--set", "context=128")[0])


class Terminal(unittest.TestCase):
    def setUp(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(DOVETAIL, [DOVETAIL, "chat", MODEL, *GREEDY, *ENDLESS])
        self.seen, self.status = b"", None
        self.addCleanup(self.end)
        self.wait_for(b"> ")

    def end(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def wait_for(self, words, more=0, timeout=60):
        """Reads until `words`, and `more` bytes after them, have come; gives all and forgets it."""
        deadline = time.monotonic() + timeout
        while words not in self.seen or len(self.seen) < self.seen.index(words) + len(words) + more:
            self.assertGreater(deadline, time.monotonic(), f"waited for {words}, saw {self.seen[-500:]}")
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    part = os.read(self.fd, 65536)
                except OSError:  # the other end is closed
                    part = b""
                self.assertTrue(part, f"waited for {words}, the program ended after {self.seen[-500:]}")
                self.seen += part
        seen, self.seen = self.seen, b""
        return seen

    def leaves_with(self, code, timeout=30):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                if select.select([self.fd], [], [], 0.05)[0]:
                    os.read(self.fd, 65536)
            except OSError:
                pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
                return self.assertEqual(os.waitstatus_to_exitcode(status), code)
        self.fail("the program did not end")

    def test_ctrl_c_ends_an_answer_and_the_next_one_is_whole(self):
        os.write(self.fd, b"Tell me more\r")
        for _ in range(2):  # a second answer is interrupted as the first was
            self.wait_for(b"Tell me more\r\n", more=200)
            os.write(self.fd, b"\x03")
            self.wait_for(b"[interrupted]\r\n> ")
            os.write(self.fd, b"Tell me more\r")
        self.wait_for(b"Tell me more\r\n", more=200)
        os.write(self.fd, b"\x03")
        self.wait_for(b"[interrupted]\r\n> ")
        os.write(self.fd, b"/stats\r")
        self.assertIn(b'"finish_reason": "cancelled"', self.wait_for(b"}\r\n> "))
        os.write(self.fd, b"/quit\r")
        self.leaves_with(0)

    def test_a_backend_typed_while_the_answer_comes_moves_it(self):
        os.write(self.fd, b"Tell me more\r")
        self.wait_for(b"Tell me more\r\n", more=200)
        os.write(self.fd, b"/backend nope\r")
        self.assertIn(b"still on cpu", self.wait_for(b'no backend plugin "nope" is installed'))
        self.wait_for(b"", more=200)  # the answer goes on
        os.write(self.fd, b"/backend reference\r")
        said = self.wait_for(b" went over, ", more=200).decode(errors="replace")
        n_tokens = re.search(r"now on reference: the answer goes on, its (\d+) tokens of cache", said)
        self.assertTrue(n_tokens, said)
        self.assertGreater(int(n_tokens[1]), 10)
        os.write(self.fd, b"/stats\r")  # waits for its turn
        self.wait_for(b"/stats\r\n", more=200)
        os.write(self.fd, b"\x03")
        self.assertIn(b'"finish_reason": "cancelled"', self.wait_for(b"}\r\n> "))
        os.write(self.fd, b"/backend\r")
        self.wait_for(b"the backend is reference\r\n> ")
        os.write(self.fd, b"/quit\r")
        self.leaves_with(0)

    def test_ctrl_d_leaves(self):
        os.write(self.fd, b"\x04")
        self.leaves_with(0)

    def test_ctrl_c_at_the_prompt_forgets_the_line_and_a_second_one_leaves(self):
        os.write(self.fd, b"half a li\x03")
        self.wait_for(b"leaves\r\n> ")
        os.write(self.fd, b"/stats\r")
        self.wait_for(b"nothing was said yet\r\n> ")
        os.write(self.fd, b"\x03")
        self.wait_for(b"leaves\r\n> ")
        os.write(self.fd, b"\x03")
        self.leaves_with(130)


if __name__ == "__main__":
    unittest.main()
