#!/usr/bin/env python3
"""zkSync's Merkle tree and `arbor loadtest` write the same leaves; table of times, bytes, memory and ratios.

    bench-peers/loadtest.py [--runs N] [--peer quoted] [--report FILE] [WORKLOAD...]

Workloads: insert (20 blocks of 150,000), latest (the same, of which arbor keeps the latest version alone: both check that one at the end), proofs (insert with a proof of every write and of
50,000 reads a block), memory (insert, nothing on disk), prune and keep (300 blocks of 5,000, the latest version alone or all of them). The peer's runs of insert serve for latest, too. Sides take turns, medians are printed, and the roots must be equal, or there is no table. The peer's program is built by
`cargo build --release` in bench-peers/zksync-tree, which compiles RocksDB: half an hour on two cores. `--peer quoted` prints the figures that were measured of the same commands on this
kind of machine (two hardware threads) beside arbor's instead of running it.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))

# Words for both sides, for the peer and for arbor alone; what is wanted: times the peer's throughput, part of its bytes, disk and memory.
WORKLOADS = {
    "insert": (["20", "150000"], ["--verify"], [], {"rate": 6, "written": 0.5, "disk": 0.5, "memory": 800e6}),
    "latest": (["20", "150000"], ["--verify"], ["--prune"], {"rate": 6, "check": 1 / 15}),
    "proofs": (["20", "150000", "--proofs", "--reads", "50000"], [], [], {"rate": 6}),
    "memory": (["20", "150000", "--in-memory"], [], [], {"rate": 10}),
    "prune": (["300", "5000", "--prune"], [], [], {"rate": 6}),
    "keep": (["300", "5000"], [], [], {"rate": 6}),
}
# zksync-era 3e29e4a, two threads: seconds, bytes on disk, bytes written, peak memory, seconds for the check.
FIGURES = ("s", "disk", "written", "memory", "verify_s")
QUOTED = {
    "insert": (147.5, 1.07e9, 3.22e9, 804e6, 71.5),
    "latest": (147.5, 1.07e9, 3.22e9, 804e6, 71.5),
    "proofs": (170.1, 1.07e9, 3.22e9, 1051e6, None),
    "memory": (96.9, None, None, 3.0e9, None),
    "prune": (101, 0.61e9, 2.93e9, 280e6, None),
    "keep": (92, 1.23e9, 3.97e9, 251e6, None),
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", default=list(WORKLOADS))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--peer", choices=["run", "quoted"], default="run")
    parser.add_argument("--arbor", default=os.environ.get("ARBOR", TARGET / "release/arbor"))
    parser.add_argument("--zksync", default=os.environ.get("ZKSYNC_TREE", HERE / "zksync-tree/target/release/zksync-tree-bench"))
    parser.add_argument("--memory", help="arbor's (default: 1GiB for the workload memory, 256MiB for the others)")
    parser.add_argument("--write-back", default="96MiB", help="arbor's")
    parser.add_argument("--report", help="write the figures of all runs here, as JSON")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"no such workload: {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    return arguments


def run_arbor(arguments, words):
    with tempfile.TemporaryDirectory() as folder:
        log, report = Path(folder) / "log", Path(folder) / "report.json"
        memory = arguments.memory or ("1GiB" if "--in-memory" in words else "256MiB")
        words = [*words, "--memory", memory, "--report", report]
        if "--in-memory" not in words:
            words += ["--write-back", arguments.write_back]
        usage = measure.run([arguments.arbor, "loadtest", *words], log, report)
        results = json.loads(report.read_text())["results"]
    return {
        "s": results["wall_s"],
        "disk": results["disk_bytes"],
        "compacted": results["compacted_bytes"],
        "written": results["written_bytes"],
        "memory": usage.peak_rss_bytes,
        "verify_s": results["verify_s"],
        "root": results["root"],
        "usage": asdict(usage),
    }


def run_peer(arguments, words):
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        usage = measure.run([arguments.zksync, *words], log)
        results = json.loads(log.read_text().splitlines()[-1])
    return {
        "s": results["wall_s"],
        "disk": results["disk_bytes"],
        "written": usage.written_bytes if results["disk_bytes"] else None,
        "memory": usage.peak_rss_bytes,
        "verify_s": results["verify_s"],
        "root": results["root"],
        "usage": asdict(usage),
    }


def quoted(name):
    return dict(zip(FIGURES, QUOTED[name]))


def median(runs, what):
    values = [run[what] for run in runs if run.get(what) is not None]
    return statistics.median(values) if values else None


def show(name, ours, peer, is_quoted):
    common, _, _, wanted = WORKLOADS[name]
    leaves = int(common[0]) * int(common[1])
    print(f"\n{name}: {' '.join(common)}\n")
    print(f"| | zkSync{' (quoted)' if is_quoted else ''} | arbor | ratio | wanted |\n|---|---|---|---|---|")

    def row(label, theirs, mine, ratio, want, form):
        cells = [form(value) if value is not None else "-" for value in (theirs, mine)]
        print(f"| {label} | {cells[0]} | {cells[1]} | {f'{ratio:.2f}' if ratio else ''} | {want} |")

    mine, theirs = leaves / median(ours, "s"), leaves / median(peer, "s")
    row("new leaves a second", theirs, mine, mine / theirs, f"{wanted['rate']}", lambda v: f"{v:,.0f}")
    for what, label in (("written", "written"), ("disk", "on disk"), ("memory", "peak memory, check included")):
        mine, theirs = median(ours, what), median(peer, what)
        ratio = mine / theirs if mine and theirs else None
        want = wanted.get(what, "")
        want = f"{want / 1e6:.0f} MB" if want and want > 1 else want
        row(label, theirs, mine, ratio, want, lambda v: f"{v / 1e6:,.0f} MB")
    row("on disk, merged", None, median(ours, "compacted"), None, "", lambda v: f"{v / 1e6:,.0f} MB")
    mine, theirs = median(ours, "verify_s"), median(peer, "verify_s")
    row("whole check, s", theirs, mine, mine / theirs if theirs else None, f"{wanted['check']:.3f}" if "check" in wanted else "", lambda v: f"{v:.2f}")


def main():
    measure.require_linux()
    arguments = parse()
    is_quoted = arguments.peer == "quoted"
    if not is_quoted and not Path(arguments.zksync).exists():
        sys.exit(f"{arguments.zksync} is not there: build it in bench-peers/zksync-tree, or say --peer quoted")
    everything, of_peer = {}, {}
    for name in arguments.workloads:
        common, peers, own, _ = WORKLOADS[name]
        ours, peer = [], []
        for run in range(arguments.runs):
            key = (*common, *peers, run)
            if key not in of_peer:
                of_peer[key] = quoted(name) if is_quoted else run_peer(arguments, [*common, *peers])
            peer.append(of_peer[key])
            ours.append(run_arbor(arguments, [*common, *own]))
        roots = {run["root"] for run in [*ours, *peer] if "root" in run}
        if len(roots) != 1:
            sys.exit(f"{name}: the roots differ: {', '.join(sorted(roots))}")
        show(name, ours, peer, is_quoted)
        everything[name] = {"arbor": ours, "zksync": peer, "root": roots.pop()}
    if arguments.report:
        report = {"schema": "arboretum/1", "command": "bench-peers/loadtest.py", "machine": measure.machine(), "results": everything}
        Path(arguments.report).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
