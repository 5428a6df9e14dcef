#!/usr/bin/env python3
"""Trains the demo tokenizer with Hugging Face's library: the reference for `dovetail train-tokenizer`.

  make_tokenizer.py TEXT OUT

TEXT is one plain text file, fed line by line with its line ends (the library's way with files).
OUT is a tokenizer.json: NFC, the Qwen2 split, byte-level BPE of 4096 ids with <|endoftext|> as id 0.
"""
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer

VOCAB_SIZE = 4096
MIN_FREQUENCY = 2
END_OF_TEXT = "<|endoftext|>"
QWEN2_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
               r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    byte_level = dict(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(**byte_level),
    ])
    tokenizer.decoder = decoders.ByteLevel(**byte_level)
    trainer = BpeTrainer(
        vocab_size=VOCAB_SIZE, min_frequency=MIN_FREQUENCY, show_progress=False,
        special_tokens=[AddedToken(END_OF_TEXT, special=True, normalized=False)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train([sys.argv[1]], trainer)
    tokenizer.save(sys.argv[2])
    print(f"{tokenizer.get_vocab_size()} ids")


if __name__ == "__main__":
    main()
