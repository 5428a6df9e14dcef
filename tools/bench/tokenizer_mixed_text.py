#!/usr/bin/env python3
"""Writes a text in many scripts for tokenizer benchmarks: the translations in a wheel of Django.

    pip download --no-deps Django==5.2.19
    python3 tools/bench/tokenizer_mixed_text.py django-5.2.19-py3-none-any.whl mixed.txt
"""

import ast
import re
import sys
import zipfile


def translations(po):
    """The msgstr entries of a .po file, save empty ones and the header."""
    current = None
    for line in [*po.splitlines(), ""]:
        if line.startswith("msgstr"):
            current, line = [], line[line.index('"'):]
        elif not line.startswith('"'):
            text = "".join(current or [])
            if text and "Plural-Forms" not in text and "Report-Msgid" not in text:
                yield text
            current = None
            continue
        if current is not None:
            current.append(ast.literal_eval(line))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        names = sorted(n for n in wheel.namelist() if re.fullmatch(r"django/.*/locale/.+/LC_MESSAGES/.*\.po", n)
                       and "/locale/en/" not in n)
        text = "\n".join(t for name in names for t in translations(wheel.read(name).decode()))
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(text)
    print(f"{sys.argv[2]}: {len(text.encode())} bytes of {len(names)} files")


if __name__ == "__main__":
    main()
