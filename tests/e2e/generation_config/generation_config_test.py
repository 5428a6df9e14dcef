"""What a checkpoint says of sampling: a default that the config overrides key by key, with its place in `config show`.
usage: generation_config_test.py DOVETAIL
"""
import json
import os
import pathlib
import shutil
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import program_case  # noqa: E402

DEMO = ROOT / "configs" / "demo"
DOVETAIL = sys.argv.pop(1)
FILE, USAGE = 3, 2
QWEN = {"bos_token_id": 0, "pad_token_id": 0, "do_sample": True, "eos_token_id": [0, 1], "temperature": 0.6, "top_k": 20, "top_p": 0.95,
        "transformers_version": "4.51.0"}


class GenerationConfig(program_case.ProgramCase):
    dovetail = DOVETAIL

    def setUp(self):
        super().setUp()
        self.model = self.folder / "m"
        shutil.copytree(DEMO, self.model)

    def generation(self, values):
        text = values if isinstance(values, str) else json.dumps(values, indent=1)
        (self.model / "generation_config.json").write_text(text)

    def config(self, text):
        path = self.folder / "c.yaml"
        path.write_text(f"dovetail: 1\nmodel: {{path: m}}\n{text}")
        return path

    def shown(self, config, *options):
        shown = json.loads(self.good("config", "show", config, "--json", *options))
        return shown["sampler"], shown["generate"]["max_tokens"]

    def ids(self, config, *options):
        out = json.loads(self.good("run", config, "It is a truth universally", "--seed", "3", "-n", "24", "--json", *options))
        return out["ids"]

    def test_show_says_where_each_value_is_written(self):
        self.generation({**QWEN, "max_new_tokens": 77})
        text = self.good("config", "show", self.config("sampler: {top_k: 5}\n")).decode()
        file = self.model / "generation_config.json"
        lines = {line.strip().removeprefix("- ").split("  # ")[0]: line.split("  # ")[1] for line in text.splitlines() if "  # " in line}
        self.assertEqual(lines["temperature: 0.6"], f"{file}:9:17")
        self.assertEqual(lines["top_p: 0.95"], f"{file}:11:11")
        self.assertEqual(lines["max_tokens: 77"], f"{file}:13:20")
        self.assertIn("c.yaml:3:11", lines["top_k: 5"])
        again = self.folder / "again.yaml"
        again.write_text(text)
        self.assertEqual(self.shown(again), self.shown(self.folder / "c.yaml"))

    def test_the_config_wins_key_by_key(self):
        self.generation({**QWEN, "max_new_tokens": 77})
        own = [{"temperature": 0.6}, {"top_k": 20}, {"top_p": 0.95}]
        cases = (("", (), (own, 77)), ("sampler: null\n", (), (own, 77)), ("sampler: []\n", (), ([], 77)), ("sampler: [top_k: 3]\n", (), ([{"top_k": 3}], 77)),
                 ("sampler: {top_k: 3, min_p: 0.1}\n", (), ([{"temperature": 0.6}, {"top_k": 3}, {"top_p": 0.95}, {"min_p": 0.1}], 77)),
                 ("generate: {max_tokens: 5}\n", (), (own, 5)),
                 ("", ("--set", "sampler.temperature=0"), ([{"temperature": 0}, *own[1:]], 77)),
                 ("sampler: {top_k: 3}\n", ("--set", "sampler.2.top_p=0.5"), ([own[0], {"top_k": 3}, {"top_p": 0.5}], 77)))
        for text, options, want in cases:
            with self.subTest(text=text, options=options):
                self.assertEqual(self.shown(self.config(text), *options), want)

    def test_answers_follow_it(self):
        self.generation(QWEN)
        own = self.ids(self.model)
        self.assertEqual(own, self.ids(self.config("sampler: [temperature: 0.6, top_k: 20, top_p: 0.95]\n")))
        greedy = self.ids(self.config("sampler: [greedy]\n"))
        plain = self.ids(self.config("sampler: []\n"))
        self.assertEqual(len({tuple(own), tuple(greedy), tuple(plain)}), 3)
        self.assertEqual(self.ids(self.model, "--set", "sampler.temperature=0"), greedy)
        self.generation({**QWEN, "do_sample": False})
        self.assertEqual(self.ids(self.model), greedy)
        self.assertEqual(self.ids(self.config("sampler: {temperature: 1}\n")), plain)
        self.generation({"eos_token_id": 0, "repetition_penalty": 1.3, "do_sample": False})
        self.assertEqual(self.ids(self.model), self.ids(self.config("sampler: [repetition_penalty: 1.3, greedy]\n")))
        self.assertNotEqual(self.ids(self.model), greedy)
        self.generation({"_from_model_config": True, "eos_token_id": 0})  # nothing about sampling
        self.assertEqual(self.ids(self.model), plain)
        os.remove(self.model / "generation_config.json")
        self.assertEqual(self.ids(self.model), plain)

    def test_it_says_when_an_answer_ends(self):
        self.generation({"max_new_tokens": 3})
        out = json.loads(self.good("run", self.model, "It is", "--seed", "1", "--json"))
        self.assertEqual(len(out["ids"]), 3)
        free = self.ids(self.config("sampler: [greedy]\n"))
        self.generation({"eos_token_id": [0, free[4]], "do_sample": False})
        self.assertEqual(self.ids(self.model), free[:free.index(free[4])])

    def test_each_fault_names_the_file(self):
        file = "m/generation_config.json"
        for values, words in (({**QWEN, "temperature": "hot"}, ['"temperature" is the string "hot"', "expected a number"]),
                              ({**QWEN, "do_sample": "yes"}, ['"do_sample" is the string "yes"', "expected true or false"]),
                              ({**QWEN, "max_new_tokens": "5"}, ['"max_new_tokens"', "expected an integer"]),
                              ([1], ["is a list, expected a map"]), ('{"temperature": 0.6,}', [file])):
            self.generation(values)
            for command in (("run", self.model, "x"), ("config", "show", self.model)):
                self.bad(FILE, command, file, *words)
        self.generation({**QWEN, "eos_token_id": "two"})
        self.bad(FILE, ("run", self.model, "x"), file, '"eos_token_id"', "expected a token id")
        for values, words in (({**QWEN, "top_p": 1.5}, ["sampler.2.top_p: got 1.5, expected a number"]), ({**QWEN, "top_k": 2.5}, ["top_k: got 2.5"]),
                              ({**QWEN, "max_new_tokens": -1}, ["generate.max_tokens: got -1"])):
            self.generation(values)
            self.bad(USAGE, ("run", self.model, "x"), file, *words)
        self.generation({**QWEN, "top_p": 1.5})  # a config that says otherwise needs no mending of the file
        self.ids(self.config("sampler: {top_p: 0.5}\n"))

    def test_a_model_that_is_not_there_has_no_say(self):
        config = self.config("")
        shutil.rmtree(self.model)
        self.assertEqual(self.shown(config)[0], [])
        self.good("config", "check", config)
        self.bad(FILE, ("run", config, "x"), "is neither a folder nor a file")


if __name__ == "__main__":
    unittest.main()
