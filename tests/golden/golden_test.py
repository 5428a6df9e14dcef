"""The official implementation's numbers: `dovetail logits` against the goldens, on both backends.

float32 logits and layer outputs within 1e-4, greedy tokens identical; one by one, in chunks and in one
batch the very same bytes. usage: golden_test.py DOVETAIL
"""
import array
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
DOVETAIL = sys.argv.pop(1)
BOUND = 1e-4
SIZES = {"F32": ("f", 4), "I64": ("q", 8)}


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + n])
    out = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        code, size = SIZES[t["dtype"]]
        values = array.array(code)
        assert values.itemsize == size
        values.frombytes(data[8 + n + begin:8 + n + end])
        out[name] = (t["shape"], values)
    return out


def logits(model, ids, backend, *options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "logits.safetensors"
        subprocess.run([DOVETAIL, "logits", str(GOLDEN / model), "--ids", ",".join(map(str, ids)), "-o", str(out), "--layers",
                        "--set", f"backend.plugin={backend}", *options], check=True, stdout=subprocess.DEVNULL)
        return read_safetensors(out)


def argmax_rows(shape, values):
    width = shape[1]
    return [max(range(width), key=lambda i: values[r * width + i]) for r in range(shape[0])]


class Golden(unittest.TestCase):
    def near(self, got, want, what):
        self.assertEqual(got[0], want[0], what)
        worst = max(abs(a - b) for a, b in zip(got[1], want[1]))
        self.assertLessEqual(worst, BOUND, what)

    def check(self, model, reference, backend, *exact):
        golden = read_safetensors(GOLDEN / reference / "golden.safetensors")
        ids = list(golden["ids"][1])
        batch = logits(model, ids, backend, *exact)
        self.near(batch["logits"], golden["logits"], f"{model} {backend} logits")
        layers = [name for name in golden if name.startswith("layer_out.")]
        self.assertGreaterEqual(len(layers), 2)
        for name in layers:
            self.near(batch[name], golden[name], f"{model} {backend} {name}")
        self.assertEqual(argmax_rows(*batch["logits"]), argmax_rows(*golden["logits"]), f"{model} {backend} greedy")
        for options in (["--steps"], ["--chunk", "7"], ["--chunk", "16"]):
            again = logits(model, ids, backend, *exact, *options)
            for name, (shape, values) in batch.items():
                self.assertEqual(again[name][1], values, f"{model} {backend} {name} with {options} is not bit-equal")
        # The reference's own cached decode, from the position where it began.
        shape, decoded = golden["dec_logits"]
        skip = len(golden["logits"][1]) - len(decoded)
        self.near((shape, again["logits"][1][skip:]), golden["dec_logits"], f"{model} {backend} decode")


class HalfPrecision(unittest.TestCase):
    """A float16 checkpoint: the same bytes of logits as its values in float32."""

    def write(self, folder, dtype):
        raw = (GOLDEN / "qwen3" / "model.safetensors").read_bytes()
        (n,) = struct.unpack_from("<Q", raw)
        header, tensors, data = json.loads(raw[8:8 + n]), {}, b""
        for name, t in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + n + offset for offset in t["data_offsets"])
            halves = array.array("H", struct.pack(f"<{(end - begin) // 4}e", *struct.unpack(f"<{(end - begin) // 4}f", raw[begin:end])))
            if name == "model.embed_tokens.weight":  # rows of subnormals, of zeros of both signs, and the largest
                halves[0:64] = array.array("H", [0x0001, 0x83ff, 0x0200, 0x8001] * 16)
                halves[64:128] = array.array("H", [0x0000, 0x8000, 0x7bff, 0xfbff] * 16)
            part = halves.tobytes()
            if dtype == "F32":
                part = struct.pack(f"<{len(halves)}f", *struct.unpack(f"<{len(halves)}e", part))
            tensors[name] = {"dtype": dtype, "shape": t["shape"], "data_offsets": [len(data), len(data) + len(part)]}
            data += part
        text = json.dumps(tensors).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
        (folder / "config.json").write_bytes((GOLDEN / "qwen3" / "config.json").read_bytes())
        return folder

    def test_float16_weights_are_their_float32_values(self):
        for backend in ("reference", "cpu"):
            with tempfile.TemporaryDirectory() as folder, self.subTest(backend):
                got = {dtype: logits(self.write(pathlib.Path(folder), dtype), range(24), backend, "--set", "kv_cache.dtype=float32")
                       for dtype in ("F16", "F32")}
                self.assertGreater(max(map(abs, got["F32"]["logits"][1])), 0.1)
                self.assertEqual(got["F16"], got["F32"])


class Configs(unittest.TestCase):
    """What config.json may say in other words, and what no architecture takes."""

    def with_config(self, folder, model, config):
        folder = pathlib.Path(folder)
        (folder / "model.safetensors").write_bytes((GOLDEN / model / "model.safetensors").read_bytes())
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def read(self, model):
        return json.loads((GOLDEN / model / "config.json").read_text())

    def test_the_spelling_of_published_files_gives_the_same_bytes(self):
        for model in ("llama3", "llama_tied", "qwen2", "qwen2_window", "mistral"):
            config = self.read(model)
            rope = config.pop("rope_parameters")
            config["rope_theta"] = rope.pop("rope_theta")
            config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
            config.pop("layer_types", None)
            if config.get("head_dim") == config["hidden_size"] // config["num_attention_heads"]:
                del config["head_dim"]
            with tempfile.TemporaryDirectory() as folder, self.subTest(model):
                self.assertEqual(logits(self.with_config(folder, model, config), range(40), "cpu"), logits(model, range(40), "cpu"))

    def test_every_architecture_reads_every_spelling(self):  # B041, B044, B046, B047 of public reports
        """The same bytes from the same model in other words; its golden's own words are one of them."""
        for model in ("qwen3_tied", "llama3", "llama_tied", "qwen2_window", "mistral", "gemma3"):
            config, want = self.read(model), logits(model, range(12), "cpu")
            ropes = config["rope_parameters"]
            both_thetas = {} if model == "gemma3" else {"rope_theta": ropes["rope_theta"]}  # gemma3 has one a kind of layer
            type_of = lambda rope: {("type" if k == "rope_type" else k): v for k, v in rope.items()}
            nested = {k: config[k] for k in ("model_type", "architectures")}
            spellings = {
                "theta in both places": {**config, **both_thetas},
                "type for rope_type": {**config, "rope_parameters": {k: type_of(v) for k, v in ropes.items()} if model == "gemma3" else type_of(ropes)},
                "text_config": {**nested, "text_config": {k: v for k, v in config.items() if k not in nested}},
                "torch_dtype": {**{k: v for k, v in config.items() if k != "dtype"}, "torch_dtype": "float32"},
                "both dtypes": {**config, "dtype": "float32", "torch_dtype": "bfloat16"},
                "dtype auto": {**config, "dtype": "auto"},
                "torch.float32": {**config, "dtype": "torch.float32"},
                "dtype null": {**config, "dtype": None},
                "eos as a list": {**config, "eos_token_id": [2, 5]},
                "no word of tying": {k: v for k, v in config.items() if k != "tie_word_embeddings"},
            }
            if config.get("head_dim", 0) * config["num_attention_heads"] == config["hidden_size"]:
                spellings["head_dim null"] = {**config, "head_dim": None}
                spellings["no head_dim"] = {k: v for k, v in config.items() if k != "head_dim"}
            for name, spelling in spellings.items():
                with tempfile.TemporaryDirectory() as folder, self.subTest(f"{model}: {name}"):
                    self.assertEqual(logits(self.with_config(folder, model, spelling), range(12), "cpu"), want)

    def test_what_a_file_says_twice_must_agree(self):  # B041, B044, B047
        rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
        same = {**self.read("llama3"), "rope_scaling": {"type": "llama3", **{k: v for k, v in rope.items() if k != "rope_type"}}}
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(logits(self.with_config(folder, "llama3", same), range(12), "cpu"), logits("llama3", range(12), "cpu"))
        for model in ("qwen3", "llama3", "qwen2", "mistral"):
            for change, message in (({"rope_theta": 7.0}, '"rope_theta" is given twice'),
                                    ({"rope_scaling": {**rope, "factor": 2.0}}, '"rope_scaling" and "rope_parameters" say different things'),
                                    ({"dtype": "bf16x"}, '"dtype" is the string "bf16x"'),
                                    ({"head_dim": None, "num_attention_heads": 3, "num_key_value_heads": 1}, '"head_dim" is missing and "hidden_size" 64 is not a multiple')):
                self.refused(model, change, message)
        for model in ("qwen3", "llama3", "qwen2", "mistral", "gemma3"):
            self.refused(model, {"head_dim": 8}, "(n_heads 4 * head_dim 8, d_model)")
        for model in ("qwen3_tied", "llama_tied", "qwen2_window", "gemma3"):  # B046 (c): no head, and not tied
            self.refused(model, {"tie_word_embeddings": False}, 'weight "lm_head.weight" is missing')

    def test_gemma3_in_the_spelling_of_published_files_gives_the_same_bytes(self):
        config = self.read("gemma3")
        for key in ("layer_types", "_sliding_window_pattern", "tie_word_embeddings"):
            del config[key]
        ropes = config.pop("rope_parameters")
        config.update(sliding_window_pattern=6, rope_theta=ropes["full_attention"]["rope_theta"],
                      rope_local_base_freq=ropes["sliding_attention"]["rope_theta"], rope_scaling=None)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(logits(self.with_config(folder, "gemma3", config), range(40), "cpu"), logits("gemma3", range(40), "cpu"))

    def test_norm_weights_of_gemma3_may_include_the_one(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = self.with_config(folder, "gemma3", {**self.read("gemma3"), "norm_weights_include_one": True})
            raw = bytearray((folder / "model.safetensors").read_bytes())
            (n,) = struct.unpack_from("<Q", raw)
            for name, t in json.loads(raw[8:8 + n]).items():
                if "norm" in name:
                    at, count = 8 + n + t["data_offsets"][0], t["shape"][0]
                    struct.pack_into(f"<{count}f", raw, at, *(1.0 + v for v in struct.unpack_from(f"<{count}f", raw, at)))
            (folder / "model.safetensors").write_bytes(raw)
            got, want = (logits(model, range(40), "cpu")["logits"][1] for model in (folder, "gemma3"))
            self.assertLess(max(abs(a - b) for a, b in zip(got, want)), BOUND)

    def test_a_window_matters_only_where_a_layer_has_one(self):
        changes = {"llama3": {"sliding_window": 8}, "mistral": {"sliding_window": None}, "qwen2_window": {"use_sliding_window": False, "layer_types": None}}
        for model, change in changes.items():
            config = self.read(model)
            with tempfile.TemporaryDirectory() as folder, self.subTest(model):
                got = logits(self.with_config(folder, model, {**config, **change}), range(24), "cpu")["logits"][1]
                want = logits(model, range(24), "cpu")["logits"][1]
                n = 8 * config["vocab_size"]  # all of the first 8 positions are in the window
                self.assertEqual(got[:n], want[:n])
                self.assertNotEqual(got[n:], want[n:])

    def test_what_is_not_computed_is_refused_by_name(self):
        cases = (("llama3", {"hidden_act": "gelu"}, '"hidden_act" is "gelu"'),
                 ("llama3", {"rope_interleaved": True}, '"rope_interleaved" is true'),
                 ("llama3", {"partial_rotary_factor": 0.5}, '"partial_rotary_factor" is 0.5'),
                 ("llama3", {"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, 'rope type "longrope" is not known'),
                 ("qwen2", {"layer_types": ["sliding_attention", "full_attention"]}, '"layer_types" has "sliding_attention"'),
                 ("qwen2", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}, '"rope_parameters" has a map for each'),
                 ("mistral", {"layer_types": ["full_attention", "full_attention"]}, '"layer_types" is given'),
                 ("mistral", {"sliding_window": "wide"}, '"sliding_window" is a string'),
                 ("gemma3", {"final_logit_softcapping": 30.0}, '"final_logit_softcapping" is given'),
                 ("gemma3", {"use_bidirectional_attention": True}, '"use_bidirectional_attention" is true'),
                 ("gemma3", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, '"rope_parameters" is one set'),
                 ("gemma3", {"hidden_activation": "gelu"}, '"hidden_activation" is "gelu"'))
        for model, change, message in cases:
            self.refused(model, change, message)

    def refused(self, model, change, message):
        with tempfile.TemporaryDirectory() as folder, self.subTest(f"{model}: {message}"):
            self.with_config(folder, model, {**self.read(model), **change})
            got = subprocess.run([DOVETAIL, "logits", folder, "--ids", "1,2", "-o", f"{folder}/out.safetensors"],
                                 capture_output=True, text=True)
            self.assertNotEqual(got.returncode, 0)
            self.assertIn(message, got.stderr)


# Quantised checkpoints, with their numbers as they are: a GPTQ matrix would otherwise be multiplied in its own four bits, by
# activations in eight.
EXACT = ("--set", "backend.weights=float32", "--set", "kv_cache.dtype=float32")


def add(model, reference, backend, *exact):
    setattr(Golden, f"test_{model}_on_{backend}", lambda self: self.check(model, reference, backend, *exact))


MODELS = ("qwen3", "qwen3_tied", "qwen3_yarn", "llama3", "llama_tied", "qwen2", "qwen2_window", "mistral", "gemma3")
for model_name, reference_name in [*((name, name) for name in MODELS), ("qwen3_sharded", "qwen3")]:
    for backend_name in ("reference", "cpu"):
        add(model_name, reference_name, backend_name)

for quantized in ("qwen3_fp8", "qwen3_gptq", "qwen2_gptq_reordered", "llama_gptq8", "llama_awq"):
    for backend_name in ("reference", "cpu"):
        add(quantized, quantized, backend_name, *EXACT)

if __name__ == "__main__":
    unittest.main()
