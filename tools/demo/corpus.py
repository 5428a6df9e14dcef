#!/usr/bin/env python3
"""Unpacks Jane Austen's six novels from Debian's r-cran-janeaustenr and cleans them.

  corpus.py DEB_OR_RDB OUTDIR

reads the package (`apt-get download r-cran-janeaustenr`) or its data/Rdata.rdb and writes

  OUTDIR/austen.json              {"pride_and_prejudice": [chapter, ...], ...}
  OUTDIR/austen-<novel>.txt       the same, one plain text file per novel

No R is needed: the .rdb file holds one zlib block per novel behind a four-byte length, and each
block is a serialized character vector with one element per printed line. Cleaning joins the lines
of a paragraph into one line, keeps the lines of verse, and drops headings, rulers, editor's notes,
the underscores of emphasis and doubled spaces. Standard library only.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import zlib
from io import BytesIO

RDB_PATH = "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
HEADING = re.compile(r"(chapter|volume)\s+([ivxlc]+|\d+)\.?", re.IGNORECASE)
CHAPTER = re.compile(r"chapter\s", re.IGNORECASE)
DROPPED = re.compile(r"(\W*|finis|the end|\[.*\])", re.IGNORECASE | re.DOTALL)

STRSXP, CHARSXP = 16, 9  # R's type codes: a character vector, and one string in it


def read_rdb(path):
    """The bytes of the .rdb file, taken out of the .deb when given one."""
    if not path.endswith(".deb"):
        with open(path, "rb") as f:
            return f.read()
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], check=True, stdout=subprocess.PIPE)
    with tarfile.open(fileobj=BytesIO(tar.stdout)) as archive:
        return archive.extractfile("./" + RDB_PATH).read()


def blocks(rdb):
    """Every inflated block: a big-endian inflated length, then a zlib stream."""
    at = 0
    while at < len(rdb):
        (raw_len,) = struct.unpack_from(">I", rdb, at)
        inflater = zlib.decompressobj()
        raw = inflater.decompress(rdb[at + 4:]) + inflater.flush()
        if len(raw) != raw_len:
            raise ValueError(f"block at byte {at} inflates to {len(raw)} bytes, expected {raw_len}")
        yield raw
        at = len(rdb) - len(inflater.unused_data)


def printed_lines(raw):
    """The strings of one R character vector in serialization format 3, big-endian ("X\\n")."""
    if raw[:2] != b"X\n":
        raise ValueError("block is not R's XDR serialization")
    (encoding_len,) = struct.unpack_from(">I", raw, 14)
    at = 18 + encoding_len
    kind, n_lines = struct.unpack_from(">II", raw, at)
    at += 8
    if kind & 255 != STRSXP:
        raise ValueError(f"block has R type {kind & 255}, expected {STRSXP} (character vector)")
    lines = []
    for _ in range(n_lines):
        kind, n_bytes = struct.unpack_from(">Ii", raw, at)
        at += 8
        if kind & 255 != CHARSXP or n_bytes < 0:
            raise ValueError(f"line {len(lines)} is not a string")
        lines.append(raw[at:at + n_bytes].decode("utf-8"))
        at += n_bytes
    return lines


def paragraph(lines):
    """One block of printed lines as text: verse keeps its lines, prose becomes one line."""
    stripped = [re.sub(r"\s+", " ", line).strip() for line in lines]
    verse = all(line.startswith("  ") for line in lines) and all(
        re.match(r"\W*[A-Z]", line) for line in stripped)
    return ("\n" if verse else " ").join(stripped).replace("_", "")


def chapters(lines):
    """The novel's chapters as text, paragraphs parted by an empty line; front matter is dropped."""
    found, block = [], []
    for line in lines + [""]:
        if line.strip() and not HEADING.fullmatch(line.strip()):
            block.append(line)
            continue
        if block and found:
            text = paragraph(block)
            if not DROPPED.fullmatch(text):
                found[-1].append(text)
        block = []
        if CHAPTER.match(line.strip()):
            found.append([])
    return ["\n\n".join(paragraphs) + "\n" for paragraphs in found]


def load(path):
    """austen.json as written by this script, split by whole chapters: (train, valid, heldout).

    Of each novel, the chapter in the middle picks the checkpoint (valid) and the one at three
    quarters is only ever used for the figure we publish (heldout).
    """
    with open(path, encoding="utf-8") as f:
        novels = json.load(f)
    train, valid, heldout = [], [], []
    for texts in novels.values():
        middle, late = len(texts) // 2, len(texts) * 3 // 4
        for i, text in enumerate(texts):
            (valid if i == middle else heldout if i == late else train).append(text)
    return train, valid, heldout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    out = sys.argv[2]
    os.makedirs(out, exist_ok=True)
    novels = {}
    for raw in blocks(read_rdb(sys.argv[1])):
        lines = printed_lines(raw)
        novels[re.sub(r"\W+", "_", lines[0].strip().lower())] = chapters(lines)
    for name, texts in novels.items():
        with open(os.path.join(out, f"austen-{name}.txt"), "w", encoding="utf-8", newline="") as f:
            f.write("\n".join(texts))
        print(f"{name}: {len(texts)} chapters, {sum(map(len, texts))} characters")
    with open(os.path.join(out, "austen.json"), "w", encoding="utf-8") as f:
        json.dump(novels, f, indent=0, ensure_ascii=False)


if __name__ == "__main__":
    main()
