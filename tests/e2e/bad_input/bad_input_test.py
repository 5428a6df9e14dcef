"""Bad input, given to the real program: each gets one clear line on standard error, the documented exit
code and no crash. Faults are named B0xx where a public report describes them. usage: bad_input_test.py DOVETAIL
"""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "qwen3"
SHARDED = ROOT / "tests" / "golden" / "qwen3_sharded"
DOVETAIL = sys.argv.pop(1)
PLUGINS = pathlib.Path(DOVETAIL).resolve().parents[1] / "lib" / "dovetail" / "plugins"
FAILURE, USAGE, FILE, UNSUPPORTED, MEMORY, INTERRUPTED = 1, 2, 3, 4, 5, 130  # core/cli/command.hpp
LONG_PROMPT = "It is a truth universally acknowledged, that a single man in possession of a good fortune"
LEAST_CASES = 170
n_cases = 0


class BadInput(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.environment = {}

    def program(self, *args, **options):
        options.setdefault("stdout", subprocess.DEVNULL)
        env = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), **self.environment}  # no verdict of an earlier run
        return subprocess.run([DOVETAIL, *args], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=self.folder, env=env, timeout=60, **options)

    def line(self, result, code, words, n_lines=1):
        """Checks the exit code and the line; `words` must be in it. n_lines: at most, one a fault."""
        global n_cases
        n_cases += 1
        text = result.stderr.decode("utf-8")  # always valid
        self.assertIn(result.returncode, code if isinstance(code, tuple) else (code,), text)
        for line in text.splitlines():  # each fault in the same form
            self.assertRegex(line, "^(dovetail|warning): ")
        self.assertTrue(line.startswith("dovetail: "), text)
        self.assertNotIn("internal error", text)
        self.assertTrue(text.endswith("\n"), text)
        self.assertLessEqual(text.count("\n"), n_lines, text)
        self.assertNotIn("\n\n", text)
        self.assertLess(len(text), 1000 * n_lines, text)
        for word in words:
            self.assertRegex(text, word) if hasattr(word, "pattern") else self.assertIn(word, text)

    def bad(self, code, args, *words, n_lines=1):
        with self.subTest(args=[str(a)[:80] for a in args]):
            self.line(self.program(*args), code, words, n_lines)

    def good(self, *args):
        global n_cases
        n_cases += 1
        result = self.program(*args)
        self.assertEqual((result.returncode, result.stderr), (0, b""))


class Configs(BadInput):
    def bad_config(self, text, *words, n_lines=1):
        path = self.folder / "c.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with self.subTest(text=text[:60]):
            self.bad(USAGE, ["config", "check", "c.yaml"], "c.yaml:", *words, n_lines=n_lines)

    def test_a_missing_config_is_named(self):
        for command in (["run", "nope.yaml", "hi"], ["plan", "nope.yaml"], ["config", "check", "nope.yaml"]):
            self.bad(FILE, command, "nope.yaml", "does not exist")

    def test_a_config_that_is_missing_below_another_is_named(self):
        (self.folder / "c.yaml").write_text("dovetail: 1\nextends: gone.yaml\n")
        self.bad(FILE, ["config", "check", "c.yaml"], "gone.yaml")

    def test_unknown_keys_get_a_suggestion(self):
        self.bad_config("dovetail: 1\nsampelr: []\n", ":2:1:", '"sampelr"', 'did you mean "sampler"?')
        self.bad_config("dovetail: 1\nkv_cache:\n  max_token: 5\n", ":3:3:", '"max_token"', 'did you mean "max_tokens"?')

    def test_several_faults_get_a_line_each(self):
        self.bad_config("dovetail: 1\nsampelr: []\nkontext: 5\n", '"sampelr"', ":3:1:", '"kontext"', 'did you mean "context"?', n_lines=2)

    def test_a_duplicate_key_names_both_places(self):
        self.bad_config("model: {path: x}\nmodel: {path: y}\n", ":2:1:", '"model" is there twice', "c.yaml:1:1")

    def test_bad_numbers_are_named_with_their_text(self):  # B088, B089
        for value in ("1_000", "010", "09", "0080", "-1", "0", "5.5", "many", "[1]", "1e400", "99999999999999999999", ".inf", ".nan"):
            self.bad_config(f"dovetail: 1\ncontext: {value}\nmodel: {{path: x}}\n", ":2:", "context")
        for value in ("1_000", "1e400", ".inf", ".nan", "hot"):
            self.bad_config(f"dovetail: 1\nsampler:\n  - temperature: {value}\nmodel: {{path: x}}\n", ":3:", "sampler.0.temperature", value)

    def test_broken_syntax_names_line_and_column(self):  # B092
        self.bad_config("model:\n\tpath: x\n", ":2:1:", "tab", "expected spaces")
        self.bad_config("dovetail: 1\n---\ndovetail: 1\n", ":2:1:", "second document")
        self.bad_config("model: {path: [\n", ":2:1:", "not closed")
        self.bad_config("!2", ":1:1:", "tag", "not supported")
        self.bad_config("&a ! *a]:", ":1:")
        self.bad_config("dovetail: *nosuch\n", ":1:11:", "anchor")
        self.bad_config("just words\n", "expected a map")
        self.bad_config("", "nothing in it")
        self.bad_config("# only a comment\n", "nothing in it")

    def test_text_that_is_not_utf8_is_refused(self):
        self.bad_config(b"\xff\xfe", ":1:1:", "UTF-16", "UTF-8")
        self.bad_config(b'model: {path: "\xff\xfe"}\n', ":1:16:", "0xFF", "not valid UTF-8")
        self.bad_config(b"model: {path: a\x00b}\n", ":1:")

    def test_bombs_are_refused_by_a_limit(self):  # B091
        bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))
        self.bad_config(bomb, "more than", "values", "aliases")
        self.bad_config("&x\n- *x\n", ":2:3:", "inside the value")
        self.bad_config("[" * 100000, "nested deeper than")
        self.bad_config("- " * 100000, "nested deeper than")
        self.bad_config("a: " + "x" * 3000000, "limit of")

    def test_bad_settings_on_the_command_line_are_named(self):
        for setting, words in (("context=x", ["--set context"]), ("context", ["context", "="]), ("sampelr=[]", ['"sampelr"', '"sampler"']),
                               ("temperature=1", ["--set temperature", "sampler.0.temperature"]),
                               ("sampler.0.temperatur=1", ["temperatur", "temperature"]), ("context=[", ["--set context"]),
                               ("sampler.plugin=greedy", ["--set sampler.plugin", 'no sampler plugin "plugin" is installed']), ("generate.stop.x=1", ["--set generate.stop.x"]),
                               ("sampler.0.temprature=0", ["--set sampler.0.temprature: sampler.0: got the keys", '"temprature"', 'did you mean "temperature"?'])):
            self.bad(USAGE, ["run", "hi", "-n", "1", "--set", setting], *words)

    def test_classes_and_formats_of_weights_that_nothing_has_are_named(self):
        for setting, words in (("{default: int4, embd: int8}", ['"embd"', "embed_tokens"]), ("{q_porj: int4}", ['"q_porj", did you mean "q_proj"?']),
                               ("int5", ['"int5"']), ("{default: int5}", ['"int5"'])):
            code = UNSUPPORTED if "int5" in setting else USAGE
            (self.folder / "c.yaml").write_text(f"dovetail: 1\nmodel: {{path: {GOLDEN}}}\nbackend: {{plugin: cpu, weights: {setting}}}\n")
            self.bad(code, ["plan", "c.yaml"], "c.yaml:3:24: backend.weights: ", *words)
        for weights in ("{default: int4, embed: int8, k_proj: int8}", "{lm_head: int8}"):
            self.good("plan", str(GOLDEN), "--set", f"backend.weights={weights}")
            self.good("plan", "--set", f"backend.weights={weights}")  # the head is the embedding

    def test_a_mark_and_carriage_returns_are_fine(self):
        (self.folder / "c.yaml").write_bytes(b"\xef\xbb\xbfdovetail: 1\r\ncontext: 64\r\nmodel: {path: x}\r\n")
        self.good("config", "check", "c.yaml")


def write_safetensors(path, header, data=b"", cut=0):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    whole = struct.pack("<Q", len(text)) + text + data
    path.write_bytes(whole[:len(whole) - cut])


def read_header(path):
    raw = path.read_bytes()
    (n,) = struct.unpack_from("<Q", raw)
    return json.loads(raw[8:8 + n]), raw[8 + n:]


class Checkpoints(BadInput):
    def checkpoint(self, source=GOLDEN, **config):
        """A copy of a golden checkpoint; a key of config.json that is None is taken out."""
        folder = self.folder / "m"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        values = {**json.loads((folder / "config.json").read_text()), **config}
        (folder / "config.json").write_text(json.dumps({k: v for k, v in values.items() if v is not None}))
        return folder

    def refused(self, code, *words, n_lines=1):
        self.bad(code, ["logits", "m", "--ids", "1,2", "-o", "out.safetensors"], *words, n_lines=n_lines)
        self.assertFalse((self.folder / "out.safetensors").exists())

    def refused_by_all(self, code, *words, n_lines=1):
        """Whatever opens the checkpoint says the same."""
        self.refused(code, *words, n_lines=n_lines)
        for command in (["plan", "./m"], ["inspect", "./m"], ["run", "./m", "hi"]):
            self.bad(code, command, *words, n_lines=n_lines)

    def tensor(self, spec, *words, data=b"\0" * 16):
        with self.subTest(spec=spec):
            folder = self.checkpoint()
            write_safetensors(folder / "model.safetensors", {"a.weight": spec}, data)
            self.refused_by_all(FILE, "model.safetensors", '"a.weight"', *words)

    def header(self, header, *words, code=FILE, data=b"\0" * 4, n_lines=1):
        with self.subTest(header=header):
            folder = self.checkpoint()
            write_safetensors(folder / "model.safetensors", header, data)
            self.refused_by_all(code, *words, n_lines=n_lines)

    def test_a_span_that_is_not_the_shapes_is_refused(self):  # B025
        self.tensor({"dtype": "F32", "shape": [32, 8], "data_offsets": [0, 65536]}, "65536", "1024", data=b"\0" * 65536)
        self.tensor({"dtype": "F32", "shape": [1000, 1000], "data_offsets": [0, 4]}, "4", "4000000", data=b"\0" * 4)

    def test_dimensions_that_overflow_or_are_no_dimensions_are_refused(self):  # B026
        for shape in ([4294967296, 4294967296], [9223372036854775807, 2], [-1, 4], [2.5], ["4"], "4", None):
            self.tensor({"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}, data=b"")
        for shape in ([0, 2 ** 62, 2 ** 62], [2 ** 62, 2 ** 62, 0], [2 ** 62, 0, 2 ** 62]):  # wherever the zero stands
            self.tensor({"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}, "overflows", data=b"")

    def test_empty_tensors_and_scalars_are_right(self):  # B026
        folder = self.checkpoint()
        header, data = read_header(folder / "model.safetensors")
        n = len(data)
        spare = {"e": {"dtype": "F32", "shape": [0, 4], "data_offsets": [n, n]}, "s": {"dtype": "F32", "shape": [], "data_offsets": [n, n + 4]}}
        write_safetensors(folder / "model.safetensors", {**header, **spare}, data + bytes(4))
        shown = json.loads(self.program("inspect", "./m", "--json", stdout=subprocess.PIPE).stdout)
        self.assertEqual([t["shape"] for t in shown["tensors"] if t["name"] in ("e", "s")], [[0, 4], []])

    def test_names_reach_the_terminal_without_its_controls(self):
        name = "a\n\x1b[2Jb\r\x7f"
        folder = self.checkpoint()
        write_safetensors(folder / "model.safetensors", {name: {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}}, bytes(4))
        for command in (["plan", "./m"], ["inspect", "./m"]):
            self.bad(FILE, command, "model.safetensors", "\\x1b[2Jb", '"F33"')
        header, data = read_header(self.checkpoint() / "model.safetensors")
        spare = {name: {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}}
        write_safetensors(folder / "model.safetensors", {**header, **spare}, data + bytes(4))
        shown = self.program("inspect", "./m", "--tensors", stdout=subprocess.PIPE)
        for control in (b"\x1b", b"\r", b"\x7f"):
            self.assertNotIn(control, shown.stdout + shown.stderr)

    def test_headers_that_are_no_small_json_map_are_refused(self):
        one = b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
        for header in (b"{" + one + b"}x", b"{" + one + b"} {}", b"{" + one, b"{" + one + b",}", b'{"a":' + b"[" * 100000, b'{"a":' + b'{"a":' * 100000,
                       b'{"\xff":1}', b'{"a\x00":1}', b'{"\\ud83d":1}', b"null", b"7", b'"{}"', b"", b" {}", b"{" + one + b",\"b\":1e400}"):
            self.header(header, "model.safetensors")
        for length in (100_000_001, 2 ** 40, 2 ** 64 - 1):
            folder = self.checkpoint()
            (folder / "model.safetensors").write_bytes(struct.pack("<Q", length) + b"{}")
            self.refused_by_all(FILE, "model.safetensors", f"says that its header has {length} bytes, expected at most 100000000")

    def test_holes_overlaps_and_odd_orders_are_refused(self):
        at = lambda begin, end: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}
        for entries, words, n in (({"a": at(0, 4), "b": at(6, 10)}, "a hole that no tensor covers", 10), ({"a": at(0, 4), "b": at(2, 6)}, "inside the tensor before it", 6),
                                  ({"a": at(0, 4), "b": at(0, 4)}, "inside the tensor before it", 4), ({"a": at(0, 4)}, "3 bytes after its last tensor", 7),
                                  ({"a": at(4, 8)}, "a hole that no tensor covers", 8), ({"a": at(0, 4), "b": at(4, 2 ** 40)}, "missing in all; download incomplete?", 8),
                                  ({"a": at(0, 4), "b": at(2 ** 62, 2 ** 62 + 8)}, "a hole", 8)):
            self.header(entries, "model.safetensors", words, data=bytes(n))

    def test_entries_that_say_too_little_or_nonsense_are_refused(self):
        good = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
        for spec in ({**good, "dtype": "F33"}, {**good, "dtype": 7}, {**good, "data_offsets": [0]}, {**good, "data_offsets": [16, 0]},
                     {**good, "data_offsets": [-4, 12]}, {**good, "data_offsets": [16, 32]}, {k: v for k, v in good.items() if k != "dtype"},
                     {k: v for k, v in good.items() if k != "shape"}, {k: v for k, v in good.items() if k != "data_offsets"}, [], 5):
            self.tensor(spec)

    def test_a_duplicate_tensor_is_named(self):  # B028
        entry = b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
        self.header(b"{" + entry + b"," + entry + b"}", "model.safetensors", re.compile('duplicate tensor .a\\b|"a" appears twice'))

    def test_metadata_of_other_kinds_is_refused(self):  # B029
        one = '"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
        self.header(f'{{"__metadata__":{{"a":1}},{one}}}'.encode(), "model.safetensors", "__metadata__")
        self.header(f"{{{one}}}\0\0\0".encode(), "model.safetensors")
        self.header(b"not json", "model.safetensors")
        self.header(b"[]", "model.safetensors")
        self.header(b"\xff\xfe\xfd", "model.safetensors")

    def test_an_empty_file_of_tensors_says_which_are_missing(self):  # B029
        self.header(b"{}", "model.embed_tokens.weight", "missing", "so in 2 more layers", data=b"", n_lines=11)

    def test_empty_metadata_is_fine(self):  # B029
        folder = self.checkpoint()
        header, data = read_header(folder / "model.safetensors")
        write_safetensors(folder / "model.safetensors", {**header, "__metadata__": {}}, data)
        self.good("logits", "m", "--ids", "1,2", "-o", "out.safetensors")

    def test_tensors_at_odd_places_load(self):
        """Older writers did not pad the header: the data begins anywhere, in float32 as in half precision."""
        folder = self.checkpoint()
        expected, _ = self.logits()
        header, data = read_header(folder / "model.safetensors")
        for padding in range(4):
            text = json.dumps(header).encode()
            text += b" " * ((padding - 8 - len(text)) % 4)
            write_safetensors(folder / "model.safetensors", text, data)
            self.assertEqual(self.logits(), (expected, ""))
            plan = json.loads(self.program("plan", "m", "--json", stdout=subprocess.PIPE).stdout)
            mapped = [item["bytes"] for item in plan["items"] if item["name"] == "weights, mapped"]
            self.assertEqual(bool(mapped), padding == 0, plan)

    def test_a_truncated_file_says_how_much_is_missing(self):  # B031
        folder = self.checkpoint()
        header, data = read_header(folder / "model.safetensors")
        for cut in (1, len(data) // 2, len(data)):
            write_safetensors(folder / "model.safetensors", header, data, cut)
            self.refused_by_all(FILE, "model.safetensors", re.compile(r"\b\d+ bytes? (is|are) missing"), "download incomplete?")
        whole = (GOLDEN / "model.safetensors").read_bytes()
        for size in (0, 4, 8, 100):
            (folder / "model.safetensors").write_bytes(whole[:size])
            self.refused(FILE, "model.safetensors")
        for n in (2 ** 64 - 1, 2 ** 63, 10 ** 12):
            (folder / "model.safetensors").write_bytes(struct.pack("<Q", n) + whole[8:])
            self.refused(FILE, "model.safetensors")

    def test_a_missing_shard_is_named(self):  # B037
        (self.checkpoint(SHARDED) / "model-00002-of-00002.safetensors").unlink()
        self.refused_by_all(FILE, "model-00002-of-00002.safetensors", "download incomplete?")

    def edit_index(self, edit):
        folder = self.checkpoint(SHARDED)
        path = folder / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        edit(index["weight_map"])
        path.write_text(json.dumps(index))

    def test_an_index_that_disagrees_with_its_shards_is_refused(self):  # B038
        folder = self.checkpoint(SHARDED)
        shard = folder / "model-00002-of-00002.safetensors"
        header, data = read_header(shard)
        text = json.dumps(header).replace('"lm_head.weight"', '"lm_haed.weight"')
        write_safetensors(shard, text.encode(), data)
        self.refused(FILE, shard.name, '"lm_head.weight"')
        self.edit_index(lambda m: m.update({"lm_head.weight": "model-00001-of-00002.safetensors"}))
        self.refused(FILE, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", '"lm_head.weight"')
        self.edit_index(lambda m: m.pop("lm_head.weight"))
        begin, end = header["lm_head.weight"]["data_offsets"]
        for spec in (v for k, v in header.items() if k != "__metadata__"):
            if spec["data_offsets"][0] >= end:
                spec["data_offsets"] = [offset - (end - begin) for offset in spec["data_offsets"]]
        write_safetensors(shard, {k: v for k, v in header.items() if k != "lm_head.weight"}, data[:begin] + data[end:])
        self.refused(FILE, 'weight "lm_head.weight" is missing', "a checkpoint of another architecture?")

    def logits(self, *settings):
        """The logits of the checkpoint in m, and what the program said."""
        result = self.program("logits", "m", "--ids", "1,2,3", "-o", "out.safetensors", *settings)
        self.assertEqual(result.returncode, 0, result.stderr)
        out = self.folder / "out.safetensors"
        logits = out.read_bytes()
        out.unlink()
        return logits, result.stderr.decode()

    def test_the_index_decides_what_is_used(self):  # B038
        self.checkpoint(SHARDED)
        expected, _ = self.logits()
        shard = self.folder / "m" / "model-00002-of-00002.safetensors"
        header, data = read_header(shard)
        begin, end = header["lm_head.weight"]["data_offsets"]

        def add(path, name):  # lm_head.weight again, as zeros
            header, data = read_header(path)
            header[name] = {"dtype": "F32", "shape": [160, 64], "data_offsets": [len(data), len(data) + 160 * 64 * 4]}
            write_safetensors(path, header, data + bytes(160 * 64 * 4))

        self.assertEqual(end - begin, 160 * 64 * 4)
        add(self.folder / "m" / "model-00001-of-00002.safetensors", "lm_head.weight")
        self.assertEqual(self.logits(), (expected, ""))  # two shards hold it
        add(shard, "extra.weight")
        add(self.folder / "m" / "model-00001-of-00002.safetensors", "extra.bias")
        again, said = self.logits()
        self.assertEqual(again, expected)
        self.assertEqual(said.count("\n"), 1, said)  # warns once
        for word in ("2 tensors", "model.safetensors.index.json", "are not used"):
            self.assertIn(word, said)
        self.edit_index(lambda m: m.pop("lm_head.weight"))  # the shard has it, the index does not say so
        self.refused(FILE, 'warning: format/safetensors: 1 tensor is in the shards but not in', 'weight "lm_head.weight" is missing', n_lines=2)

    def test_shard_names_that_leave_the_folder_are_refused(self):  # B040
        outside = self.folder / "x.safetensors"
        outside.write_bytes((SHARDED / "model-00002-of-00002.safetensors").read_bytes())
        for name in ("../x.safetensors", "../../x.safetensors", str(outside), "a\\..\\x", "a\0b.safetensors", "", 7, None, []):
            with self.subTest(name=name):
                self.edit_index(lambda m: m.update({"lm_head.weight": name}))
                self.refused(FILE, "model.safetensors.index.json:1:", '"lm_head.weight"', "file name")
        folder = self.checkpoint(SHARDED)
        (folder / "model-00002-of-00002.safetensors").unlink()
        (folder / "model-00002-of-00002.safetensors").symlink_to(outside)
        self.refused(FILE, "model-00002-of-00002.safetensors", "outside")

    def test_shards_of_any_other_name_load(self):  # B040
        folder = self.checkpoint(SHARDED)
        index = folder / "model.safetensors.index.json"
        for old, new in (("model-00001-of-00002", "model.safetensors-00001-of-00002"), ("model-00002-of-00002", "layers-22")):
            (folder / f"{old}.safetensors").rename(folder / f"{new}.safetensors")
            index.write_text(index.read_text().replace(old + ".", new + "."))
        self.good("logits", "m", "--ids", "1,2", "-o", "out.safetensors")

    def test_indexes_that_are_none_are_refused(self):
        for text in ("", "{", "[]", "null", "7", "{}", '{"weight_map": null}', '{"weight_map": []}', '{"weight_map": "x"}', "[" * 100000, '{"weight_map": ' * 100000,
                     '{"weight_map": {"a": "1", "a": "2"}}', '{"weight_map": {"a": {"b": "1"}}}', '{"weight_map": {"a": 1.5}}', '{"weight_map": {"a": true}}',
                     '{"weight_map": {"a\\u0000": "../x"}}', '{"weight_map": {"a\\u001b[2J\\n": ".."}}', '{"weight_map": {"a": "."}}'):
            (self.checkpoint(SHARDED) / "model.safetensors.index.json").write_text(text)
            with self.subTest(text=text[:40]):
                self.refused_by_all(FILE, "model.safetensors.index.json")
        (self.checkpoint(SHARDED) / "model.safetensors.index.json").write_text('{"weight_map": {}}')
        self.refused_by_all(FILE, 'weight "model.embed_tokens.weight" is missing', "a checkpoint of another architecture?", n_lines=20)
        many = {f"t{i}": f"{i}.safetensors" for i in range(3000)}
        (self.folder / "m" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": many}))
        self.refused_by_all(FILE, "lists 3000 shards, not there: 0.safetensors, 1.safetensors", "and 2995 more; download incomplete?")

    def test_shards_that_are_no_files_of_tensors_are_refused(self):  # B040
        for name, words in (("config.json", "config.json: "), ("model.safetensors.index.json", "model.safetensors.index.json: ")):
            self.edit_index(lambda m: m.update({"lm_head.weight": name}))
            self.refused_by_all(FILE, words, "is it a safetensors file?")
        shard = self.folder / "m" / "model-00002-of-00002.safetensors"
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink(path.name, path), lambda path: path.write_bytes(b"")):
            self.checkpoint(SHARDED)
            shard.unlink()
            make(shard)
            self.refused_by_all(FILE, shard.name)

    def test_a_model_config_that_lacks_or_contradicts_is_refused(self):
        for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"):
            self.checkpoint(**{key: None})
            self.refused(FILE, "config.json:1:", f'"{key}" is missing')
        for value in ("64", -1, 0, 2.5, [], 2 ** 40):
            self.checkpoint(hidden_size=value)
            self.refused(FILE, "config.json:1:", '"hidden_size"')
        for value in ("4", 0, [], 2 ** 40):  # and nothing about what would follow from it
            self.checkpoint(num_attention_heads=value)
            self.refused(FILE, "config.json:1:", '"num_attention_heads"')
        self.checkpoint(hidden_size="x", vocab_size=0, rope_theta="y")
        self.refused(FILE, '"hidden_size" is a string', '"vocab_size" is 0', '"rope_theta" is a string', n_lines=3)
        self.checkpoint(num_key_value_heads=3, head_dim=31)
        self.refused(FILE, '"head_dim" is 31', '"num_attention_heads" 4 is not a multiple of "num_key_value_heads" 3', n_lines=2)
        for key, value in (("rms_norm_eps", -1), ("rope_parameters", 7), ("rope_theta", -1.0), ("hidden_act", "gelu"), ("tie_word_embeddings", "x"),
                           ("rope_parameters", {"rope_type": "yarn", "factor": 0}), ("rope_parameters", {"rope_type": "zzz"})):
            self.checkpoint(**{"rope_parameters": None, key: value})
            self.refused(FILE, "config.json:1:")

    def test_layer_types_decide_which_layers_have_a_window(self):
        full, sliding = "full_attention", "sliding_attention"
        window = {"use_sliding_window": True, "sliding_window": 2}

        def logits_of(**config):
            self.checkpoint(**config)
            return self.logits()[0]
        all_keys = logits_of(layer_types=None)
        by_index = logits_of(layer_types=None, max_window_layers=1, **window)
        self.assertNotEqual(by_index, all_keys)
        self.assertEqual(logits_of(layer_types=[full] * 3), all_keys)
        self.assertEqual(logits_of(layer_types=[full] * 3, max_window_layers=1, **window), all_keys)
        self.assertEqual(logits_of(layer_types=[full, sliding, sliding], **window), by_index)
        self.assertNotIn(logits_of(layer_types=[sliding, full, full], **window), (all_keys, by_index))
        for kinds, words in (([full, sliding, full], '"sliding_attention" for layer 1, expected "full_attention"'),
                             ([full, full, "linear_attention"], '"linear_attention" for layer 2, expected'), (["chunked_attention"] * 3, '"chunked_attention" for layer 0'),
                             ([full, 7, full], '"an integer" for layer 1'), ([full] * 2, 'is a list of 2, expected a list of "num_hidden_layers" 3'), (full, "is a string")):
            self.checkpoint(layer_types=kinds)
            self.refused(FILE, "config.json:1:", '"layer_types"', words)

    def test_sizes_far_beyond_the_checkpoint_end_soon(self):
        self.checkpoint(num_hidden_layers=2 ** 31 - 1, layer_types=None)
        self.refused(FILE, "model.layers.3.input_layernorm.weight", "so in many more layers", n_lines=11)
        self.checkpoint(head_dim=2 ** 31 - 2)
        self.refused(FILE, "config.json:1:", "2147483646", "65536")
        self.checkpoint(intermediate_size=2 ** 31 - 1)
        self.refused(FILE, "model.layers.0.mlp.gate_proj.weight", "2147483647", "so in 2 more layers", n_lines=3)
        self.checkpoint(vocab_size=2 ** 40)
        self.refused(FILE, "model.embed_tokens.weight", "[1099511627776, 64]", n_lines=2)

    def test_rope_theta_is_found_in_both_places(self):  # B041
        self.checkpoint(rope_theta=500000, rope_parameters=None)
        above, _ = self.logits()
        self.checkpoint(rope_parameters={"rope_type": "default", "rope_theta": 500000})
        self.assertEqual(self.logits(), (above, ""))
        self.checkpoint()
        self.assertNotEqual(self.logits()[0], above)
        self.checkpoint(rope_theta=5000.0)
        self.refused(FILE, "config.json:1:", "rope_theta", "5000", "1000000")

    def test_yarn_without_its_original_length_takes_the_models(self):  # B043
        yarn = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6}
        self.checkpoint(rope_parameters={**yarn, "original_max_position_embeddings": 512})
        whole, _ = self.logits()
        self.checkpoint(rope_parameters=yarn)
        without, said = self.logits("--set", "log.level=info")
        self.assertEqual(without, whole)
        self.assertIn('"max_position_embeddings" 512', said)

    def test_head_dim_is_taken_or_derived(self):  # B044
        self.checkpoint(head_dim=128, hidden_size=2560, num_attention_heads=32, num_key_value_heads=8)
        self.refused(FILE, "q_proj", "[4096, 2560] (n_heads 32 * head_dim 128, d_model)", n_lines=11)
        for head_dim in ({"head_dim": None}, {}):
            folder = self.checkpoint(hidden_size=2560, num_attention_heads=32, num_key_value_heads=8)
            config = {**json.loads((folder / "config.json").read_text()), "head_dim": None}
            (folder / "config.json").write_text(json.dumps(config if head_dim else {k: v for k, v in config.items() if k != "head_dim"}))
            self.refused(FILE, "q_proj", "[2560, 2560]", n_lines=11)
        self.checkpoint(head_dim=None, hidden_size=2560, num_attention_heads=48)
        self.refused(FILE, "config.json:1:", '"head_dim" is missing', '"hidden_size" 2560', '"num_attention_heads" 48')

    def test_tied_embeddings_follow_one_rule(self):  # B046
        folder = self.checkpoint()
        own_head, _ = self.logits()
        self.checkpoint(tie_word_embeddings=None)  # absent, and a head is there
        self.assertEqual(self.logits()[0], own_head)
        self.checkpoint(tie_word_embeddings=True)  # true, and a different head is there
        tied, said = self.logits("--set", "log.level=info")
        self.assertNotEqual(tied, own_head)
        self.assertIn("lm_head.weight is not used", said)
        header, data = read_header(folder / "model.safetensors")
        for spec in (header, data):  # true, and no head; then the key only in text_config
            begin, end = header["lm_head.weight"]["data_offsets"]
            rest = {k: v if k == "__metadata__" or v["data_offsets"][0] < end else {**v, "data_offsets": [x - end + begin for x in v["data_offsets"]]}
                    for k, v in header.items() if k != "lm_head.weight"}
            folder = self.checkpoint(tie_word_embeddings=True if spec is header else None, text_config={"tie_word_embeddings": True} if spec is data else None)
            write_safetensors(folder / "model.safetensors", rest, data[:begin] + data[end:])
            self.assertEqual(self.logits(), (tied, ""))
        folder = self.checkpoint(tie_word_embeddings=False)
        write_safetensors(folder / "model.safetensors", rest, data[:begin] + data[end:])
        self.refused(FILE, 'weight "lm_head.weight" is missing')

    def test_an_unknown_dtype_is_refused(self):  # B047
        self.checkpoint()
        expected, _ = self.logits()
        for config in ({"dtype": None}, {"dtype": "torch.float32"}, {"dtype": "auto"}, {"dtype": None, "torch_dtype": "bfloat16"},
                       {"dtype": "bfloat16", "torch_dtype": "nosuch"}, {"dtype": None, "text_config": {"dtype": "float16"}}):
            self.checkpoint(**config)
            self.assertEqual(self.logits(), (expected, ""), config)
        for config in ({"dtype": "nosuch"}, {"dtype": "nosuch", "torch_dtype": "float32"}, {"dtype": None, "torch_dtype": 7}, {"dtype": None, "text_config": {"dtype": "torch.f"}}):
            self.checkpoint(**config)
            self.refused(FILE, "config.json:1:", 'dtype" is', "expected auto, float32")

    def test_weights_may_be_asked_for_as_they_are_stored(self):
        self.checkpoint()  # of float32
        expected = self.logits()
        self.assertEqual(self.logits("--set", "backend.weights=float32"), expected)
        self.assertEqual(self.logits("--set", "backend.weights={default: float32}"), expected)
        self.assertNotEqual(self.logits("--set", "backend.weights={default: float32, lm_head: int8}"), expected)
        for other in ("f32", "bf16"):
            for backend in ("cpu", "reference"):
                self.bad(UNSUPPORTED, ["plan", "m", "--set", f"backend.weights={other}", "--set", f"backend.plugin={backend}"],
                         f'stored as "float32", wanted as "{other}"', "float32, bf16 and f16 as they are stored", "int8, int6, int4 and int4q")

    def test_tensors_that_nothing_uses_are_a_warning(self):
        folder = self.checkpoint()
        header, data = read_header(folder / "model.safetensors")
        spare = {f"model.layers.{i}.extra.weight": {"dtype": "F32", "shape": [4], "data_offsets": [len(data) + 16 * i, len(data) + 16 * i + 16]} for i in (0, 1)}
        write_safetensors(folder / "model.safetensors", {**header, **spare}, data + bytes(range(32)))
        _, said = self.logits()
        n = sum(k != "__metadata__" for k in header) + 2
        self.assertRegex(said, f'^warning: model: .*"qwen3" does not use 2 of {n} tensors, such as "model.layers.0.extra.weight"\n$')
        shown = self.program("inspect", "m", stdout=subprocess.PIPE)
        self.assertIn(b"2 tensors, such as model.layers.0.extra.weight", shown.stdout)
        self.assertEqual(shown.stderr, b"")
        # A head beside the embedding that it is tied to repeats it.
        folder = self.checkpoint(tie_word_embeddings=True)
        embedding = data[slice(*header["model.embed_tokens.weight"]["data_offsets"])]
        begin, end = header["lm_head.weight"]["data_offsets"]
        write_safetensors(folder / "model.safetensors", header, data[:begin] + embedding + data[end:])
        self.assertEqual(self.logits()[1], "")
        self.assertNotIn(b"not used", self.program("inspect", "m", stdout=subprocess.PIPE).stdout)

    def test_wrong_documents_beside_the_tensors_are_named(self):
        for file in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
            (self.checkpoint() / file).write_text("{")
            self.refused(FILE, f"{file}:1:2:")
        for text in ("[]", "{}", '{"model": 7}'):
            (self.checkpoint() / "tokenizer.json").write_text(text)
            self.refused(FILE, "tokenizer.json")
        for value in ("x", [1, "x"], {}, 1.5):
            (self.checkpoint() / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
            self.refused(FILE, "generation_config.json:1:", '"eos_token_id"', "expected a token id")

    def test_end_ids_outside_the_vocabulary_are_a_warning(self):
        for file, value, words in (("generation_config.json", [2, 160, -1], "160, -1"), ("config.json", 151645, "151645")):
            path = self.checkpoint() / file
            values = json.loads(path.read_text()) if path.exists() else {}
            path.write_text(json.dumps({**values, "eos_token_id": value}))
            if file == "config.json":
                (self.folder / "m" / "generation_config.json").unlink(missing_ok=True)
            result = self.program("logits", "m", "--ids", "1,2", "-o", "out.safetensors")
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr.decode(), f'^warning: model: .*{file}:1:[0-9]+: "eos_token_id" has {words}, '
                                                     "expected ids of the vocabulary of 160: no text ends there\n$")

    def test_a_format_that_no_plugin_reads_is_named(self):
        for data in (b"PK\3\4" + bytes(16), b"FUGG", b""):
            (self.folder / "m.bin").write_bytes(data)
            (self.folder / "c.yaml").write_text("dovetail: 1\nmodel: {path: m.bin}\n")
            for command in (["run", "c.yaml", "hi"], ["plan", "c.yaml"], ["logits", "c.yaml", "--ids", "1", "-o", "o"]):
                self.bad(UNSUPPORTED, command, "m.bin", "safetensors, gguf")

    def test_a_folder_without_its_parts_is_refused(self):
        (self.checkpoint() / "config.json").unlink()
        self.refused(FILE, "config.json")
        (self.checkpoint() / "model.safetensors").unlink()
        self.refused(FILE, "safetensors")
        for text in ("", "{", "[]", "{\"a\":1,\"a\":2}", "\"x\""):
            (self.checkpoint() / "config.json").write_text(text)
            with self.subTest(text=text):
                self.refused(FILE, "config.json")

    def test_an_unknown_architecture_names_the_nearest(self):
        self.checkpoint(model_type="qwen33")
        self.refused(UNSUPPORTED, '"qwen33", did you mean "qwen3"?')
        self.checkpoint(model_type=None)
        self.refused(FILE, "model_type", "model.arch")

    def test_a_wrong_shape_and_a_missing_weight_are_named(self):
        folder = self.checkpoint()
        header, data = read_header(folder / "model.safetensors")
        name = "model.layers.1.self_attn.k_proj.weight"
        write_safetensors(folder / "model.safetensors", {**header, name: {**header[name], "shape": [32, 128]}}, data)
        self.refused(FILE, f'"{name}"', "[32, 128]", "[64, 64]")
        write_safetensors(folder / "model.safetensors", json.dumps(header).replace(name, name + "s").encode(), data)
        self.refused(FILE, f'"{name}"', "missing")


class Tokenizers(BadInput):
    """Damaged and hostile tokenizer.json files; what each limit is stands in tests/plugins/tokenizer/bpe/limits_test.cpp."""

    def refused(self, change, *words, code=FILE, text="ab"):
        folder = self.folder / "t"
        folder.mkdir(exist_ok=True)
        value = {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}
        change(value)
        data = value.pop("raw", None) or json.dumps(value).encode()
        (folder / "tokenizer.json").write_bytes(data)
        self.bad(code, ["tokenize", "--tokenizer", "t", text], *words)

    def model(self, *words, **changes):
        self.refused(lambda v: v["model"].update(changes), "t/tokenizer.json: model.", *words)

    def test_ids_that_are_no_ids_are_refused(self):
        for vocab, words in (({"a": -1}, "has id -1"), ({"a": 9999999}, "has id 9999999, expected 0 to 65535 in a vocabulary of 1 tokens"),
                             ({"a": 2 ** 31}, "has id 2147483648"), ({"a": 2 ** 63 - 1}, "has id 9223372036854775807"), ({"a": 2 ** 64}, "expected an integer"),
                             ({"a": 1.5}, "expected an integer"), ({"a": "0"}, "expected an integer"), ({"a": None}, "expected an integer"),
                             ({"a": 0, "b": 0}, 'id 0 belongs to "a" and to "b"'), ([], "expected a map"), (7, "expected a map")):
            self.model("vocab", words, vocab=vocab, merges=[])
        self.refused(lambda v: v.update(raw=b'{"version":"1.0","model":{"type":"BPE","vocab":{"a":0,"a":1},"merges":[]}}'), 'key "a" appears twice')

    def test_merges_of_what_is_no_token_are_refused(self):
        for merges, words in ((["a c"], '"c" is not in the vocabulary'), (["b a"], '"ba" is not in the vocabulary'), (["ab"], "not two tokens"),
                              ([["a"]], "merges[0]"), ([["a", "b", "c"]], "merges[0]"), ([7], "merges[0]"), ({}, "expected a list"), (None, "expected a list"),
                              (["a b"] * 3 + ["a " + "c" * 100000], "merges[3]")):
            self.model("merges", words, merges=merges)

    def test_steps_that_blow_a_text_up_are_stopped(self):
        twice = [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}]
        sequence = lambda kind, steps: {"type": "Sequence", {"normalizer": "normalizers", "decoder": "decoders", "pre_tokenizer": "pretokenizers"}[kind]: steps}
        self.refused(lambda v: v.update(normalizer=sequence("normalizer", twice * 64)), "makes far more of the text", code=USAGE)
        self.refused(lambda v: v.update(decoder=sequence("decoder", twice * 64)), "decoder: a token may become", code=UNSUPPORTED)
        for kind, step in (("normalizer", {"type": "NFC"}), ("decoder", {"type": "Strip", "content": "a"}), ("pre_tokenizer", {"type": "Whitespace"})):
            self.refused(lambda v: v.update({kind: sequence(kind, [step] * 100000)}), "at most 256 are supported", code=UNSUPPORTED)
        deep = {"type": "NFC"}
        for _ in range(40):
            deep = sequence("normalizer", [deep])
        self.refused(lambda v: v.update(normalizer=deep), "nested too deep")

    def test_patterns_that_are_none_or_never_end_are_refused(self):
        split = lambda pattern: lambda v: v.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"})
        for pattern in ("(", "[", "a{2,1}", "*", "\\p{Nope}", "(" * 1000 + ")" * 1000, "(?R)", "\\1"):
            self.refused(split(pattern), "pre_tokenizer.pattern.Regex", code=(FILE, UNSUPPORTED))
        self.refused(split("(a+)+(a+)+(a+)+[bd]"), "splitting by pattern", text="a" * 10000 + "cd", code=USAGE)

    def test_added_tokens_that_are_odd_are_refused_or_told_once(self):
        for token in (7, {}, {"id": 3}, {"content": 7, "id": 3}, {"content": "x"}, {"content": "x", "id": "3"}, {"content": "x", "id": 3, "special": 1}):
            self.refused(lambda v: v.update(added_tokens=[token]), "t/tokenizer.json: added_tokens[0]")
        self.refused(lambda v: v.update(added_tokens={}), "added_tokens")
        self.refused(lambda v: v.update(post_processor={"type": "RobertaProcessing", "cls": ["x", 9999999], "sep": ["x", 1]}), "post_processor: id 9999999")
        folder = self.folder / "t"
        value = json.loads((folder / "tokenizer.json").read_text())
        value.update(post_processor=None, added_tokens=[{"content": f"<{i}>", "id": 9000 + i} for i in range(5000)])
        (folder / "tokenizer.json").write_text(json.dumps(value))
        result = self.program("tokenize", "--tokenizer", "t", "ab")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count(b"\n"), 3)
        self.assertIn(b"so have 4997 more", result.stderr)

    def test_what_is_no_definition_is_refused(self):
        for raw in (b"", b"{", b"[]", b"null", b"{}", b'{"version": "1.0"}', b'{"version": "9"}', b"\xff\xfe{", b'{"version": "1.0", "model": 7}', b"[" * 100000,
                    b'{"version": "1.0", "model": {"type": "BPE", "vocab": {"\xff": 0}, "merges": []}}',
                    b'{"version": "1.0", "model": {"type": "BPE", "vocab": {"\\ud83d": 0}, "merges": []}}'):
            self.refused(lambda v: v.update(raw=raw or b" "), "t/tokenizer.json")
        self.refused(lambda v: v["model"].update(type="x" * 100000), 'xxx..."', "which is not supported", code=UNSUPPORTED)

    def test_more_ids_than_the_model_has_rows_are_refused(self):
        shutil.copytree(ROOT / "configs" / "demo", self.folder / "m")
        path = self.folder / "m" / "tokenizer.json"
        value = json.loads(path.read_text())
        value["model"]["vocab"]["e"], value["model"]["vocab"]["\u0120zz"] = 60000, value["model"]["vocab"]["e"]
        path.write_text(json.dumps(value))
        self.bad((USAGE, FILE), ["run", "./m", "eeee", "--raw", "-n", "1"], "60000", "vocabulary")


class Plugins(BadInput):
    def test_names_that_no_plugin_has_are_refused(self):
        for setting, words in (("backend.plugin=cup", ['"cup"', 'did you mean "cpu"?']), ("sampler=[{top_kk: 4}]", ['"top_kk"', '"top_k"']),
                               ("sampler=[gredy]", ['"gredy"', '"greedy"']), ("model.format=gufg", ['"gufg"']), ("model.arch=qwen33", ['"qwen33"', '"qwen3"']),
                               ("tokenizer.plugin=bpa", ['"bpa"', '"bpe"'])):
            self.bad(USAGE, ["run", "hi", "-n", "1", "--set", setting], *words)

    def plugin(self, change):
        """A sampler zzz_k in a folder of its own: top_k's file under another name, and changed."""
        data = (PLUGINS / "sampler" / "top_k.so").read_bytes()
        for old, new in ((b'"name":"top_k"', b'"name":"zzz_k"'), (b'sampler.top_k"', b'sampler.zzz_k"')):
            self.assertIn(old, data)
            data = data.replace(old, new)
        changed = change(data)
        self.assertNotEqual(changed, data)
        path = self.folder / "p" / "sampler" / "zzz_k.so"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(changed)
        return ["run", "hi", "-n", "1", "--set", f"plugins.path=[{self.folder / 'p'}]", "--set", "sampler=[{zzz_k: 4}]"]

    def test_damaged_and_foreign_files_are_named_with_the_reason(self):
        def patch(data, mark, text):
            at = data.index(mark) + len(mark)
            return data[:at] + text + data[at + len(text):]

        for what, change, code, words in (
                ("truncated", lambda d: d[:4096], FILE, []),
                ("another's id", lambda d: d + b"\0", UNSUPPORTED, ["sampler.top_k", "sampler.zzz_k"]),
                ("empty", lambda d: b"", FILE, []),
                ("text", lambda d: b"hello\n", FILE, []),
                ("another machine", lambda d: d[:18] + b"\xb7\0" + d[20:], UNSUPPORTED, ["aarch64"]),
                ("32 bits", lambda d: d[:4] + b"\1" + d[5:], FILE, ["64-bit"]),
                ("another draft", lambda d: patch(d, b'"abi_hash":"', b"0000"), UNSUPPORTED, ['"0000', "build it again"]),
                ("another interface", lambda d: patch(d, b'"abi":[', b"9"), UNSUPPORTED, ["interface 9", "has 0"]),
                ("no manifest", lambda d: d.replace(b"DOVETAIL", b"DOVETAIM"), FILE, ["no manifest"]),
                ("no entry", lambda d: d.replace(b"dvt_plugin_query\0", b"dvt_plugin_quer_\0"), FILE, ["dvt_plugin_query"]),
                ("lacks a library", lambda d: d.replace(b"libgcc_s.so.1", b"libqcc_s.so.1"), UNSUPPORTED, ["libqcc_s.so.1"])):
            with self.subTest(what):
                self.bad(code, self.plugin(change), '"zzz_k"', "p/sampler/zzz_k.so", *words)

    def test_names_deny_and_allow(self):
        for setting in ("plugins.deny=top_k", "plugins.deny=sampler/top_k", "plugins.deny=[sampler/*]", "plugins.allow=[cpu, bpe, arch/*, safetensors]"):
            self.bad(UNSUPPORTED, ["run", "hi", "-n", "1", "--set", "sampler=[{top_k: 4}]", "--set", setting], "top_k", setting.split("=")[0])
        self.good("run", "hi", "-n", "1", "--set", "sampler=[{top_k: 4}]", "--set", "plugins.allow=[cpu, bpe, arch/*, safetensors, top_k]")

    def test_a_plugin_that_is_not_installed_names_the_folders(self):
        for setting in ("sampler=[{no_repeat: 4}]", "sampler=[no_repeat]"):
            self.bad(USAGE, ["run", "hi", "--set", setting], 'no sampler plugin "no_repeat" is installed', "looked in", str(PLUGINS), "plugins.path")
        self.bad(USAGE, ["run", "hi", "--set", "backend.plugin=cudaa"], 'no backend plugin "cudaa" is installed', "looked in", str(PLUGINS))

    def test_a_folder_of_plugins_that_is_not_there_is_named(self):
        (self.folder / "c.yaml").write_text("dovetail: 1\nmodel: {arch: qwen3}\nplugins: {path: gone}\n")
        for command in (["config", "check", "c.yaml"], ["run", "c.yaml", "hi"]):
            self.bad(FILE, command, "c.yaml:3:", "plugins.path", str(self.folder / "gone"), "does not exist", "expected a folder")
        self.bad(FILE, ["run", "hi", "--set", "plugins.path=[/gone]"], "--set plugins.path", '"/gone" does not exist')
        self.bad(FILE, ["plugins", "list", "--path", "/gone"], '"/gone" does not exist')
        self.environment = {"DOVETAIL_SET": "plugins.path=/gone"}
        self.bad(FILE, ["run", "hi"], "DOVETAIL_SET", '"/gone" does not exist')
        for path in ("/gone", "relative"):  # a variable that is set for other programs too: a warning
            self.environment = {"DOVETAIL_PLUGIN_PATH": path}
            result = self.program("plugins", "list")
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr.decode(), f'^warning: plugins: DOVETAIL_PLUGIN_PATH: "{path}" .*expected a folder.*\n$')

    def test_a_file_that_is_not_there_is_named(self):
        self.bad(FILE, ["plugins", "inspect", "gone.so"], "gone.so")
        (self.folder / "text.so").write_text("hello")
        self.bad(FILE, ["plugins", "inspect", "text.so"], "text.so: is not an ELF file")
        self.bad(FILE, ["plugins", "inspect", "text", "--path", "text.so"], "text.so: is not an ELF file")
        (self.folder / "text.so").write_bytes((PLUGINS / "sampler" / "top_k.so").read_bytes().replace(b"libgcc_s.so.1", b"libqcc_s.so.1"))
        self.bad(UNSUPPORTED, ["plugins", "inspect", "text.so"], "text.so: needs the library")
        for command in ("explain", "inspect"):
            self.bad(USAGE, ["plugins", command, "zzz_k"], '"zzz_k"')
            self.bad(USAGE, ["plugins", command, "top_kk"], '"top_kk", did you mean "top_k"?', str(PLUGINS))
            self.bad(USAGE, ["plugins", command, "arch/qwen33"], '"arch/qwen33", did you mean "arch/qwen3"?')
        self.bad(USAGE, ["run", "hi", "--set", f"plugins.path=[{self.folder}]", "--set", "sampler=[{zzz_k: 4}]"], '"zzz_k"')


class Requests(BadInput):
    def test_usage_faults_are_one_line(self):
        for args, words in ((["rnu"], ['"rnu"', 'did you mean "run"?']), (["run", "--nope"], ["--nope"]), (["run", "-n", "x", "hi"], ["--max-tokens", "x", "2147483647"]), (["logits"], ["CONFIG"]), ([], ["subcommand"]),
                            (["logits", str(GOLDEN), "--ids", "1,x", "-o", "o"], ["--ids", "x"]), (["logits", str(GOLDEN), "--ids", "1,-5", "-o", "o"], ["--ids", "-5"])):
            self.bad(USAGE, args, *words)

    def test_ids_outside_the_vocabulary_are_named(self):
        self.bad(USAGE, ["logits", str(GOLDEN), "--ids", "1,160", "-o", "o"], "id 160", "vocabulary of 160")
        self.bad(USAGE, ["run", "--ids", "1,99999"], "id 99999", "vocabulary")
        for stop in ("4096", "[0, 4096]"):
            self.bad(USAGE, ["run", "hi", "--set", f"generate.stop_ids={stop}"], "--set generate.stop_ids", "has 4096", "vocabulary of 4096")

    def test_a_prompt_longer_than_the_context_says_both_numbers(self):  # B062
        self.bad(USAGE, ["run", "--set", "context=8", LONG_PROMPT], "the prompt has", "tokens", "8", "context")
        self.bad(USAGE, ["run", "--set", "context=8", "--ids", "5,6,7,8,9,10,11,12"], "8 tokens", "holds 8")
        self.good("run", "--set", "context=8", "--ids", "5,6,7,8,9,10,11", "-n", "1")

    def test_an_answer_that_the_context_cuts_short_says_so(self):
        for args, said in ((["-n", "9"], r"warning: context: the answer ends after 5 of 9 tokens: the context of 8 is full\n"), (["-n", "5"], "")):
            result = self.program("run", "--set", "context=8", "--set", "generate.ignore_eos=true", "--ids", "5,6,7", *args)
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr.decode(), f"^{said}$")

    def test_seeds_are_taken_as_they_are_or_refused(self):  # B076
        for seed in ("9223372036854775808", "99999999999999999999", "-1", "1.5"):
            self.bad(USAGE, ["run", "Once", "-n", "1", f"--seed={seed}"], "--seed", seed, "at most 9223372036854775807")
        self.bad(USAGE, ["run", "Once", "--set", "generate.seed=14537339090398699193"], "generate.seed", "the largest is 9223372036854775807")
        self.bad(USAGE, ["run", "Once", "--set", "generate.seed=1e3"], "generate.seed", "write it with digits only")
        answer = lambda *args: json.loads(self.program("run", "Once", "-n", "8", "--json", *args, stdout=subprocess.PIPE).stdout)
        for seed in (answer()["seed"], "9223372036854775807"):
            first = answer(f"--seed={seed}")
            self.assertEqual(first["seed"], seed)
            self.assertEqual(first["text"], answer("--set", f"generate.seed={seed}")["text"])

    def test_prompts_and_configs_are_told_apart(self):
        (self.folder / "docs").mkdir()
        (self.folder / "letter.txt").write_text("x")
        for prompt in ("She had a letter and/or a note", "yes/no", "docs", "letter.txt", "What is my.yaml", "5 / 7"):
            result = self.program("run", prompt, "-n", "1", stdout=subprocess.PIPE)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            self.assertTrue(result.stdout.startswith(prompt.encode()), result.stdout)
        for config in ("docs/gone", "gone.yaml", "/gone"):
            self.bad(USAGE, ["run", config], "there is no prompt for the config", config)
            self.bad(FILE, ["run", config, "hi"], config, "does not exist")
            self.bad(FILE, ["run", config, "--ids", "1"], config, "does not exist")
        self.bad(FILE, ["demo", "next", "docs/gone"], "docs/gone", "does not exist")
        for command in (["run"], ["demo", "tokens"]):
            self.bad(USAGE, [*command, "Once", "upon"], '"Once" is neither a YAML file nor a model', 'needs quotes: "Once upon"')
            self.bad(USAGE, [*command, "Once", "upon", "a"], 'needs quotes: "Once upon a"')
            self.bad(USAGE, [*command, str(GOLDEN), "Once", "upon"], 'needs quotes: "Once upon"')

    def test_ids_that_the_tokenizer_lacks_are_named(self):
        tokenize = ["tokenize", "--tokenizer", str(ROOT / "configs" / "demo"), "--decode"]
        self.good(*tokenize, "4095")
        for ids, words in (("1,-1", "ids[1] is -1"), ("1,4294967296", "ids[1] is 4294967296"), ("1,x", "ids")):
            self.bad(USAGE, [*tokenize, ids], words)
        left_out = self.program(*tokenize, "40,999999", stdout=subprocess.PIPE)
        self.assertEqual((left_out.returncode, left_out.stdout), (0, self.program(*tokenize, "40", stdout=subprocess.PIPE).stdout))
        self.assertIn(b"ids[1] is 999999, the tokenizer has ids below 4096", left_out.stderr)

    def test_explanations_do_not_stand_in_the_answer(self):
        answer = self.program("run", "Once", "-n", "3", "--seed", "1", stdout=subprocess.PIPE)
        explained = self.program("run", "Once", "-n", "3", "--seed", "1", "--explain", stdout=subprocess.PIPE)
        self.assertEqual(answer.stdout, explained.stdout)
        self.assertIn(b"backend cpu", explained.stderr)

    def test_a_prompt_that_is_not_utf8_does_not_stop_the_program(self):
        global n_cases
        for prompt in (b"\xff\xfe", b"a\xf0\x9f\x98", b"\xc0\x80", b"\xed\xa0\x80"):
            n_cases += 1
            result = self.program("run", "-n", "4", "--json", prompt, stdout=subprocess.PIPE)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            self.assertIn("text", json.loads(result.stdout.decode("utf-8")))

    def test_a_full_disk_is_said(self):
        self.bad(FILE, ["logits", str(GOLDEN), "--ids", "1,2", "-o", "/dev/full"], "/dev/full", "disk is full")
        self.bad(FILE, ["logits", str(GOLDEN), "--ids", "1,2", "-o", "no/such/folder.safetensors"], "no/such")
        (self.folder / "t.txt").write_text("to be or not to be " * 9)
        (self.folder / "pulled").mkdir()
        (self.folder / "pulled" / ".pull.json").write_text('{"model": "Org/Name", "files": {"config.json": {"size": 1}}}')
        commands = (["--help"], ["--version"], ["--help-all"], ["run", "--help"], ["plugins", "list", "--help"], ["completion", "bash"],
                    ["run", "hi", "-n", "3"], ["run", "hi", "-n", "3", "--json"], ["run", "--explain"], ["doctor", str(GOLDEN)], ["plan"], ["plan", "--json"],
                    ["inspect", str(GOLDEN)], ["inspect", "--graph"], ["plugins", "list"], ["plugins", "list", "--json"], ["plugins", "explain", "qwen3"],
                    ["plugins", "inspect", str(PLUGINS / "arch" / "qwen3.so")], ["config", "schema"], ["config", "show", str(GOLDEN)],
                    ["config", "check", str(GOLDEN)], ["logits", str(GOLDEN), "--ids", "1,2", "-o", "o.safetensors"], ["demo", "tokens", "hi"],
                    ["quantize", str(GOLDEN), "-o", "q", "--weights", "int4"], ["pull", "Org/Name", "--offline", "--dry-run", "-o", "pulled"],
                    ["demo", "next", "hi"], ["demo", "cache", "-n", "4"], ["demo", "fast", "-n", "4"],
                    ["tokenize", "--tokenizer", str(ROOT / "configs" / "demo"), "hi"], ["train-tokenizer", "t.txt", "-o", "t.json", "--vocab-size", "260"])
        for args in commands:
            with self.subTest(args), open("/dev/full", "wb") as full:
                self.line(self.program(*args, stdout=full), FILE, ["standard output", "no space left"])

    def test_a_closed_pipe_is_said(self):
        for args in (["run", "hi", "-n", "200"], ["plugins", "list"]):
            reader, writer = os.pipe()
            os.close(reader)
            try:
                self.line(self.program(*args, stdout=writer), FILE, ["standard output", "broken pipe"])
            finally:
                os.close(writer)

    def test_a_model_that_does_not_fit_is_itemised(self):
        for command in (["plan"], ["run", "hi"]):
            self.bad(MEMORY, [*command, "--set", "kv_cache.max_tokens=2000000000"], "KV cache", "weights", "workspace", "is free", "kv_cache.max_tokens=")

    def test_an_interrupt_stops_cleanly_and_keeps_the_text(self):
        command = [DOVETAIL, "run", "Emma", "-n", "100000", "--set", "generate.ignore_eos=true", "--set", "backend.plugin=reference"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            first = os.read(process.stdout.fileno(), 100)
            process.send_signal(signal.SIGINT)
            rest, stderr = process.communicate(timeout=60)
        self.assertTrue(first)
        (first + rest).decode("utf-8")  # no half character
        self.line(subprocess.CompletedProcess(command, process.returncode, b"", stderr), INTERRUPTED, ["interrupted"])

    def test_an_interrupt_has_one_name(self):
        command = [DOVETAIL, "demo", "fast", "-n", "900", "--repeats", "100", "--set", "backend.plugin=reference"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            status = pathlib.Path(f"/proc/{process.pid}/status")
            while not int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16) & 1 << signal.SIGINT - 1:
                time.sleep(0.01)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=60)
        self.assertEqual((process.returncode, stderr), (INTERRUPTED, b"dovetail: error: interrupted\n"))


if __name__ == "__main__":
    program = unittest.main(exit=False)
    print(f"{n_cases} cases")
    sys.exit(not program.result.wasSuccessful() or n_cases < LEAST_CASES)
