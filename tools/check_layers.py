#!/usr/bin/env python3
"""Checks who includes whom: the table of docs/architecture.md over every #include of the tree.

Usage: tools/check_layers.py [ROOT]      exit 1 and a line per fault when there is one
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

# First matching rule wins: path prefix -> prefixes of project includes that it may use. Anything that
# is not a project include (a system or library header) is checked by FOREIGN below.
RULES = [
    ("sdk/include/dovetail/abi/", ["dovetail/abi/", "./"]),
    ("sdk/", ["dovetail/", "./"]),
    ("kernels/", ["kernels/", "./"]),
    ("core/", ["core/", "dovetail/abi/", "dovetail/json_string.hpp", "dovetail/sha256.hpp"]),
    ("plugins/backend/", ["dovetail/", "kernels/", "./"]),
    ("plugins/", ["dovetail/", "./"]),
    ("tests/support/", ["dovetail/", "./"]),
]

# Inside core the arrows point one way: a folder may include those before it and itself.
CORE_ORDER = ["base", "plugin", "config", "graph", "text/template", "text", "kv_cache", "sampling", "model", "scheduler",
              "engine", "measure", "doctor", "hub", "cli"]

# Libraries that one folder keeps to itself: all else builds and runs without them.
KEPT = {("curl/", "openssl/"): "core/hub/"}

# C standard headers only: the ABI compiles alone as C11.
ABI_SYSTEM = {"stddef.h", "stdint.h"}


def core_rank(path):
    rest = path[len("core/"):]
    for rank, folder in sorted(enumerate(CORE_ORDER), key=lambda e: -len(e[1])):
        if rest.startswith(folder + "/"):
            return rank
    return None


def project_prefix(name, quoted, path, root):
    """The include as a path from the root ("core/...", "kernels/...", "dovetail/...", "./x"), or None."""
    if name.startswith(("core/", "kernels/", "dovetail/", "plugins/")):
        return name
    if quoted and (root / path).parent.joinpath(name).exists():
        return "./" + name
    return None


def check(root):
    faults = []
    for path in sorted(root.rglob("*")):
        rel = path.relative_to(root).as_posix()
        if path.suffix not in (".h", ".hpp", ".cpp", ".cu", ".cuh", ".c") or rel.startswith(("build/", "models/", ".")):
            continue
        rule = next((r for r in RULES if rel.startswith(r[0])), None)
        if rule is None:
            continue
        for match in INCLUDE.finditer(path.read_text(encoding="utf-8")):
            line = path.read_text(encoding="utf-8").count("\n", 0, match.start(2)) + 1
            name = match.group(2)
            seen = project_prefix(name, match.group(1) == '"', rel, root)
            if seen is None:
                if rel.startswith("sdk/include/dovetail/abi/") and name not in ABI_SYSTEM:
                    faults.append(f"{rel}:{line}: the ABI may include only {sorted(ABI_SYSTEM)}, not <{name}>")
                if name.startswith(("yaml-cpp", "boost", "spdlog", "CLI")) and not rel.startswith("core/"):
                    faults.append(f"{rel}:{line}: <{name}> is the core's; a plugin links only what its CMakeLists names")
                for prefixes, keeper in KEPT.items():
                    if name.startswith(prefixes) and not rel.startswith(keeper):
                        faults.append(f"{rel}:{line}: <{name}> is for {keeper} alone")
                continue
            if seen.startswith("./") and ".." in seen:
                faults.append(f"{rel}:{line}: \"{name}\" climbs out of its folder")
            elif not any(seen.startswith(p) for p in rule[1]):
                faults.append(f"{rel}:{line}: {rule[0]} may not include \"{name}\" (may: {', '.join(rule[1])})")
            elif rel.startswith("core/") and seen.startswith("core/"):
                mine, theirs = core_rank(rel), core_rank(seen)
                if mine is None or theirs is None:
                    faults.append(f"{rel}:{line}: a folder of core/ is not in CORE_ORDER of tools/check_layers.py")
                elif theirs > mine:
                    faults.append(f"{rel}:{line}: core/{CORE_ORDER[mine]} may not include core/{CORE_ORDER[theirs]}")
    return faults


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    if root.is_file():
        root = root.parent.parent
    faults = check(root)
    print("\n".join(faults) if faults else "layers: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
