#!/usr/bin/env python3
"""NOMT and `arbor loadtest` bring and then change as many leaves; table of rates, bytes, memory and ratios.

    bench-peers/nomt.py [--blocks N] [--writes N] [--update-blocks N] [--runs N] [--report FILE]

Keys are hashes of running numbers on both sides, values 32 bytes; each side has its own tree and hash (NOMT a binary tree of BLAKE3, whose depth is that of its leaves; arbor AR16MT,
BLAKE2s over 256 levels), so roots cannot be compared: both read back what they wrote. NOMT makes every block durable. arbor runs twice: with changes written back, as it is meant to be
run, and with a flush for every block (`--write-back 1`), begun when the next one comes. Sides take turns, medians are printed. NOMT's program is built by `cargo build --release` in
bench-peers/nomt: two minutes on two cores.
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
SIDES = {"NOMT": None, "arbor": "128MiB", "arbor, every block": "1"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=20, help="blocks that bring leaves")
    parser.add_argument("--writes", type=int, default=150_000, help="leaves of a block")
    parser.add_argument("--update-blocks", type=int, default=10, help="blocks after those that change leaves")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--memory", default="1GiB", help="arbor's")
    parser.add_argument("--arbor", default=os.environ.get("ARBOR", TARGET / "release/arbor"))
    parser.add_argument("--nomt", default=os.environ.get("NOMT", HERE / "nomt/target/release/nomt-bench"))
    parser.add_argument("--report", help="write the figures of all runs here, as JSON")
    return parser.parse_args()


def run(arguments, write_back):
    load = [str(arguments.blocks), str(arguments.writes), "--update-blocks", str(arguments.update_blocks)]
    with tempfile.TemporaryDirectory() as folder:
        log, report = Path(folder) / "log", Path(folder) / "report.json"
        if write_back is None:
            usage = measure.run([arguments.nomt, *load], log)
            results = json.loads(log.read_text().splitlines()[-1])
            new, compacted = results["new"], None
        else:
            words = [*load, "--prune", "--memory", arguments.memory, "--write-back", write_back, "--report", report]
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


def show(sides):
    print(f"| | {' | '.join(sides)} | arbor / NOMT |\n|---{'|---' * (len(sides) + 1)}|")
    for label, what, form in ROWS:
        medians = []
        for runs in sides.values():
            values = [each[what] for each in runs if each[what] is not None]
            medians.append(statistics.median(values) / (1e6 if "MB" in label else 1) if values else None)
        cells = [form.format(value) if value is not None else "" for value in medians]
        ratio = f"{medians[1] / medians[0]:.2f}" if medians[0] and medians[1] else ""
        print(f"| {label} | {' | '.join(cells)} | {ratio} |")


def main():
    measure.require_linux()
    arguments = parse()
    if min(arguments.blocks, arguments.writes, arguments.update_blocks, arguments.runs) < 1:
        sys.exit("there must be at least one block, leaf, block of changes and run")
    if not Path(arguments.nomt).exists():
        sys.exit(f"{arguments.nomt} is not there: build it in bench-peers/nomt, or name it by --nomt")
    sides = {name: [] for name in SIDES}
    for _ in range(arguments.runs):
        for name, write_back in SIDES.items():
            sides[name].append(run(arguments, write_back))
    for name, runs in sides.items():
        if len({each["root"] for each in runs}) != 1:
            sys.exit(f"{name}: the roots of its runs differ")
    show(sides)
    if arguments.report:
        report = {"schema": "arboretum/1", "command": "bench-peers/nomt.py", "machine": measure.machine(), "results": sides}
        Path(arguments.report).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
