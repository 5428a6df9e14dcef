"""The layer check itself: it passes on this tree and finds each kind of fault in a made-up one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_layers.py"


def run(root):
    return subprocess.run([sys.executable, str(TOOL), str(root)], capture_output=True, text=True)


class CheckLayers(unittest.TestCase):
    def test_this_tree_is_clean(self):
        result = run(ROOT)
        self.assertEqual(result.returncode, 0, result.stdout)

    def find(self, files, expected):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            result = run(folder)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn(expected, result.stdout)

    def test_core_may_not_see_kernels(self):
        self.find({"core/base/a.cpp": "#include <kernels/linear.hpp>\n"}, "may not include")

    def test_kernels_may_not_see_the_sdk(self):
        self.find({"kernels/cpu/a.cpp": "#include <dovetail/plugin.hpp>\n"}, "may not include")

    def test_an_architecture_may_not_see_kernels(self):
        self.find({"plugins/arch/a/a.cpp": "#include <kernels/linear.hpp>\n"}, "may not include")

    def test_a_plugin_may_not_see_another(self):
        self.find({"plugins/arch/a/a.cpp": "#include <plugins/arch/b/b.hpp>\n"}, "may not include")

    def test_base_may_not_see_the_engine(self):
        self.find({"core/base/a.cpp": '#include "core/engine/engine.hpp"\n'}, "core/base may not include core/engine")

    def test_the_network_is_the_hubs(self):
        for path in ("core/cli/a.cpp", "core/base/a.cpp", "plugins/arch/a/a.cpp"):
            self.find({path: "#include <curl/curl.h>\n"}, "is for core/hub/ alone")
        self.find({"core/model/a.cpp": '#include "core/hub/pull.hpp"\n'}, "core/model may not include core/hub")

    def test_the_abi_is_standalone(self):
        self.find({"sdk/include/dovetail/abi/a.h": "#include <stdio.h>\n"}, "the ABI may include only")


if __name__ == "__main__":
    unittest.main()
