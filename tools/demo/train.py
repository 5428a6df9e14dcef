#!/usr/bin/env python3
"""Trains the demo model on the novels; stops after a number of steps, and resumes where it was stopped.

  train.py DIR [--steps 4800] [--threads 2]

DIR holds austen.json (corpus.py) and tokenizer.json, and receives
  last.pt    everything needed to resume      best.pt   the averaged weights with the lowest
  loss.csv   one row per evaluation                     loss on the validation chapters
Each is written every few minutes; export.py turns best.pt into a checkpoint at any time. Two idle
cores need less than an hour. On a machine that does other work, one thread is faster than two that
wait for each other.
"""
import argparse
import csv
import math
import os
import time

import torch
from tokenizers import Tokenizer

import corpus
from model import CONFIG, Qwen3

BATCH_TOKENS = 4096            # per step, whatever the window length
SHORT, LONG = 512, 1024        # window lengths: short for most of the run, the full context at its end
LONG_FROM = 0.8                # share of the steps after which windows are long
PEAK_LR, FLOOR, WARMUP_STEPS = 1.5e-3, 0.02, 200
WEIGHT_DECAY, CLIP = 0.2, 1.0
DROPOUT, LATE_DROPOUT = 0.2, 0.3
LATE_FROM = 0.55               # share of the steps after which dropout is late: epochs repeat by then
AVERAGE_DECAY = 0.998
EVALUATE_EVERY_S = 150
SEED = 1811                    # the year of the first novel


def encode(tokenizer, texts):
    """Each text as ids that start with <|endoftext|>."""
    start = tokenizer.token_to_id("<|endoftext|>")
    return [torch.tensor([start] + tokenizer.encode(text).ids) for text in texts]


def windows(chapters, window_len, generator):
    """One epoch: the chapters in random order, cut at a random phase, windows in random order."""
    order = torch.randperm(len(chapters), generator=generator).tolist()
    stream = torch.cat([chapters[i] for i in order])
    phase = int(torch.randint(window_len, (1,), generator=generator))
    n = (len(stream) - phase - 1) // window_len
    for i in torch.randperm(n, generator=generator).tolist():
        at = phase + i * window_len
        yield stream[at:at + window_len + 1]  # one more: inputs and targets overlap but for one id


@torch.no_grad()
def mean_loss(model, chapters, window_len=CONFIG["max_position_embeddings"]):
    """Nats per id over chapters; every id but the first of a chapter is predicted exactly once."""
    total, count = 0.0, 0
    for ids in chapters:
        for at in range(0, len(ids) - 1, window_len):
            piece = ids[at:at + window_len + 1].unsqueeze(0)
            total += float(model.loss(piece)) * (piece.shape[1] - 1)
            count += piece.shape[1] - 1
    return total / count


def learning_rate(step, progress):
    warm = min(1.0, (step + 1) / WARMUP_STEPS)
    return PEAK_LR * warm * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))


def set_dropout(model, p):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = p


def save(path, state):
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dir")
    parser.add_argument("--steps", type=int, default=4800, help="steps to train for, all runs together")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    path = lambda name: os.path.join(args.dir, name)

    tokenizer = Tokenizer.from_file(path("tokenizer.json"))
    train, valid, _ = (encode(tokenizer, texts) for texts in corpus.load(path("austen.json")))
    n_train = sum(map(len, train))

    model = Qwen3(CONFIG, DROPOUT).train()
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY},
                                   {"params": vectors, "weight_decay": 0.0}], betas=(0.9, 0.98), fused=True)
    average = Qwen3(CONFIG).eval()
    average.load_state_dict(model.state_dict())
    generator = torch.Generator().manual_seed(SEED)
    state = {"step": 0, "seconds": 0.0, "n_tokens": 0, "best": float("inf")}
    if os.path.exists(path("last.pt")):
        saved = torch.load(path("last.pt"), weights_only=True)
        model.load_state_dict(saved["model"])
        average.load_state_dict(saved["average"])
        optimizer.load_state_dict(saved["optimizer"])
        generator.set_state(saved["generator"])
        state = saved["state"]
    else:
        with open(path("loss.csv"), "w", newline="") as f:
            csv.writer(f).writerow(["step", "minutes", "epochs", "learning_rate", "train_loss", "valid_loss"])

    compiled_loss = torch.compile(model.loss, dynamic=False)
    window_len, source, recent = 0, iter(()), []
    last_tick = last_evaluation = time.monotonic()
    while state["step"] < args.steps:
        progress = state["step"] / args.steps
        set_dropout(model, DROPOUT if progress < LATE_FROM else LATE_DROPOUT)
        wanted = SHORT if progress < LONG_FROM else LONG
        if wanted != window_len:
            window_len, source = wanted, iter(())
        batch = []
        while len(batch) < BATCH_TOKENS // window_len:
            piece = next(source, None)
            if piece is None:
                source = windows(train, window_len, generator)
            else:
                batch.append(piece)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(state["step"], progress)
        with torch.autocast("cpu", torch.bfloat16):
            loss = compiled_loss(torch.stack(batch))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            decay = min(AVERAGE_DECAY, (1 + state["step"]) / (10 + state["step"]))
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)
        recent.append(float(loss.detach()))
        state["step"] += 1
        state["n_tokens"] += BATCH_TOKENS
        now = time.monotonic()
        state["seconds"] += now - last_tick
        last_tick = now

        if now - last_evaluation >= EVALUATE_EVERY_S or state["step"] == args.steps:
            with torch.autocast("cpu", torch.bfloat16):
                valid_loss = mean_loss(average, valid)
            train_loss, recent = sum(recent) / len(recent), []
            row = [state["step"], f"{state['seconds'] / 60:.2f}", f"{state['n_tokens'] / n_train:.3f}",
                   f"{optimizer.param_groups[0]['lr']:.3e}", f"{train_loss:.4f}", f"{valid_loss:.4f}"]
            with open(path("loss.csv"), "a", newline="") as f:
                csv.writer(f).writerow(row)
            print("step {} | {} min | epoch {} | lr {} | train {} | valid {}".format(*row), flush=True)
            if valid_loss < state["best"]:
                state["best"] = valid_loss
                save(path("best.pt"), {"average": average.state_dict(), "state": dict(state)})
            save(path("last.pt"), {"model": model.state_dict(), "average": average.state_dict(),
                                   "optimizer": optimizer.state_dict(), "generator": generator.get_state(),
                                   "state": state})
            last_evaluation = time.monotonic()


if __name__ == "__main__":
    main()
