#!/usr/bin/env python3
"""NOMT, QMDB and `arbor loadtest` bring and then change as many leaves; table of rates, bytes, memory and ratios.

    bench-peers/leaves.py [--peers NOMT,QMDB] [--blocks N] [--writes N] [--update-blocks N] [--runs N] [--report FILE]

Keys are hashes of running numbers on all sides, values 32 bytes. Each side has its own tree and hash, so roots cannot be compared: each
reads back what it wrote. NOMT has a binary tree of BLAKE3, whose depth is that of its leaves; QMDB a log of all changes with SHA-256, and an
index of the keys in memory, so that no proof of it shows what a key holds now; arbor has AR16MT, BLAKE2s over 256 levels. NOMT and QMDB make
every block durable. arbor runs twice: with changes written back, as it is meant to be run, and with a flush for every block
(`--write-back 1`), begun when the next one comes. Sides take turns, medians are printed. A peer is built by `cargo build --release` in
bench-peers/nomt or bench-peers/qmdb.
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
PEERS = ("NOMT", "QMDB")
# What `--write-back` is given.
OURS = {"arbor": "128MiB", "arbor, every block": "1"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=",".join(PEERS), help="only these, separated by commas")
    parser.add_argument("--blocks", type=int, default=20, help="blocks that bring leaves")
    parser.add_argument("--writes", type=int, default=150_000, help="leaves of a block")
    parser.add_argument("--update-blocks", type=int, default=10, help="blocks after those that change leaves")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--memory", default="1GiB", help="arbor's")
    parser.add_argument("--arbor", default=os.environ.get("ARBOR", TARGET / "release/arbor"))
    for peer in map(str.lower, PEERS):
        parser.add_argument(f"--{peer}", default=os.environ.get(peer.upper(), HERE / peer / f"target/release/{peer}-bench"))
    parser.add_argument("--report", help="write the figures of all runs here, as JSON")
    arguments = parser.parse_args()
    arguments.peers = arguments.peers.split(",")
    unknown = [peer for peer in arguments.peers if peer not in PEERS]
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return arguments


def run(arguments, side):
    load = [str(arguments.blocks), str(arguments.writes), "--update-blocks", str(arguments.update_blocks)]
    with tempfile.TemporaryDirectory() as folder:
        log, report = Path(folder) / "log", Path(folder) / "report.json"
        if side in PEERS:
            usage = measure.run([getattr(arguments, side.lower()), *load], log)
            results = json.loads(log.read_text().splitlines()[-1])
            new, compacted = results["new"], None
        else:
            words = [*load, "--prune", "--memory", arguments.memory, "--write-back", OURS[side], "--report", report]
            usage = measure.run([arguments.arbor, "loadtest", *words], log, report)
            new = results = json.loads(report.read_text())["results"]
            compacted = results["compacted_bytes"]
    return {
        "new": new["writes_per_second"],
        "new_bytes": new["written_bytes"] / (arguments.blocks * arguments.writes),
        "updates": results["updates"]["writes_per_second"],
        "update_bytes": results["updates"]["written_bytes"] / (arguments.update_blocks * arguments.writes),
        "disk": results["disk_bytes"],
        "compacted": compacted,
        "memory": results.get("peak_rss_bytes", usage.peak_rss_bytes),
        "root": results["root"],
        "usage": asdict(usage),
    }


ROWS = [
    ("new leaves a second", "new", "{:,.0f}"),
    ("leaves changed a second", "updates", "{:,.0f}"),
    ("bytes written for each new one", "new_bytes", "{:,.0f}"),
    ("for each changed one", "update_bytes", "{:,.0f}"),
    ("on disk, MB", "disk", "{:,.0f}"),
    ("on disk, merged, MB", "compacted", "{:,.0f}"),
    ("peak memory, MB", "memory", "{:,.0f}"),
]


def show(sides, peers):
    columns = [*sides, *(f"arbor / {peer}" for peer in peers)]
    print(f"| | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    for label, what, form in ROWS:
        medians = {}
        for side, runs in sides.items():
            values = [each[what] for each in runs if each[what] is not None]
            medians[side] = statistics.median(values) / (1e6 if "MB" in label else 1) if values else None
        cells = [form.format(value) if value is not None else "" for value in medians.values()]
        for peer in peers:
            both = medians["arbor"], medians[peer]
            cells.append(f"{both[0] / both[1]:.2f}" if all(both) else "")
        print(f"| {label} | {' | '.join(cells)} |")


def main():
    measure.require_linux()
    arguments = parse()
    if min(arguments.blocks, arguments.writes, arguments.update_blocks, arguments.runs) < 1:
        sys.exit("there must be at least one block, leaf, block of changes and run")
    for peer in map(str.lower, arguments.peers):
        program = getattr(arguments, peer)
        if not Path(program).exists():
            sys.exit(f"{program} is not there: build it in bench-peers/{peer}, or name it by --{peer}")
    sides = {name: [] for name in [*arguments.peers, *OURS]}
    for _ in range(arguments.runs):
        for name, runs in sides.items():
            runs.append(run(arguments, name))
    for name, runs in sides.items():
        if len({each["root"] for each in runs}) != 1:
            sys.exit(f"{name}: the roots of its runs differ")
    show(sides, arguments.peers)
    if arguments.report:
        report = {"schema": "arboretum/1", "command": "bench-peers/leaves.py", "machine": measure.machine(), "results": sides}
        Path(arguments.report).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
