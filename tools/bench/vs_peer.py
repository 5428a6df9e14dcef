#!/usr/bin/env python3
"""Compares Dovetail's speed with a peer's own benchmark program, run by run in turn.

  vs_peer.py models/qwen3-0.6b --peer-bench ~/llama.cpp/build/bin/llama-bench
  vs_peer.py models/qwen3-0.6b --peer-bench PATH --format int8 --format int4:Q4_0,Q4_K,IQ4_XS
  vs_peer.py models/qwen3-0.6b --peer-bench PATH --prefill 512 --decode-at 128,2048 --peer-args=-fa 0 --peer-args=-fa 1
  vs_peer.py models/qwen3-0.6b --peer-bench PATH --streams 16
  vs_peer.py models/qwen3-0.6b --peer-bench PATH --json run.json --markdown docs/performance.md
  vs_peer.py --join avx2.json --join native.json --markdown docs/performance.md

The peer is llama-bench of llama.cpp or of ik_llama.cpp, built elsewhere. Both get the same shape, the
same class of weight format and the same number of threads; the peer's GGUF file is written here, of
random weights. For each prompt length Dovetail runs, then each peer variant, then Dovetail again: one
round is a pair, and a ratio is never taken between figures of different rounds. Ratios above 1 mean
that Dovetail is faster; of several peer types or arguments, the one with the lowest ratio counts.
With --streams, rounds of that many streams decoding together follow, against the llama-batched-bench of
the same peer. Both figures are the tokens of all streams over the time from the last prompt's end to the
last token, a token of each stream in every step; a token's bytes are its part of the weights and its
own stream's cache. As with one stream, Dovetail samples its tokens and the peer draws random ones.

exit codes  0 everything measured; 1 a run failed; 2 a wrong option; 3 a file or program is missing;
            4 Dovetail or the peer refused a format (the others are measured).
Python's standard library only.
"""
import argparse
import functools
import json
import os
import platform
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer_gguf  # noqa: E402
import peer_page  # noqa: E402

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FORMATS = {  # ours: (the peer's types of that class, how a checkpoint that is already so spells it)
    "float32": (["F32"], "float32"), "bf16": (["BF16"], "bfloat16"), "f16": (["F16"], "float16"),
    "int8": (["Q8_0"], None), "int6": (["Q6_K"], None), "int4": (["Q4_0", "Q4_K"], None), "int4q": (["IQ4_XS"], None),
}
PEER_TYPES = list(peer_gguf.TYPES) + list(peer_gguf.MIXES)
KV_BYTES = 2  # the peer's default cache type is f16
QUIET = 0.03  # of all processors, by other programs: up to here a pair counts as undisturbed
REFUSALS = (2, 4)  # Dovetail's exit codes for a config it does not take and for what it cannot do


class Failure(Exception):
    """A message for the user, and the exit code that goes with it."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


def processor_seconds():
    """Time that all processors were busy, in seconds, and this program and its children's part of it."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, *rest = (int(x) for x in f.readline().split()[1:9])
    mine = sum(u.ru_utime + u.ru_stime for u in (resource.getrusage(resource.RUSAGE_SELF),
                                                 resource.getrusage(resource.RUSAGE_CHILDREN)))
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK"), mine


class Others:
    """How much of the machine other programs used while the runs went on, and time to wait for them to rest."""

    def __init__(self, patience_s):
        self.patience_s = patience_s
        self.total, self.pair = [0.0, 0.0], [0.0, 0.0]  # processor seconds: used by others, there were

    def watch(self, action):
        """What action returns, and the processor seconds [that others used, that there were] meanwhile."""
        start, (busy, mine) = time.monotonic(), processor_seconds()
        result = action()
        busy_after, mine_after = processor_seconds()
        return result, [max(0.0, busy_after - busy - (mine_after - mine)), (time.monotonic() - start) * os.cpu_count()]

    def run(self, command):
        try:
            done, spent = self.watch(lambda: subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                                            errors="replace"))
        except OSError as e:
            raise Failure(f"cannot run {command[0]}: {e.strerror}", 3) from e
        self.pair = [a + b for a, b in zip(self.pair, spent)]
        return done

    def undisturbed(self, measure, log):
        """What measure returns; while there is patience, waits for a quiet machine and discards disturbed results."""
        while True:
            while self.patience_s > 0:
                _, (used, there_were) = self.watch(lambda: time.sleep(1))
                self.patience_s -= 1
                if used <= QUIET * there_were:
                    break
            self.pair, start = [0.0, 0.0], time.monotonic()
            result = measure()
            if self.patience_s <= 0 or self.pair[0] <= QUIET * self.pair[1]:
                self.total = [a + b for a, b in zip(self.total, self.pair)]
                return result
            self.patience_s -= time.monotonic() - start
            log(f"other programs took {self.pair[0] / self.pair[1]:.0%} of the processors; measuring this pair again")

    def share(self):
        return self.total[0] / self.total[1] if self.total[1] else 0.0


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def check_ended(name, done, refusals=()):
    """A program that ended with an error is a failure with its last line."""
    if done.returncode:
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        raise Failure(f"{last_line(done.stderr or done.stdout)} ({name}, {ended})", 4 if done.returncode in refusals else 1)


def parse_output(name, done, refusals=()):
    """The JSON that a program printed."""
    check_ended(name, done, refusals)
    try:
        return json.loads(done.stdout)
    except ValueError as e:
        raise Failure(f"{name} printed no JSON: {e}; its output begins {done.stdout[:60]!r}") from e


class Dovetail:
    def __init__(self, options, others):
        self.options, self.others, self.machine = options, others, {}

    def command(self, ours, n_prompt, n_streams=1):
        o = self.options
        command = [o.dovetail, "bench", o.config, "--json", "-p", str(n_prompt), "-n", str(o.tokens),
                   "--repeats", str(o.repeats), "--set", f"backend.threads={o.threads}"]
        if n_streams > 1:
            command += ["--streams", str(n_streams)]
        if ours != o.stored_format:
            command += ["--set", f"backend.weights={ours}"]
        for setting in o.set:
            command += ["--set", setting]
        return command

    def measure(self, ours, n_prompt, n_streams=1):
        found = parse_output("dovetail bench", self.others.run(self.command(ours, n_prompt, n_streams)), REFUSALS)
        try:
            self.machine = found["machine"]
            for section in ("prefill", "decode"):
                for key in ("tokens_per_s", "bytes_per_token", "bandwidth_share"):
                    float(found[section][key])
            float(found["machine"]["read_bandwidth"])
        except (KeyError, TypeError) as e:
            raise Failure(f"dovetail bench --json has no {e}") from e
        return found


class Peer:
    """llama-bench, and what its help says about how depth is asked for."""

    def __init__(self, options, others):
        self.options, self.others, self.build = options, others, {}
        done = others.run([options.peer_bench, "--help"])
        text = done.stdout + done.stderr
        if "--n-prompt" not in text or "--n-gen" not in text:
            raise Failure(f"{options.peer_bench} is no llama-bench: its help names no --n-prompt and --n-gen", 2)
        self.has_depth = "--n-depth" in text
        if not self.has_depth and "-gp <" not in text:
            raise Failure(f"{options.peer_bench} can neither decode at a depth (-d) nor after a prompt (-gp)", 2)
        self.name = options.peer_name or ("ik_llama.cpp" if "--run-time-repack" in text else "llama.cpp")

    def command(self, gguf, arguments, n_prompt, n_gen, depth):
        """A prompt of n_prompt tokens, or n_gen tokens after depth others; never both."""
        command = [self.options.peer_bench, "-m", gguf, "-t", str(self.options.threads), "-r",
                   str(self.options.repeats), "-o", "json", "-p", str(n_prompt)]
        if depth and not self.has_depth:
            command += ["-n", "0", "-gp", f"{depth},{n_gen}"]
        else:
            command += ["-n", str(n_gen)] + (["-d", str(depth)] if depth else [])
        return command + shlex.split(arguments)

    def measure(self, gguf, arguments, n_prompt, n_gen, depth):
        rows = parse_output("llama-bench", self.others.run(self.command(gguf, arguments, n_prompt, n_gen, depth)))
        if not isinstance(rows, list) or len(rows) != 1 or "samples_ts" not in rows[0]:
            raise Failure(f"llama-bench printed {len(rows)} results, expected one with samples_ts")
        row = rows[0]
        self.build = {k: row[k] for k in ("build_commit", "build_number", "cpu_info", "backends") if k in row}
        return statistics.median(row["samples_ts"])


class BatchedPeer:
    """llama-batched-bench: several streams that decode together, each after a prompt of its own."""

    def __init__(self, options, others):
        self.options, self.others = options, others
        done = others.run([options.peer_batched, "--help"])
        text = done.stdout + done.stderr
        missing = [word for word in ("-npp", "-ntg", "-npl", "--output-format") if word not in text]
        if missing:
            raise Failure(f"{options.peer_batched} is no llama-batched-bench, or too old: its help names no {', '.join(missing)}", 2)
        done = others.run([options.peer_batched, "--version"])  # as in "version: 1.2 (build 42, commit abc)" or "version: 42 (abc)"
        build = re.search(r"(\d+)(?:, commit | \()([0-9a-f]+)\)", done.stdout + done.stderr)
        self.build = {"build_number": int(build[1]), "build_commit": build[2]} if build else {}

    def command(self, gguf, arguments):
        o = self.options
        return [o.peer_batched, "-m", gguf, "-t", str(o.threads), "-c", str(o.streams * (o.streams_at + o.tokens)),
                "-npp", str(o.streams_at), "-ntg", str(o.tokens), "-npl", ",".join([str(o.streams)] * o.repeats),
                "--output-format", "jsonl"] + shlex.split(arguments)

    def measure(self, gguf, arguments):
        """Tokens/s of all streams together: a line of JSON for each repeat, the median of their speed_tg."""
        done = self.others.run(self.command(gguf, arguments))
        check_ended("llama-batched-bench", done)
        o = self.options
        asked = {"pp": o.streams_at, "tg": o.tokens, "pl": o.streams, "n_threads": o.threads, "n_threads_batch": o.threads}
        try:
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
            speeds = [float(row["speed_tg"]) for row in rows if {key: row[key] for key in asked} == asked]
        except (ValueError, KeyError, TypeError) as e:
            raise Failure(f"llama-batched-bench printed no lines of JSON with speed_tg and {', '.join(asked)}: "
                          f"its output begins {done.stdout[:60]!r}") from e
        if len(speeds) != o.repeats:
            raise Failure(f"llama-batched-bench printed {len(speeds)} results of {asked}, expected {o.repeats}")
        return statistics.median(speeds)


def cache_bytes(shape, n_tokens):
    """Of the peer: keys and values of so many tokens in all layers."""
    return 2 * shape["num_hidden_layers"] * shape["num_key_value_heads"] * shape["head_dim"] * KV_BYTES * n_tokens


def figures(mine, test, theirs, peer_bytes):
    """A pair's figures: of what `dovetail bench` printed that section, and the peer's tokens/s."""
    own, bandwidth = mine[test], mine["machine"]["read_bandwidth"]
    return {
        "dovetail": own["tokens_per_s"], "peer": theirs, "ratio": own["tokens_per_s"] / theirs,
        "read_bandwidth": bandwidth, "dovetail_bytes_per_token": own["bytes_per_token"],
        "peer_bytes_per_token": peer_bytes, "dovetail_share": own["bandwidth_share"],
        "peer_share": theirs * peer_bytes / bandwidth, "dovetail_gflop_per_s": own.get("gflop_per_s"),
    }


def measure_pair(options, dovetail, peer, variants, ours, n_prompt):
    """One round: Dovetail, then every variant. {(test, streams, n_prompt, type, arguments): a pair's figures}."""
    mine, out = dovetail.measure(ours, n_prompt), {}
    for kind, arguments, gguf in variants:
        weights = peer_gguf.bytes_per_token(options.shape, kind, options.peer_head)
        tests = []
        if n_prompt in options.prefill:
            tests.append(("prefill", (n_prompt, 0, 0), weights / n_prompt))
        if n_prompt in options.decode_at:
            cache = cache_bytes(options.shape, n_prompt + options.tokens / 2)
            tests.append(("decode", (0, options.tokens, n_prompt), weights + cache))
        for test, lengths, peer_bytes in tests:
            theirs = peer.measure(gguf, arguments, *lengths)
            out[test, 1, n_prompt, kind, arguments] = figures(mine, test, theirs, peer_bytes)
    return out


def measure_streams(options, dovetail, batched, variants, ours):
    """One round of several streams that decode together, as measure_pair."""
    n_streams, n_prompt = options.streams, options.streams_at
    mine, out = dovetail.measure(ours, n_prompt, n_streams), {}
    for kind, arguments, gguf in variants:
        weights = peer_gguf.bytes_per_token(options.shape, kind, options.peer_head)
        peer_bytes = weights / n_streams + cache_bytes(options.shape, n_prompt + options.tokens / 2)
        theirs = batched.measure(gguf, arguments)
        out["decode", n_streams, n_prompt, kind, arguments] = figures(mine, "decode", theirs, peer_bytes)
    return out


def summary(pairs):
    """Medians of every figure, and how far the ratio of a pair strayed."""
    keys = [key for key, value in pairs[0].items() if value is not None]
    out = {key: statistics.median(p[key] for p in pairs) for key in keys}
    ratios = [p["ratio"] for p in pairs]
    return {**out, "ratio_min": min(ratios), "ratio_max": max(ratios)}


def test_of(row):
    return tuple(row[key] for key in ("ours", "test", "streams", "n_prompt"))


def mark_hardest(rows):
    """Of the peer's variants for one test, the one that Dovetail beats by least is the one that counts."""
    hardest = {}
    for row in rows:
        key = test_of(row)
        if key not in hardest or row["median"]["ratio"] < hardest[key]["median"]["ratio"]:
            hardest[key] = row
    for row in rows:
        row["counts"] = row is hardest[test_of(row)]


def measure_format(options, dovetail, peer, batched, ours, kinds, folder, log, found):
    """Adds to found, so that what was measured before a failure stays."""
    variants = []
    for kind in kinds:
        head = f"-{options.peer_head}" if options.peer_head else ""
        path = os.path.join(folder, f"{options.shape_name}-{kind}{head}.gguf")
        log(f"{ours}: writing the peer's {kind} file")
        try:
            peer_gguf.write(path, options.shape, kind, options.peer_head)
        except ValueError as e:
            raise Failure(str(e), 2) from e
        variants += [(kind, arguments, path) for arguments in options.peer_args]
    rounds = [functools.partial(measure_pair, options, dovetail, peer, variants, ours, n_prompt)
              for n_prompt in sorted(set(options.prefill) | set(options.decode_at))]
    if batched:
        rounds.append(functools.partial(measure_streams, options, dovetail, batched, variants, ours))
    for measure in rounds:
        for i in range(options.pairs):
            for key, pair in dovetail.others.undisturbed(measure, log).items():
                found.setdefault(key, []).append(pair)
                log(f"{ours} {peer_page.test_name(*key[:3])}, pair {i + 1} of {options.pairs}: {pair['dovetail']:.1f} tokens/s, "
                    f"{' '.join(key[3:]).strip()} {pair['peer']:.1f}, ratio {pair['ratio']:.2f}")


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.split(":")[0].strip() == "model name":
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def own_commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def shown_path(path):
    """A path as a page may print it: relative inside the repository, else its last part."""
    real = os.path.realpath(path)
    return os.path.relpath(real, ROOT) if real.startswith(ROOT + os.sep) else os.path.basename(real)


def shown(command):
    words = [os.path.basename(command[0])] + [shown_path(w) if os.sep in w and os.path.exists(w) else w for w in command[1:]]
    return shlex.join(words)


def compare(options, log):
    others = Others(options.patience)
    dovetail, peer = Dovetail(options, others), Peer(options, others)
    batched = BatchedPeer(options, others) if options.streams else None
    load, rows, refused, failed = os.getloadavg()[0], [], [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.gguf_dir or temporary
        os.makedirs(folder, exist_ok=True)
        for ours, kinds in options.formats:
            found = {}
            try:
                measure_format(options, dovetail, peer, batched, ours, kinds, folder, log, found)
            except Failure as e:
                if e.code == 3:
                    raise
                log(f"{ours}: {'refused' if e.code in REFUSALS else 'failed'}: {e}")
                (refused if e.code in REFUSALS else failed).append({"ours": ours, "peer_types": kinds, "message": str(e)})
            rows += [{"ours": ours, "test": test, "streams": streams, "n_prompt": n, "peer_type": kind, "peer_args": arguments,
                      "pairs": pairs, "median": summary(pairs)} for (test, streams, n, kind, arguments), pairs in found.items()]
    mark_hardest(rows)
    ours, kinds = options.formats[0]
    gguf = f"{options.shape_name}-{kinds[0]}.gguf"
    commands = [shown(dovetail.command(ours, n)) for n in sorted(options.prefill + options.decode_at)[-1:]]
    commands += [shown(peer.command(gguf, options.peer_args[0], n, 0, 0)) for n in options.prefill[-1:]]
    commands += [shown(peer.command(gguf, options.peer_args[0], 0, options.tokens, n)) for n in options.decode_at[-1:]]
    if batched:
        commands += [shown(dovetail.command(ours, options.streams_at, options.streams)),
                     shown(batched.command(gguf, options.peer_args[0]))]
    return {
        "date": time.strftime("%Y-%m-%d"), "shape": options.shape_name, "threads": options.threads,
        "machine": {"cpu": cpu_model(), "processors": os.cpu_count(), "system": platform.system() + " " + platform.release(),
                    "load_before": load, "others_share": others.share()},
        "dovetail": {"commit": options.dovetail_commit or own_commit(), **{k: dovetail.machine.get(k) for k in ("backend", "variant")}},
        "peer": {"name": peer.name, "label": options.peer_label, **(batched.build if batched else {}), **peer.build},
        "settings": {"pairs": options.pairs, "repeats": options.repeats, "tokens": options.tokens, "set": options.set},
        "commands": commands, "rows": rows, "refused": refused, "failed": failed,
    }


def lengths(text):
    values = [int(word) for word in text.split(",") if word]
    if any(v < 1 for v in values):
        raise argparse.ArgumentTypeError(f"{text} has a length below 1")
    return sorted(set(values))


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


def streams(text):
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"{value} streams are not several; --decode-at measures one")
    return value


def formats(words):
    """`int4` or `int4:Q4_0,Q4_K`, checked, as (ours, the peer's types)."""
    out = []
    for word in words:
        ours, _, theirs = word.partition(":")
        if ours not in FORMATS:
            raise Failure(f"unknown format {ours}; known: {', '.join(FORMATS)}", 2)
        kinds = theirs.split(",") if theirs else FORMATS[ours][0]
        for kind in kinds:
            if kind not in PEER_TYPES:
                raise Failure(f"unknown peer type {kind or 'of no name'} in {word}; known: {', '.join(PEER_TYPES)}", 2)
        out.append((ours, kinds))
    return out


def read_shape(options):
    path = options.shape_file or os.path.join(options.config, "config.json")
    try:
        with open(path, encoding="utf-8") as f:
            shape = json.load(f)
        if shape.get("model_type") != "qwen3":
            raise Failure(f"{path} is of model_type {shape.get('model_type')}; the peer's file can only be written for qwen3", 4)
        shape.setdefault("tie_word_embeddings", False)
        peer_gguf.metadata(shape)
    except OSError as e:
        raise Failure(f"{path}: {e.strerror}; --shape names the config.json that gives the sizes", 3) from e
    except (ValueError, AttributeError) as e:
        raise Failure(f"{path} is no config.json: {e}", 3) from e
    except KeyError as e:
        raise Failure(f"{path} lacks {e}", 3) from e
    return path, shape


def prepare(options):
    """Checks what can be checked before anything is measured."""
    options.formats = formats(options.format or ["bf16"])
    if not options.prefill and not options.decode_at and not options.streams:
        raise Failure("nothing to measure: --prefill and --decode-at are both empty, and there is no --streams", 2)
    programs = [(options.dovetail, "dovetail", "`make build` makes it, --dovetail names another"),
                (options.peer_bench, "peer benchmark", "build the peer's llama-bench and give its path to --peer-bench")]
    if options.streams:
        options.peer_batched = options.peer_batched or os.path.join(os.path.dirname(options.peer_bench), "llama-batched-bench")
        programs.append((options.peer_batched, "llama-batched-bench", "build the peer's and give its path to --peer-batched"))
    for path, what, hint in programs:
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            raise Failure(f"no {what} program at {path}: {hint}", 3)
    path, options.shape = read_shape(options)
    options.shape_name = os.path.basename(os.path.dirname(os.path.realpath(path)))
    stored = options.shape.get("torch_dtype", options.shape.get("dtype"))
    options.stored_format = next((ours for ours, (_, dtype) in FORMATS.items() if dtype and dtype == stored), None)
    options.threads = options.threads or len(os.sched_getaffinity(0))
    options.peer_args = options.peer_args or [""]


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", metavar="CONFIG_OR_FOLDER", help="what `dovetail bench` is given")
    parser.add_argument("--peer-bench", metavar="PATH", help="the peer's llama-bench")
    parser.add_argument("--dovetail", metavar="PATH", default=os.path.join(ROOT, "build", "release", "bin", "dovetail"))
    parser.add_argument("--shape", dest="shape_file", metavar="FILE", help="config.json with the sizes (CONFIG_OR_FOLDER/config.json)")
    parser.add_argument("--format", action="append", metavar="OURS[:TYPE,...]",
                        help=f"{'|'.join(FORMATS)}, and the peer's types to set against it; repeatable (bf16)")
    parser.add_argument("--prefill", type=lengths, default=[128, 512], metavar="N,...", help="prompt lengths (128,512)")
    parser.add_argument("--decode-at", type=lengths, default=[128, 2048], metavar="N,...", help="contexts to decode at (128,2048)")
    parser.add_argument("--streams", type=streams, metavar="N", help="also measure N streams that decode together")
    parser.add_argument("--streams-at", type=positive, default=128, metavar="N",
                        help="prompt of each stream (128: few enough that the weights, which the streams share, are most of a step)")
    parser.add_argument("--peer-batched", metavar="PATH", help="the peer's llama-batched-bench (the one beside --peer-bench)")
    parser.add_argument("-n", "--tokens", type=positive, default=32, help="tokens to decode, of each stream (32)")
    parser.add_argument("--pairs", type=positive, default=5, help="rounds of Dovetail and peer (5)")
    parser.add_argument("--patience", type=float, default=0, metavar="SECONDS",
                        help="spent on waiting for other programs to rest, and on repeating pairs that they disturbed (0)")
    parser.add_argument("--repeats", type=positive, default=1, help="timed repeats in each run, after its warm-up (1)")
    parser.add_argument("-t", "--threads", type=positive, help="of both (all that this process may use)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="passed to dovetail; repeatable")
    parser.add_argument("--peer-args", action="append", metavar="ARGS", help="more arguments of the peer's programs; repeatable, each a variant")
    parser.add_argument("--peer-head", choices=list(peer_gguf.TYPES),
                        help="type of the peer's output matrix (Q6_K with 4-bit types, else the same type)")
    parser.add_argument("--peer-name", help="instead of what the program's help suggests")
    parser.add_argument("--peer-label", metavar="TEXT", help="how the peer was built, for the page")
    parser.add_argument("--dovetail-commit", metavar="TEXT", help="instead of what git says of this tree")
    parser.add_argument("--gguf-dir", metavar="DIR", help="keep the peer's files there and use them again")
    parser.add_argument("--join", action="append", default=[], metavar="FILE", help="an earlier run's --json, for the page; repeatable")
    parser.add_argument("--json", metavar="FILE", help="write the run there, - for standard output")
    parser.add_argument("--markdown", metavar="FILE", help="write the page there")
    options = parser.parse_args(argv)
    if options.peer_batched and not options.streams:
        parser.error("--peer-batched needs --streams")
    if options.peer_bench and not options.config:
        parser.error("CONFIG_OR_FOLDER is missing")
    if not options.peer_bench and not (options.join and options.markdown):
        parser.error("--peer-bench is missing (or --join and --markdown, to write a page of earlier runs)")
    return options


def load_run(path):
    try:
        with open(path, encoding="utf-8") as f:
            run = json.load(f)
        peer_page.section(run)
        return run
    except OSError as e:
        raise Failure(f"{path}: {e.strerror}", 3) from e
    except (ValueError, KeyError, TypeError) as e:
        raise Failure(f"{path} is no --json of this tool: {e}", 3) from e


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def work(options):
    runs = [load_run(path) for path in options.join]
    code = 0
    if options.peer_bench:
        prepare(options)
        run = compare(options, lambda line: print(line, file=sys.stderr, flush=True))
        runs.append(run)
        code = 1 if run["failed"] else 4 if run["refused"] else 0
        if options.json != "-":
            print(peer_page.text_table(run["rows"]) if run["rows"] else "nothing was measured")
            print(peer_page.disturbance(run).replace("**", ""))
        for name in ("refused", "failed"):
            for entry in run[name]:
                print(f"vs_peer: {entry['ours']} {name}: {entry['message']}", file=sys.stderr)
        if options.json:
            text = json.dumps(run, indent=2) + "\n"
            sys.stdout.write(text) if options.json == "-" else write_text(options.json, text)
    if options.markdown:
        write_text(options.markdown, peer_page.page(runs))
    return code


def main(argv=None):
    try:
        return work(parse(argv))
    except KeyboardInterrupt:
        print("vs_peer: interrupted", file=sys.stderr)
        return 130
    except Failure as e:
        print(f"vs_peer: {e}", file=sys.stderr)
        return e.code
    except OSError as e:
        print(f"vs_peer: {e}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
