#!/usr/bin/env python3
"""Holds what ptxas says of the CUDA kernels to the plan: no spills, registers and shared memory within a table.

usage: resources_test.py TABLE OBJECT...    each OBJECT with what ptxas said beside it in OBJECT.ptxas
       resources_test.py TABLE none         the build found no nvcc: exits 77

The table has a line for each kernel: its name, as much of its template arguments as all that follow share, the most
registers a thread, the most bytes of static shared memory a block. The first line that fits a kernel holds.
"""
import pathlib
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def read_table(path):
    rows = []
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, registers, shared = line.rsplit(None, 2)
            rows.append((name, int(registers), int(shared)))
    return rows


def short_name(mangled):
    """attend_kernel<float, 1, true> of a mangled entry function."""
    full = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout.strip()
    match = re.search(r"(\w+_kernel)\b(<.*>)?\(", full)
    name = (match.group(1) + (match.group(2) or "")) if match else full
    return re.sub(r"(\w+::|\(anonymous namespace\)::)+", "", name)


def check(table, objects):
    faults, seen, n_kernels = [], set(), 0
    for path in objects:
        kernel = target = None
        for line in pathlib.Path(path + ".ptxas").read_text().splitlines():
            if found := ENTRY.search(line):
                kernel, target = short_name(found.group(1)), found.group(2)
                n_kernels += 1
            elif found := SPILLS.search(line):
                if kernel and (found.group(1), found.group(2)) != ("0", "0"):
                    faults.append(f"{kernel} for {target} spills: {found.group(0)}")
            elif found := USED.search(line):
                row = next((r for r in table if kernel.startswith(r[0])), None)
                if row is None:
                    faults.append(f"{kernel} is not in the table")
                    continue
                seen.add(row)
                registers, shared = int(found.group(1)), int((SHARED.search(line) or [0, 0])[1])
                if registers > row[1] or shared > row[2]:
                    faults.append(f"{kernel} for {target} takes {registers} registers and {shared} bytes of shared memory, "
                                  f"expected at most {row[1]} and {row[2]}")
    faults += [f"no kernel is called {row[0]}: take its line from the table" for row in table if row not in seen]
    return faults, n_kernels


def main():
    if sys.argv[2:] == ["none"]:
        print("skipped: this build found no nvcc of CUDA 12.4 or newer")
        return 77
    faults, n_kernels = check(read_table(pathlib.Path(sys.argv[1])), sys.argv[2:])
    print("\n".join(sorted(set(faults))) if faults else f"{n_kernels} kernels: no spills, all within the table")
    return 1 if faults or n_kernels == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
