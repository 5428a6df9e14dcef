#!/usr/bin/env python3
"""Writes plugins/tokenizer/bpe/unicode_tables.cpp: the code point classes that the tokenizer needs.

The classes are those of tests/data/tokenizer/unicode-classes.json (Unicode 16.0 for regex classes,
17.0 for numerics, 9.0 for what normalization knows), lowercase and scripts those of
unicode-lowercase-scripts.json beside it, so no library's Unicode version matters. Only the set of code points that NFC may touch comes from Python's own tables: normalization of a code
point never changes once it is assigned, so any Python 3 gives the same set within Unicode 9.0.

    python3 tools/make_unicode_tables.py          writes the file
    python3 tools/make_unicode_tables.py --check  fails if the file is not what would be written
"""

import json
import pathlib
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLASSES = ROOT / "tests/data/tokenizer/unicode-classes.json"
MORE = ROOT / "tests/data/tokenizer/unicode-lowercase-scripts.json"
OUTPUT = ROOT / "plugins/tokenizer/bpe/unicode_tables.cpp"
N_CODE_POINTS = 0x110000
BLOCK = 128

# Named range lists for the regex compiler: name in patterns -> key in the JSON.
PROPERTIES = {"L": "L", "N": "N", "M": "M", "P": "P", "S": "S", "Lu": "Lu", "Ll": "Ll", "Lt": "Lt",
              "Lm": "Lm", "Lo": "Lo", "Nd": "Nd", "Zs": "Zs", "Cf": "Cf", "Han": "Han",
              "space": "regex_space", "word": "regex_word", "digit": "regex_digit"}


def touched_by_nfc(known):
    """Code points that are not NFC_QC=Yes or have a combining class: NFC must look at them."""
    seconds = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))  # Hangul vowels, trailers
    for cp in known:
        parts = unicodedata.decomposition(chr(cp)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            if unicodedata.normalize("NFC", chr(cp)) == chr(cp):
                seconds.add(int(parts[1], 16))
    return {cp for cp in known
            if unicodedata.combining(chr(cp)) or cp in seconds
            or unicodedata.normalize("NFC", chr(cp)) != chr(cp)}


def fill(flags, ranges, bit):
    for first, last in ranges:
        for cp in range(first, last + 1):
            flags[cp] |= bit


def numbers(values, per_line, form):
    for i in range(0, len(values), per_line):
        yield "    " + ", ".join(form(v) for v in values[i:i + per_line]) + ",\n"


def table_of(name):
    return "kRanges" + name[0].upper() + name[1:]


def render():
    data = json.loads(CLASSES.read_text())
    regex, functions = data["regex_classes_unicode_16"], data["hf_functions"]
    known_ranges = data["normalization_known_code_points"]["ranges"]

    flags = [0] * N_CODE_POINTS
    fill(flags, regex["L"], 1)
    fill(flags, regex["N"], 2)
    fill(flags, regex["regex_space"], 4)
    fill(flags, functions["whitespace_pretokenizer_word"], 8)
    fill(flags, functions["digits_is_numeric"], 16)
    known = [cp for first, last in known_ranges for cp in range(first, last + 1)
             if not 0xD800 <= cp <= 0xDFFF]
    fill(flags, [(cp, cp) for cp in known], 32)
    fill(flags, [(cp, cp) for cp in touched_by_nfc(known)], 64)
    fill(flags, functions["punctuation"], 128)
    fill(flags, functions["bert_clean_text_removed"], 256)
    fill(flags, functions["strip_accents_removed"], 512)
    fill(flags, functions["bert_nonspacing_mark"], 1024)
    fill(flags, regex["M"], 2048)
    for name in ("Lu", "Lt", "Lm", "Lo"):
        fill(flags, regex[name], 4096)
    for name in ("Ll", "Lm", "Lo"):
        fill(flags, regex[name], 8192)
    for name in ("P", "S"):
        fill(flags, regex[name], 16384)

    blocks, index = {}, []
    for start in range(0, N_CODE_POINTS, BLOCK):
        block = tuple(flags[start:start + BLOCK])
        index.append(blocks.setdefault(block, len(blocks)))

    out = ["// Made by tools/make_unicode_tables.py from tests/data/tokenizer/unicode-classes.json: do not "
           "edit.\n// clang-format off\n#include \"unicode.hpp\"\n\nnamespace dovetail::bpe {\n\n"]
    out.append(f"const uint16_t kClassBlocks[{len(index)}] = {{\n")
    out.extend(numbers(index, 24, str))
    out.append(f"}};\n\nconst uint16_t kClassFlags[{len(blocks)} * kClassBlockLen] = {{\n")
    for block in blocks:
        out.extend(numbers(block, 32, str))
    out.append("};\n\n")
    for name, key in PROPERTIES.items():
        out.append(f"static const CodePointRange {table_of(name)}[] = {{\n")
        out.extend(numbers(regex[key], 8, lambda r: f"{{{r[0]:#x}, {r[1]:#x}}}"))
        out.append("};\n")
    more = json.loads(MORE.read_text())
    lowercase, scripts = more["lowercase"], more["scripts"]["ranges"]
    if lowercase["multi"] != {"304": [0x69, 0x307]}:
        sys.exit(f"{MORE.name}: a code point other than U+0130 has more than one in lower case")
    out.append("\nstatic const LowercaseRange kLowercaseRanges[] = {\n")
    out.extend(numbers(lowercase["ranges"], 5, lambda r: f"{{{r[0]:#x}, {r[1]:#x}, {r[2]}, {r[3]}}}"))
    out.append("};\nconst std::span<const LowercaseRange> kLowercase(kLowercaseRanges);\n")
    out.append("\nstatic const ScriptRange kScriptRanges[] = {\n")
    out.extend(numbers(scripts, 7, lambda r: f"{{{r[0]:#x}, {r[1]:#x}, {r[2]}}}"))
    out.append("};\nconst std::span<const ScriptRange> kScripts(kScriptRanges);\n")
    out.append("\nconst CodePointProperty kProperties[] = {\n")
    for name in PROPERTIES:
        out.append(f"    {{\"{name}\", {table_of(name)}}},\n")
    out.append("};\nconst size_t kPropertiesLen = sizeof(kProperties) / sizeof(kProperties[0]);\n\n"
               "}  // namespace dovetail::bpe\n")
    return "".join(out)


def main():
    text = render()
    if "--check" in sys.argv[1:]:
        if OUTPUT.read_text() != text:
            sys.exit(f"{OUTPUT.relative_to(ROOT)} is stale: run tools/make_unicode_tables.py")
        return
    OUTPUT.write_text(text)
    print(f"{OUTPUT.relative_to(ROOT)}: {len(text)} bytes")


if __name__ == "__main__":
    main()
