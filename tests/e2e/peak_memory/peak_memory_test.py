"""A process takes no more memory than `dovetail plan` says. usage: peak_memory_test.py DOVETAIL

What a process takes without any weights (program, libraries, tokenizer) is measured on `plan` itself,
which opens all of that and stops before weights are loaded.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEMO = ROOT / "configs" / "demo"
DOVETAIL = sys.argv.pop(1)
MIB = 1 << 20
PIECE = 32 * MIB  # weights that move to large pages are there twice, a piece at a time
SLACK = 16 * MIB  # stacks, the allocator's rounding, the request itself
BAR = 250 * 10**6  # over the weights in use, at a context of 512
SHAPE = {"hidden-size": 256, "intermediate-size": 1024, "num-hidden-layers": 12, "num-attention-heads": 8,
         "num-key-value-heads": 4, "head-dim": 64}  # and the vocabulary of Qwen3: 106 MB


class PeakMemory(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def peak(self, *args):
        """The most memory that the program held at once, and what it printed."""
        out = pathlib.Path(self.folder, "out.json")
        env = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        with open(out, "wb") as file:
            child = subprocess.Popen([DOVETAIL, *args, "--json"], stdout=file, env=env)
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        return usage.ru_maxrss * 1024, json.loads(out.read_text())

    def within_the_plan(self, model, *settings):
        settings = [word for s in ("context=512", *settings) for word in ("--set", s)]
        base, plan = self.peak("plan", model, *settings)
        ids = ",".join(str(i % 200 + 1) for i in range(480))
        peak, answer = self.peak("run", model, *settings, "--set", "generate.ignore_eos=true", "--ids", ids, "-n", "24")
        self.assertEqual(len(answer["ids"]), 24)
        weights = plan["mapped_bytes"] + sum(i["bytes"] for i in plan["items"] if i["name"] == "weights, repacked")
        planned = plan["mapped_bytes"] + plan["private_bytes"]
        numbers = f"peak {peak / MIB:.0f} MiB, without a model {base / MIB:.0f} MiB, planned {planned / MIB:.0f} MiB, weights {weights / MIB:.0f} MiB"
        print(f"{self.id().split('.')[-1]}: {numbers}")
        self.assertGreater(peak, weights, numbers)  # all of them are read
        self.assertLessEqual(peak - base, planned + min(weights, PIECE) + SLACK, numbers)
        self.assertLessEqual(peak - weights, BAR, numbers)

    def test_the_demo_model_stays_within_its_plan(self):
        self.within_the_plan(str(DEMO))

    def test_a_larger_model_stays_within_its_plan(self):
        model = os.path.join(self.folder, "model")
        options = [word for key, n in SHAPE.items() for word in ("--" + key, str(n))]
        subprocess.run([sys.executable, str(ROOT / "tools" / "make_checkpoint.py"), model, *options], check=True, capture_output=True)
        self.within_the_plan(model)


if __name__ == "__main__":
    unittest.main()
