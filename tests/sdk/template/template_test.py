"""Dovetail installed, and sdk/template built against it as an outsider would: the installed program runs
from any folder, finds the plugin in each of the ways that docs/plugin-guide.md names, and uses it.
usage: template_test.py CMAKE BUILD_DIR TEMPLATE_DIR COMPILER
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

COMPILER, TEMPLATE, BUILD, CMAKE = (sys.argv.pop() for _ in range(4))
PLUGIN = "sampler/top_n_sigma.so"
PROMPT = "It is a truth universally acknowledged"


class Template(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.prefix = cls.root / "installed here"  # a space, as users have them
        cls.project = cls.root / "plugin"
        cls.home = cls.root / "home"
        cls.home.mkdir()
        cls.env = {"PATH": os.environ["PATH"], "HOME": str(cls.home), "DOVETAIL_PREFIX": str(cls.prefix), "CXX": COMPILER}
        for name, value in os.environ.items():
            if name.endswith("SAN_OPTIONS"):
                cls.env[name] = value
        shutil.copytree(TEMPLATE, cls.project, ignore=shutil.ignore_patterns("build"))
        cls.check(CMAKE, "--install", BUILD, "--prefix", cls.prefix)
        cls.check(CMAKE, "-S", cls.project, "-B", cls.project / "build", f"-DCMAKE_PREFIX_PATH={cls.prefix}")
        cls.check(CMAKE, "--build", cls.project / "build")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def call(cls, *command, env=None):
        return subprocess.run([str(c) for c in command], cwd=cls.home, env={**cls.env, **(env or {})}, capture_output=True, text=True)

    @classmethod
    def check(cls, *command, env=None):
        result = cls.call(*command, env=env)
        if result.returncode:
            raise AssertionError(f"{command} ended with {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout

    def dovetail(self, *arguments, env=None):
        return self.check(self.prefix / "bin/dovetail", *arguments, env=env)

    def text(self, *arguments, env=None):
        return self.dovetail("run", *arguments, "--set", "generate.max_tokens=24", env=env)

    def test_what_is_installed(self):
        built = pathlib.Path(BUILD) / "lib/dovetail/plugins"
        names = sorted(str(p.relative_to(built)) for p in built.glob("*/*.so"))
        installed = self.prefix / "lib/dovetail/plugins"
        self.assertGreaterEqual(len(names), 15)
        self.assertEqual(sorted(str(p.relative_to(installed)) for p in installed.glob("**/*.so") if p.name != "top_n_sigma.so"), names)
        for name in ("share/dovetail/configs/demo.yaml", "share/dovetail/configs/demo/model.safetensors",
                     "share/dovetail/configs/defaults.yaml", "include/dovetail/abi/plugin.h", "include/dovetail/sampler.hpp",
                     "lib/cmake/Dovetail/DovetailConfig.cmake", "lib/cmake/Dovetail/DovetailConfigVersion.cmake",
                     "lib/cmake/Dovetail/plugin.map", "share/bash-completion/completions/dovetail",
                     "share/zsh/site-functions/_dovetail", "share/fish/vendor_completions.d/dovetail.fish"):
            self.assertTrue((self.prefix / name).is_file(), name)
        everything = [p for p in self.prefix.glob("**/*") if p.is_file()]
        self.assertEqual([p for p in everything if "test" in p.name or p.name in ("hash.so", "CMakeLists.txt") or p.suffix == ".a"], [])
        for p in everything:  # nothing that points back at the build
            if p.suffix in (".cmake", ".yaml", ".hpp", ".h"):
                self.assertNotIn(BUILD, p.read_text(), p)

    def test_the_installed_program_runs_the_demo(self):
        text = self.text(PROMPT, "--set", "sampler=[greedy]")
        self.assertGreater(len(text.split()), 8)
        built = self.check(pathlib.Path(BUILD) / "bin/dovetail", "run", PROMPT, "--set", "sampler=[greedy]", "--set", "generate.max_tokens=24")
        self.assertEqual(text, built)

    def test_a_link_to_the_program_finds_its_files(self):
        link = self.home / "dovetail"
        link.symlink_to(self.prefix / "bin/dovetail")
        self.assertIn("top_p", self.check(link, "plugins", "list"))

    def test_the_plugin_is_one(self):
        out = self.dovetail("plugins", "inspect", self.project / "build/plugins" / PLUGIN)
        self.assertIn("org.example.sampler.top_n_sigma", out)
        self.assertRegex(out, r"name +top_n_sigma")
        self.assertRegex(out, r"exports +dvt_plugin_query\n")
        self.assertIn("passes every check before loading", out)

    def test_a_config_names_its_folder(self):
        config = self.project / "demo.yaml"
        seed = ("--set", "generate.seed=3")
        self.assertGreater(len(self.text(config, PROMPT, *seed).split()), 8)
        # Next to no deviation leaves the argmax; without the stage the text is another.
        narrow = self.text(config, PROMPT, *seed, "--set", "sampler.1.top_n_sigma=1e-9")
        greedy = self.text(config, PROMPT, "--set", "sampler=[greedy]")
        free = self.text(config, PROMPT, *seed, "--set", "sampler=[{temperature: 1.5}]")
        self.assertEqual(narrow, greedy)
        self.assertNotEqual(free, greedy)

    def test_its_parameter_is_checked(self):
        result = self.call(self.prefix / "bin/dovetail", "run", self.project / "demo.yaml", PROMPT, "--set", "sampler.1.top_n_sigma=-1")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("top_n_sigma", result.stderr)

    def test_the_environment_names_its_folder(self):
        chain = ("--set", "sampler=[{top_n_sigma: 1e-9}]")
        result = self.call(self.prefix / "bin/dovetail", "run", PROMPT, *chain)
        self.assertEqual(result.returncode, 2, result.stderr)  # unknown without it
        self.assertIn("top_n_sigma", result.stderr)
        text = self.text(PROMPT, *chain, env={"DOVETAIL_PLUGIN_PATH": str(self.project / "build/plugins")})
        self.assertEqual(text, self.text(PROMPT, "--set", "sampler=[greedy]"))

    def test_installed_beside_the_others(self):
        other = self.root / "other"
        self.check(CMAKE, "--install", self.project / "build", "--prefix", other)
        self.assertEqual([str(p.relative_to(other)) for p in other.glob("**/*") if p.is_file()], ["lib/dovetail/plugins/" + PLUGIN])
        home = self.root / "user"
        (home / ".local/share/dovetail").mkdir(parents=True)
        (other / "lib/dovetail/plugins").rename(home / ".local/share/dovetail/plugins")
        self.assertIn("top_n_sigma", self.dovetail("plugins", "list", env={"HOME": str(home)}))


if __name__ == "__main__":
    unittest.main()
