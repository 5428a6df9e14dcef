"""How tools/bench/vs_peer.py shows its runs: as text on a terminal and as the page docs/performance.md.

A run is the JSON object that vs_peer.py makes. Python's standard library only.
"""
import statistics

BUSY = 0.05  # of all processors, by other programs: beyond it a run says that it was disturbed


def test_name(test, n_streams, n_prompt):
    if test == "prefill":
        return f"prefill {n_prompt}"
    return ("" if n_streams == 1 else f"{n_streams} streams, ") + f"decode at {n_prompt}"


def name_of(row):
    return test_name(row["test"], row.get("streams", 1), row["n_prompt"])  # runs of before --streams do not say 1


def cells(row):
    """A line of the table: test, formats, both speeds, the ratio with its spread, both shares."""
    m = row["median"]
    ratio = f"{m['ratio']:.2f}"
    if row["test"] == "decode":
        use = [f"{m['dovetail_share']:.0%}", f"{m['peer_share']:.0%}"]
    elif "dovetail_gflop_per_s" in m:  # the same products in both: the rates stand like the speeds
        use = [f"{m['dovetail_gflop_per_s']:.0f} GFLOP/s", f"{m['dovetail_gflop_per_s'] / m['ratio']:.0f} GFLOP/s"]
    else:
        use = ["", ""]
    return [name_of(row), row["ours"], " ".join((row["peer_type"], row["peer_args"])).strip(), f"{m['dovetail']:.1f}", f"{m['peer']:.1f}",
            f"**{ratio}**" if row["counts"] else ratio, f"{m['ratio_min']:.2f} to {m['ratio_max']:.2f}", *use]


HEADINGS = ["test", "Dovetail", "peer", "tokens/s", "peer's", "ratio", "of the pairs", "use", "peer's use"]


def table(headings, lines):
    out = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(out + ["| " + " | ".join(line) + " |" for line in lines])


def text_table(rows):
    lines = [HEADINGS] + [[c.replace("**", "") for c in cells(row)] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)


def disturbance(run):
    share = run["machine"]["others_share"]
    if share <= BUSY:
        return f"Other programs took {share:.1%} of the processors meanwhile."
    return (f"**Other programs took {share:.0%} of the processors meanwhile: these are not figures of an idle machine.** "
            "Their ratios can be far off too: the program whose threads spin longest suffers most.")


def ceilings(run):
    found = {}
    for row in run["rows"]:
        if row["test"] == "decode":
            m = row["median"]
            found[row["ours"], row["peer_type"], name_of(row)] = [
                name_of(row), row["ours"], f"{m['dovetail_bytes_per_token'] / 1e6:.0f} MB",
                f"{m['read_bandwidth'] / m['dovetail_bytes_per_token']:.1f}", row["peer_type"],
                f"{m['peer_bytes_per_token'] / 1e6:.0f} MB", f"{m['read_bandwidth'] / m['peer_bytes_per_token']:.1f}"]
    return list(found.values())


def section(run):
    peer, machine, settings = run["peer"], run["machine"], run["settings"]
    built = f", {peer['label']}" if peer.get("label") else ""
    commit = f"commit {peer.get('build_commit', 'unknown')}"
    bandwidth = [r["median"]["read_bandwidth"] for r in run["rows"]]
    parts = [
        f"## Against {peer['name']}{built}",
        f"{machine['cpu']}, {run['threads']} threads of {machine['processors']} processors, {machine['system']}; {run['date']}. "
        + (f"Dovetail read {statistics.median(bandwidth) / 1e9:.1f} GB/s. " if bandwidth else "") + disturbance(run),
        f"Dovetail at commit {run['dovetail']['commit']}, backend {run['dovetail']['backend']}, {run['dovetail']['variant']} kernels. "
        f"{peer['name']} at {commit} (build {peer.get('build_number', 'unknown')}){built}. Shape {run['shape']}, random weights; "
        f"{settings['pairs']} pairs, {settings['repeats']} timed repeat{'s' if settings['repeats'] > 1 else ''} in each run, {settings['tokens']} tokens decoded.",
    ]
    if run["rows"]:
        parts.append(table(HEADINGS, [cells(row) for row in run["rows"]]))
    for name in ("refused", "failed"):
        parts += [f"{entry['ours']} {name}: `{entry['message']}`" for entry in run[name]]
    if ceilings(run):
        parts += ["Ceilings of decoding: read bandwidth over the bytes that a token reads: its stream's cache, and the weights or, of "
                  "several streams, its part of them.",
                  table(["test", "Dovetail", "a token", "ceiling, tokens/s", "peer", "a token", "ceiling, tokens/s"], ceilings(run))]
    parts += ["The commands of one pair, for its first format:", "\n".join("    " + c for c in run["commands"])]
    return "\n\n".join(parts)


def page(runs):
    intro = (
        "<!-- Written by tools/bench/vs_peer.py; do not edit. -->\n\n# Performance\n\n"
        "Dovetail and a peer's own benchmark program, run in turn on one machine with the same shape, threads and class of\n"
        "weight format. A ratio above 1 means that Dovetail is faster. It is the median over pairs of runs that followed each\n"
        "other, beside its smallest and largest value; where the peer has several types or settings, the lowest one, in bold,\n"
        "counts. *Use* is, for decoding, the share of the read bandwidth that `dovetail bench` measured in the same pair; for\n"
        "prefill the rate of the matrix products. Streams decode together, a token of each in a step; their tokens/s are of all.")
    return intro + "\n\n" + "\n\n".join(section(run) for run in runs) + "\n"
