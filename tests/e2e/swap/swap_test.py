"""run --swap: an answer that moves between backends on its way is the answer of one that stays, for each pair of cpu,
reference and cuda (by emulation); a move that fails leaves it where it is. usage: swap_test.py DOVETAIL PLUGINS
"""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from program_case import ProgramCase  # noqa: E402

PLUGINS = sys.argv.pop(2)
ProgramCase.dovetail = sys.argv.pop(1)
DEMO = pathlib.Path(__file__).resolve().parents[3] / "configs" / "demo.yaml"
PROMPT = "It is a truth universally acknowledged"
GREEDY = ["--set", "sampler=[greedy]", "--set", f"plugins.path=[{PLUGINS}]"]
FLOAT = ["--set", "kv_cache.dtype=float32"]
CUDA = "cuda_emulated"


class Swap(ProgramCase):
    def answer(self, *args, n=24):
        return json.loads(self.good("run", PROMPT, "--json", "-n", n, *GREEDY, *args))

    def swapped(self, *swaps, args=(), n=24):
        """The answer that moves as `swaps` say, and what it says of each move."""
        options = [word for swap in swaps for word in ("--swap", swap)]
        answer = self.answer(*args, *options, n=n)
        self.assertEqual([f"{s['after_tokens']}:{s['backend']}" for s in answer["swaps"]], list(swaps))
        self.assertFalse([s for s in answer["swaps"] if "error" in s])
        return answer

    def failed(self, *args, env=None):
        """The ids of an answer with a move that fails, and the one line that says so."""
        self.env.update(env or {})
        done = self.program("run", PROMPT, "--json", "-n", 24, *GREEDY, *FLOAT, *args)
        said = done.stderr.decode()
        self.assertEqual((done.returncode, said.count("\n")), (0, 1), said)
        answer = json.loads(done.stdout)
        self.assertEqual([s["backend"] for s in answer["swaps"] if "error" in s], ["cpu"], "where it stayed")
        self.assertIn(answer["swaps"][0]["error"], said)
        return answer["ids"], said

    def test_there_and_back_says_the_same(self):
        stays = self.answer(*FLOAT)
        self.assertNotIn("swaps", stays)
        for there in ("reference", CUDA):
            moves = self.swapped(f"6:{there}", "12:cpu", args=FLOAT)
            self.assertEqual(moves["ids"], stays["ids"], there)
            self.assertEqual(moves["text"], stays["text"], there)

    def test_from_each_to_each(self):
        stays = self.answer(*FLOAT)["ids"]
        for first, second in (("reference", CUDA), (CUDA, "reference"), (CUDA, "cpu")):
            begins = ["--set", "backend.plugin=" + first]
            self.assertEqual(self.swapped(f"8:{second}", args=[*FLOAT, *begins], n=12)["ids"], stays[:12], (first, second))

    def test_what_goes_over_is_what_was_cached(self):
        n_prompt = self.answer(*FLOAT, n=1)["prompt_tokens"]
        swaps = self.swapped("0:reference", "1:cpu", "9:reference", args=FLOAT)["swaps"]
        self.assertEqual([s["cache_tokens"] for s in swaps], [0, n_prompt, n_prompt + 8], "the last token is not cached yet")
        config = json.loads((DEMO.parent / "demo" / "config.json").read_text(encoding="utf-8"))
        row = config["num_hidden_layers"] * 2 * config["num_key_value_heads"] * config["head_dim"] * 4
        self.assertEqual([s["state_bytes"] for s in swaps], [row * s["cache_tokens"] for s in swaps])

    def test_an_int8_cache_and_packed_weights_go_over(self):
        for options in (["--set", "kv_cache.dtype=int8"], [*FLOAT, "--set", "backend.weights=int8"]):
            stays = self.answer(*options)["ids"]
            self.assertEqual(self.swapped("6:reference", "12:cpu", args=options)["ids"], stays, options)
            self.assertEqual(self.swapped(f"3:{CUDA}", "6:cpu", args=options, n=10)["ids"], stays[:10], options)

    def test_a_draw_is_that_of_its_seed(self):
        draws = ["--set", "sampler=[{repetition_penalty: 1.3}, {temperature: 0.7}]", "--seed", "5", *FLOAT]
        self.assertEqual(self.swapped("7:reference", "15:cpu", args=draws)["ids"], self.answer(*draws)["ids"])

    def test_a_backend_that_cannot_be_loaded_leaves_the_answer_going_on(self):
        stays = self.answer(*FLOAT)["ids"]
        ids, said = self.failed("--swap", "5:referense")
        self.assertEqual(ids, stays)
        self.assertRegex(said, r'^error: backend: still on cpu \(.*\): --swap: no backend plugin "referense" is installed.*"reference"')
        ids, said = self.failed("--swap", "5:nope", "--swap", "9:reference")
        self.assertEqual(ids, stays)

    def test_a_device_without_memory_leaves_the_answer_going_on(self):
        stays = self.answer(*FLOAT)["ids"]
        too_few, enough = self.device_bytes()
        for limit in (1, enough // 4, enough // 2, too_few):  # amid weights, states, the program
            ids, said = self.failed("--swap", f"5:{CUDA}", env={"DOVETAIL_TEST_DEVICE_BYTES": str(limit)})
            self.assertEqual(ids, stays, limit)
            self.assertRegex(said, r"^error: backend: still on cpu \(.*\): .*out of memory", limit)
        self.env["DOVETAIL_TEST_DEVICE_BYTES"] = str(enough)
        self.assertEqual(self.swapped(f"5:{CUDA}", "7:cpu", args=FLOAT)["ids"], stays)

    def device_bytes(self):
        """Limits under which the model does not run on the emulated device, and does: 64 KiB apart, found by halving."""
        too_few, enough = 0, 1 << 27
        while enough - too_few > 1 << 16:
            middle = (too_few + enough) // 2
            self.env["DOVETAIL_TEST_DEVICE_BYTES"] = str(middle)
            done = self.program("run", PROMPT, "-n", 1, *GREEDY, *FLOAT, "--set", "backend.plugin=" + CUDA)
            too_few, enough = (too_few, middle) if done.returncode == 0 else (middle, enough)
        del self.env["DOVETAIL_TEST_DEVICE_BYTES"]
        return too_few, enough

    def test_a_cache_that_does_not_fit_there_leaves_the_answer_going_on(self):
        plan = json.loads(self.good("plan", DEMO, "--json", *GREEDY, "--set", "kv_cache.dtype=auto"))
        n_tokens = plan["available_bytes"] * 6 // 10 // plan["kv_bytes_per_token"]  # of bf16: as float32 twice as much
        large = ["--set", f"kv_cache.max_tokens={n_tokens}", "--set", "kv_cache.dtype=auto"]
        ids, said = self.failed(*large, "--swap", "5:reference")
        self.assertEqual(ids, self.answer("--set", "kv_cache.dtype=auto")["ids"])
        self.assertRegex(said, r"^error: backend: still on cpu \(.*\): the model needs .* GiB of memory of its own, .* is free")

    def test_people_read_it_after_the_answer(self):
        stays = self.good("run", PROMPT, "-n", 24, *GREEDY, *FLOAT)
        done = self.program("run", PROMPT, "-n", 24, *GREEDY, *FLOAT, "--swap", "6:reference")
        self.assertEqual((done.returncode, done.stdout), (0, stays))
        self.assertRegex(done.stderr.decode(), r"^after 6 tokens on reference: the answer goes on, its \d+ tokens of cache "
                                               r"\(.* KiB\) went over, [\d.]+ s\n$")

    def test_what_is_not_reached_is_a_warning(self):
        done = self.program("run", PROMPT, "-n", 5, *GREEDY, "--swap", "50:reference")
        self.assertEqual((done.returncode, done.stderr), (0, b"warning: backend: the answer ended before --swap 50:reference\n"))

    def test_wrong_options(self):
        for wrong in ("reference", "x:reference", ":reference", "5:", "-1:reference", "5 :cpu", "99999999999:cpu"):
            self.bad(2, ["run", PROMPT, "--swap", wrong], f'--swap: got "{wrong}"', "expected TOKENS:BACKEND")


if __name__ == "__main__":
    unittest.main()
