#!/usr/bin/env python3
"""The stores side by side: a replay, a state larger than all caches, reads, opening.

    bench-peers/stores.py CHAIN_DIR [--stores fjall,rocksdb] [--population N] [--memory BYTES] [--runs N]

arbor must have been built with `--features rocksdb` for the second. The chain is replayed from nothing into each store, in turn, and compacted. Then a state of --population
contracts with two slots each is built in each, 200 blocks of 200 transactions are replayed on it with --memory too small to hold it, with the files out of the
system's cache and again in it, and accounts and slots are read at random (`arbor bench reads`).
"""

import argparse
import re
import statistics
import sys
import tempfile
from pathlib import Path

import measure
from chains import prepare
from sides import Arbor
from state_size import forget


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", metavar="CHAIN_DIR")
    parser.add_argument("--stores", type=lambda text: text.split(","), default=["fjall", "rocksdb"])
    parser.add_argument("--population", type=int, default=2_000_000)
    parser.add_argument("--memory", default="256MiB", help="arbor's --memory on the large state")
    parser.add_argument("--runs", type=int, default=3, help="replays of the chain, and openings; medians are shown")
    return parser.parse_args()


class Side:
    """A store's databases."""

    def __init__(self, arbor, store, workplace):
        self.arbor, self.store, self.folder = arbor, store, Path(workplace) / store
        self.folder.mkdir()
        self.log = self.folder / "log"

    def run(self, *words):
        self.log.unlink(missing_ok=True)
        return measure.run([self.arbor.program, *words], self.log)

    def replay(self, database, *words):
        return self.run("replay", "--store", self.store, "--db", self.folder / database, *words)

    def status(self, database):
        return self.run("status", "--db", self.folder / database)


def cpu(usage):
    return usage.user_s + usage.sys_s


def mb(count):
    return f"{count / 1e6:,.1f} MB"


def table(sides, rows):
    print("| | " + " | ".join(side.store for side in sides) + " |\n|---" * 1 + "|---" * len(sides) + "|")
    for name, cells in rows:
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(flush=True)


def usage_rows(name, usages):
    median = lambda of: [statistics.median(of(usage) for usage in runs) for runs in usages]
    return [
        (f"{name}: wall", [f"{x:.2f} s" for x in median(lambda u: u.wall_s)]),
        (f"{name}: CPU", [f"{x:.2f} s" for x in median(cpu)]),
        (f"{name}: peak memory", [mb(x) for x in median(lambda u: u.peak_rss_bytes)]),
        (f"{name}: read from the disk", [mb(x) for x in median(lambda u: u.read_bytes)]),
        (f"{name}: written", [mb(x) for x in median(lambda u: u.written_bytes)]),
    ]


def chain_rows(sides, chain, runs):
    """The chain, replayed by the sides in turn."""
    options = ["--genesis", chain.genesis, *Arbor().options, chain.export]
    replays = {side: [] for side in sides}
    for turn in range(runs):
        for side in sides:
            replays[side].append(side.replay(f"chain-{turn}", *options))
    rows = usage_rows("replay", replays.values())
    rows.append(("disk after close", [mb(measure.disk_bytes(side.folder / "chain-0")) for side in sides]))
    compactions = [[side.replay("chain-0", "--compact", *options)] for side in sides]
    rows.append(("compaction: written", [mb(usages[0].written_bytes) for usages in compactions]))
    rows.append(("disk after compaction", [mb(measure.disk_bytes(side.folder / "chain-0")) for side in sides]))
    openings = [[side.status("chain-0").wall_s for _ in range(max(runs, 3))] for side in sides]
    rows.append(("opening, reading the head, closing", [f"{statistics.median(walls) * 1e3:.0f} ms" for walls in openings]))
    return rows


def reads_per_second(log, what, heat):
    """A figure of the table that `bench reads` prints."""
    return re.search(rf"^ *0 {what} +{heat} +\d+ +(\d+) +([\d.]+) +[\d.]+ +([\d.]+)", log, re.M).groups()


def state_rows(sides, chain, memory):
    """A state that no cache holds."""
    options = ["--memory", memory, "--retain", 200, chain]
    loads = [[side.replay("state", "--to", 0, *options)] for side in sides]
    rows = usage_rows("building the state", loads)
    rows.append(("disk", [mb(measure.disk_bytes(side.folder / "state")) for side in sides]))
    reads = []
    for side in sides:
        side.run("bench", "reads", "--db", side.folder / "state", "--memory", memory, "--proofs", 0)
        reads.append(side.log.read_text())
    for what in ("account", "absent account", "slot"):
        for heat in ("cold", "hot"):
            cells = [reads_per_second(log, what, heat) for log in reads]
            cells = [f"{int(speed):,} a second, half within {half} us, 99 % within {most}" for speed, half, most in cells]
            rows.append((f"reads, {what}, {heat}", cells))
    for heat in ("cold", "warm"):
        usages = []
        for side in sides:
            if heat == "cold":
                forget(side.folder / "state")
            usages.append([side.replay("state", *options)])
            side.run("rollback", "--db", side.folder / "state", "--to", 0)
        rows += usage_rows(f"200 blocks, {heat}", usages)
    return rows


def main():
    arguments = parse()
    measure.require_linux()
    arbor = Arbor()
    with tempfile.TemporaryDirectory(prefix="arbor-stores-", dir="/var/tmp") as workplace:
        sides = [Side(arbor, store, workplace) for store in arguments.stores]
        chain = prepare(arguments.chain, workplace)
        print(f"{chain.name}, medians of {arguments.runs}\n")
        table(sides, chain_rows(sides, chain, arguments.runs))
        made = Path(workplace) / "made"
        settings = {"population": arguments.population, "mix": "visit=1", "blocks": 200, "txs": 200, "gas-limit": 12_000_000, "accounts": 2_000}
        sides[0].run("generate", "--out", made, *(word for name, value in settings.items() for word in (f"--{name}", value)))
        print(f"{arguments.population:,} contracts with two slots each, --memory {arguments.memory}\n")
        table(sides, state_rows(sides, made, arguments.memory))


if __name__ == "__main__":
    try:
        main()
    except measure.CommandFailed as failure:
        sys.exit(f"error: {failure}")
