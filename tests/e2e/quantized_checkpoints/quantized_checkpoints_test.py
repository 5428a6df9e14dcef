"""FP8, GPTQ and AWQ checkpoints through the program: what plan says is what is taken, backend.weights packs them anew, they
may lie in shards and be quantised further; each fault is one line. That their numbers are right is tests/golden's
matter. usage: quantized_checkpoints_test.py DOVETAIL
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import program_case  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
DOVETAIL = sys.argv.pop(1)
ALL = ("qwen3_fp8", "qwen3_gptq", "qwen2_gptq_reordered", "llama_gptq8", "llama_awq")
IDS = ",".join(str(i * 7 % 160) for i in range(1, 40))
FILE, UNSUPPORTED = 3, 4
MIB = 1 << 20
SLACK = 10 * MIB  # less than the FP8 matrices of the test that uses it


def read(path):
    data = path.read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]) for name, t in header.items()}


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, part) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Quantized(program_case.ProgramCase):
    dovetail = DOVETAIL

    def bad_model(self, code, model, *words):
        self.bad(code, ["logits", model, "--ids", "1,2", "-o", self.folder / "none"], *words)

    def logits(self, model, *options):
        out = self.folder / "logits.safetensors"
        self.good("logits", model, "--ids", IDS, "-o", out, *options)
        raw = read(out)["logits"][2]
        return struct.unpack(f"<{len(raw) // 4}f", raw)

    def distance(self, got, want):
        """Root of the mean square of the difference, as a share of that of what is wanted."""
        return (sum((a - b) ** 2 for a, b in zip(got, want)) / sum(b * b for b in want)) ** 0.5

    def copy(self, name, **quantization):
        """A copy of a golden checkpoint with some of its quantization_config changed."""
        folder = self.folder / name
        shutil.copytree(GOLDEN / name, folder)
        config = json.loads((folder / "config.json").read_text())
        config["quantization_config"].update(quantization)
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def plan(self, model, *options):
        return json.loads(self.good("plan", model, "--json", *options))

    def test_other_formats_are_near_the_numbers_as_they_are(self):
        bounds = {(): 0.02, ("--set", "backend.weights=bf16"): 0.02, ("--set", "backend.weights=int8"): 0.03, ("--set", "backend.weights=int4"): 0.3}
        for name in ALL:
            exact = self.logits(GOLDEN / name, "--set", "backend.weights=float32", "--set", "kv_cache.dtype=float32")
            for options, bound in bounds.items():
                for backend in ("cpu", "reference"):
                    with self.subTest(name, options=options, backend=backend):
                        got = self.logits(GOLDEN / name, *options, "--set", f"backend.plugin={backend}")
                        self.assertLess(self.distance(got, exact), bound)

    def test_a_symmetric_gptq_matrix_is_multiplied_as_it_is(self):
        for name, detail, bits in (("qwen3_gptq", "14 of gptq int4, groups of 32 as q4_0", 4.5), ("llama_gptq8", "of gptq_v2 int8, groups of", 8.5)):
            item = next(i for i in self.plan(GOLDEN / name)["items"] if i["name"] == "weights, repacked")
            self.assertIn(detail, item["detail"])
            config = json.loads((GOLDEN / name / "config.json").read_text())
            matrices = 2 * (2 * config["hidden_size"] * config["head_dim"] * (config["num_attention_heads"] + config["num_key_value_heads"]) + 3 * config["hidden_size"] * config["intermediate_size"])
            self.assertLess(item["bytes"], matrices * bits / 8 + 16384)  # norms and biases, which become float32
            whole = next(i for i in self.plan(GOLDEN / name, "--set", "backend.weights=float32")["items"] if i["name"] == "weights, repacked")
            self.assertGreater(whole["bytes"], matrices * 4)

    def test_plan_says_what_expanded_weights_take(self):
        fp8 = GOLDEN / "qwen3_fp8"
        shapes = [shape for dtype, shape, _ in read(fp8 / "model.safetensors").values() if dtype == "F8_E4M3"]
        sizes = {}
        for weights, each in (("float32", 4), ("bf16", 2), ("int8", 33 / 32)):
            plan = self.plan(fp8, "--set", f"backend.weights={weights}")
            item = next(i for i in plan["items"] if i["name"] == "weights, repacked")
            self.assertTrue(item["private"])
            sizes[weights] = item["bytes"]
            n = sum(rows * k * (4 if weights == "int8" and k % 32 else each) for rows, k in shapes)  # int8 has blocks of 32
            self.assertGreaterEqual(item["bytes"], n)
            self.assertLess(item["bytes"], n * 1.1 + 2 * 160 * 160 * 2 + 16384, weights)  # int8: the head and embedding too
        self.assertIn("14 of f8_e4m3, blocks of 128 x 128 as float32", json.dumps(self.plan(fp8)))
        self.assertGreater(sizes["float32"], sizes["bf16"])
        self.assertGreater(sizes["bf16"], sizes["int8"])
        text = self.good("inspect", fp8).decode()
        self.assertIn("14 of f8_e4m3, blocks of 128 x 128", text)

    def test_no_weight_is_there_twice(self):
        folder = self.folder / "big"
        subprocess.run([sys.executable, ROOT / "tools" / "make_checkpoint.py", folder, "--hidden-size", "512", "--intermediate-size", "2048",
                        "--num-hidden-layers", "6", "--vocab-size", "256", "--max-position-embeddings", "512", "--tokenizer", "none"], check=True, capture_output=True)
        os.remove(folder / "generation_config.json")  # it and config.json are of another vocabulary
        tensors, n_bytes = {}, 0
        table = bytes(b if b & 0x7F != 0x7F else b ^ 1 for b in range(256))  # no NaN
        for name, (dtype, shape, part) in read(folder / "model.safetensors").items():
            if ".layers." in name and len(shape) == 2:
                tensors[name] = ("F8_E4M3", shape, os.urandom(shape[0] * shape[1]).translate(table))
                blocks = [-(-d // 128) for d in shape]
                tensors[name + "_scale_inv"] = ("F32", blocks, struct.pack("<f", 1e-4) * (blocks[0] * blocks[1]))
                n_bytes += shape[0] * shape[1]
            else:
                tensors[name] = (dtype, shape, part)
        self.assertGreater(n_bytes, 2 * SLACK)
        write(folder / "model.safetensors", tensors)
        config = json.loads((folder / "config.json").read_text())
        config.update(eos_token_id=0, quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
        (folder / "config.json").write_text(json.dumps(config))

        def peak(*args):  # by a small process: a child begins with the memory of the one that starts it
            code = ("import os, subprocess, sys; child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL); "
                    "_, status, usage = os.wait4(child.pid, 0); print(usage.ru_maxrss); os._exit(os.waitstatus_to_exitcode(status))")
            done = subprocess.run([sys.executable, "-uc", code, DOVETAIL, *map(str, args)], capture_output=True, check=True, env=self.env)
            return int(done.stdout) * 1024

        for options in ((), ("--set", "backend.weights=bf16"), ("--set", "backend.weights=int8"), ("--set", "backend.plugin=reference", "--set", "backend.weights=int8")):
            options = (*options, "--set", "backend.huge_pages=false", "--set", "backend.weight_cache_gib=0", "--set", "context=64", "--set", "scheduler={max_batch_tokens: 4, max_seqs: 1, prefill_chunk: 4}")
            with self.subTest(options=options):
                plan = self.plan(folder, *options)
                empty = peak("plan", folder, *options)
                full = peak("logits", folder, "--ids", "1,2,3", "-o", self.folder / "logits.safetensors", *options)
                self.assertLess(full - empty, plan["private_bytes"] + plan["mapped_bytes"] + SLACK)

    def test_parts_may_lie_in_different_shards(self):
        want = self.logits(GOLDEN / "llama_awq")
        folder = self.copy("llama_awq")
        tensors = read(folder / "model.safetensors")
        os.remove(folder / "model.safetensors")
        names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
        home = {name: names[name.endswith((".qweight", "norm.weight"))] for name in tensors}
        for file in names:
            write(folder / file, {k: v for k, v in tensors.items() if home[k] == file})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": home}))
        self.assertEqual(self.logits(folder), want)
        os.remove(folder / names[0])
        self.bad_model(FILE, folder, names[0], "download incomplete?")

    def test_a_folder_is_quantised_further(self):
        for name in ("qwen3_fp8", "llama_awq"):
            with self.subTest(name):
                out = self.folder / f"{name}-int8"
                self.good("quantize", GOLDEN / name, "-o", out, "--weights", "int8")
                self.assertEqual(self.logits(out), self.logits(GOLDEN / name, "--set", "backend.weights=int8"))

    def test_the_kept_weights_are_those_of_this_reading(self):
        folder = self.copy("qwen2_gptq_reordered")
        cached = self.logits(folder)
        config = json.loads((folder / "config.json").read_text())
        config["quantization_config"]["checkpoint_format"] = "gptq_v2"  # other zeros from the same bytes
        (folder / "config.json").write_text(json.dumps(config))
        self.assertGreater(self.distance(self.logits(folder), cached), 0.01)

    def test_each_fault_is_one_line(self):
        self.bad_model(UNSUPPORTED, self.copy("qwen3_gptq", bits=3), "config.json", '"quantization_config.bits" is 3, this reader knows 4 and 8')
        self.bad_model(UNSUPPORTED, self.copy("qwen3_fp8", quant_method="bitsandbytes"), '"bitsandbytes", this reader knows fp8, gptq, awq')
        shutil.rmtree(self.folder / "qwen3_fp8")
        self.bad_model(FILE, self.copy("qwen3_fp8", weight_block_size=[64, 128]), "weight_scale_inv", "expected [", "one for each block of 64 x 128")
        self.bad_model(FILE, self.copy("llama_awq", group_size=64), ".scales", "in groups of 64")
        shutil.rmtree(self.folder / "llama_awq")
        folder = self.copy("llama_awq")
        tensors = read(folder / "model.safetensors")
        gone = "model.layers.1.mlp.up_proj.qzeros"
        write(folder / "model.safetensors", {k: v for k, v in tensors.items() if k != gone})
        self.bad_model(FILE, folder, f'has no "{gone}" beside it', "download incomplete?")
        config = json.loads((folder / "config.json").read_text())
        del config["quantization_config"]
        (folder / "config.json").write_text(json.dumps(config))
        self.bad_model(FILE, folder, 'config.json has no "quantization_config"')
        done = self.program("logits", GOLDEN / "qwen3_fp8", "--ids", "1", "-o", self.folder / "none", "--set", "backend.weights=f16")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
