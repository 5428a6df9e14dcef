#!/usr/bin/env python3
"""Turns the best training checkpoint into configs/demo: weights, configs, loss curve, model card.

  export.py DIR OUT

DIR is the folder that train.py wrote; a notes.md in it goes into the card. OUT receives
model.safetensors (bfloat16), config.json, generation_config.json, tokenizer.json,
tokenizer_config.json, loss.csv, loss.png and README.md.
What the card says is measured here, on the exported files loaded by the official class: bfloat16
weights computed in float32. Needs transformers and matplotlib besides what train.py needs.
"""
import csv
import json
import math
import os
import shutil
import sys

import matplotlib
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoTokenizer, Qwen3ForCausalLM

import corpus
import train
from model import CONFIG, Qwen3

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

GENERATION = {"bos_token_id": 0, "do_sample": True, "eos_token_id": 0, "temperature": 0.8,
              "top_k": 40, "top_p": 0.95}
TOKENIZER = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>",
             "clean_up_tokenization_spaces": False,
             "model_max_length": CONFIG["max_position_embeddings"]}
PROMPTS = ["It is a truth universally acknowledged, that", "Elizabeth looked out of the window, and",
           "The evening was spent in"]
SAMPLE_TOKENS = 160

CARD = """# The demo model: {millions:.1f} M parameters, trained on Jane Austen

A Qwen3-architecture base model that continues English prose in the manner of Jane Austen's novels. It
is here so that a fresh clone can stream text without a download. It knows nothing but six novels: no
chat template, no instructions, no facts. `tools/demo/` holds everything that made it.

| | |
|---|---|
| architecture | Qwen3 dense: {num_hidden_layers} layers, width {hidden_size}, {num_attention_heads} query and {num_key_value_heads} KV heads of {head_dim}, feed-forward {intermediate_size}, context {max_position_embeddings}, embedding tied |
| parameters | {n_params:,} |
| vocabulary | {vocab_size} ids, byte-level BPE; id 0 is `<\\|endoftext\\|>`, which starts each chapter |
| training text | {n_train:,} tokens: six novels without twelve chapters |
| training | {step:,} steps of {batch_tokens} tokens ({epochs:.1f} epochs) in {minutes:.0f} minutes at the lowest priority on two cores that did other work, bfloat16 autocast |
| validation | perplexity {valid_ppl:.2f} (the middle chapter of each novel; it chose the checkpoint) |
| **held out** | **perplexity {heldout_ppl:.2f}** per token, {bits_per_byte:.3f} bits per byte (the chapter at three quarters of each novel: {n_heldout:,} tokens, used for nothing else) |
| made with | torch {torch}, transformers {transformers} |

Perplexities are those of the exported bfloat16 weights, computed in float32 by `Qwen3ForCausalLM` over
windows of the whole context. The largest difference to our training module's logits was {difference:.1e}.
The tokenizer has seen the held-out chapter of its own novel; the weights have not.

![loss](loss.png)

{notes}## Samples

Made by transformers from the exported files: seed {seed}, temperature {temperature}, top_k {top_k}, top_p {top_p},
{sample_tokens} tokens each. The prompt is in bold.

{samples}

## Making it again

    apt-get download r-cran-janeaustenr
    python3 tools/demo/corpus.py r-cran-janeaustenr_*.deb DIR
    python3 tools/demo/make_tokenizer.py DIR/austen-pride_and_prejudice.txt DIR/tokenizer.json
    python3 tools/demo/train.py DIR
    python3 tools/demo/export.py DIR configs/demo

`train.py` resumes when it was stopped. Another machine or another version of PyTorch rounds otherwise, so
the result is much the same but not bit for bit.

`tokenizer.json` is what `dovetail train-tokenizer` makes of *Pride and Prejudice*
(`tests/data/demo/austen-pride_and_prejudice.txt`): vocabulary {vocab_size}, minimum frequency 2, all 256
bytes in the initial alphabet, `<|endoftext|>` as the one special token, NFC, the Qwen2 split, the file fed
line by line with its line ends. `make_tokenizer.py` is the same with Hugging Face's trainer.

## Licence

The novels are in the public domain. The weights and the tokenizer are under this repository's licence.
"""


def export_weights(weights, out):
    tensors = {name: w.to(torch.bfloat16).contiguous() for name, w in weights.items()}
    path = os.path.join(out, "model.safetensors")
    save_file(tensors, path, metadata={"format": "pt"})
    os.chmod(path, 0o644)


def write_json(out, name, value):
    with open(os.path.join(out, name), "w") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


class Official:
    """The official class behind the one method that train.mean_loss calls."""

    def __init__(self, folder):
        self.model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def loss(self, ids):
        logits = self.model(ids[:, :-1], use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def samples(model, folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = []
    for prompt in PROMPTS:
        torch.manual_seed(train.SEED)
        ids = tokenizer(prompt, return_tensors="pt")
        out = model.generate(**ids, max_new_tokens=SAMPLE_TOKENS, pad_token_id=0,
                             **{k: v for k, v in GENERATION.items() if not k.endswith("_id")})
        text = tokenizer.decode(out[0][ids["input_ids"].shape[1]:], skip_special_tokens=True)
        quoted = f"**{prompt}**{text.rstrip()}".replace("*", "\\*").replace("\\*\\*", "**")
        texts.append("\n".join(("> " + line).rstrip() for line in quoted.split("\n")))
    return "\n\n---\n\n".join(texts)


def draw(rows, out):
    epochs = [float(r["epochs"]) for r in rows]
    figure, axes = pyplot.subplots(figsize=(7, 4), dpi=100)
    axes.plot(epochs, [float(r["train_loss"]) for r in rows], label="training (with dropout)")
    axes.plot(epochs, [float(r["valid_loss"]) for r in rows], label="validation chapters (averaged weights)")
    axes.set(xlabel="epochs", ylabel="nats per token", title="Demo model: loss")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(os.path.join(out, "loss.png"), metadata={"Software": None})


@torch.no_grad()
def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    saved = torch.load(os.path.join(folder, "best.pt"), weights_only=True)
    export_weights(saved["average"], out)
    write_json(out, "config.json", CONFIG)
    write_json(out, "generation_config.json", GENERATION)
    write_json(out, "tokenizer_config.json", TOKENIZER)
    for name in ("tokenizer.json", "loss.csv"):
        shutil.copy(os.path.join(folder, name), out)

    tokenizer = Tokenizer.from_file(os.path.join(out, "tokenizer.json"))
    texts = corpus.load(os.path.join(folder, "austen.json"))
    train_ids, valid, heldout = (train.encode(tokenizer, split) for split in texts)
    official = Official(out)
    heldout_loss, valid_loss = train.mean_loss(official, heldout), train.mean_loss(official, valid)

    ours = Qwen3(CONFIG).eval()
    ours.load_state_dict({k: w.to(torch.bfloat16).float() for k, w in saved["average"].items()})
    probe = heldout[0][:200].unsqueeze(0)
    difference = float((ours(probe) - official.model(probe, use_cache=False).logits).abs().max())
    if difference > 1e-3:
        sys.exit(f"logits differ from the official class by {difference}")

    with open(os.path.join(folder, "loss.csv"), newline="") as f:
        rows = list(csv.DictReader(f))
    draw(rows, out)
    state = saved["state"]
    n_train = sum(map(len, train_ids))
    n_predicted = sum(len(ids) - 1 for ids in heldout)
    n_bytes = sum(len(text.encode()) for text in texts[2])
    n_params = sum(p.numel() for p in ours.parameters())
    notes_path = os.path.join(folder, "notes.md")
    notes = ""
    if os.path.exists(notes_path):
        with open(notes_path) as f:
            notes = f.read().rstrip() + "\n\n"
    card = CARD.format(
        **CONFIG, millions=n_params / 1e6, n_params=n_params, n_train=n_train, step=state["step"],
        batch_tokens=train.BATCH_TOKENS, epochs=state["n_tokens"] / n_train,
        minutes=state["seconds"] / 60,
        valid_ppl=math.exp(valid_loss), heldout_ppl=math.exp(heldout_loss), n_heldout=n_predicted,
        bits_per_byte=heldout_loss * n_predicted / math.log(2) / n_bytes, difference=difference,
        notes=notes, torch=torch.__version__, transformers=transformers.__version__, seed=train.SEED,
        temperature=GENERATION["temperature"], top_k=GENERATION["top_k"], top_p=GENERATION["top_p"],
        sample_tokens=SAMPLE_TOKENS, samples=samples(official.model, out))
    with open(os.path.join(out, "README.md"), "w") as f:
        f.write(card)
    print(card)


if __name__ == "__main__":
    main()
