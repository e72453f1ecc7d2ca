#!/usr/bin/env python3
"""Replays the same transactions on states of several sizes: what a block costs may grow with the tree's depth, not with the state.

    bench-peers/state_size.py [--accounts 10000,1000000,20000000] [--blocks N] [--txs N] [--memory BYTES] [--keep DIR]

For every size `arbor generate --population` makes a chain of `visit` transactions (each sends ether to one of the first 10,000
contracts of the population, spread evenly over the keys, and writes one of its two slots), `arbor replay --to 0` builds its state
bottom-up, and the blocks are replayed from there: once with nothing of the files in the system's cache (`cold`), and once more after
`arbor rollback --to 0` (`warm`: whatever of the files fits is in the system's cache; arbor's own caches begin empty in both). Only
arbor takes part: geth's genesis lists its accounts, and 20 million do not fit in one.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import measure
from sides import Arbor


def numbers(text):
    return [int(number) for number in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=numbers, default=[10_000, 1_000_000, 20_000_000])
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--txs", type=int, default=200, help="transactions in a block")
    parser.add_argument("--memory", default="2GiB", help="arbor's --memory")
    parser.add_argument("--keep", help="folder for chains and databases, kept and used again (default: a temporary one)")
    return parser.parse_args()


def forget(folder):
    """Takes the files under a folder out of the system's cache."""
    os.sync()
    for path in Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Size:
    """A chain over so many accounts, and its database."""

    def __init__(self, arbor, accounts, arguments, workplace):
        self.arbor, self.accounts, self.arguments = arbor, accounts, arguments
        self.folder = Path(workplace) / f"{accounts}-{arguments.blocks}x{arguments.txs}"
        self.chain, self.database, self.log = self.folder / "chain", self.folder / "db", self.folder / "log"
        self.folder.mkdir(exist_ok=True)

    def run(self, *words):
        self.log.unlink(missing_ok=True)
        return measure.run([self.arbor.program, *words], self.log)

    def replay(self, *more):
        memory = ["--memory", self.arguments.memory, "--retain", self.arguments.blocks]
        return self.run("replay", "--db", self.database, *memory, *more, self.chain)

    def generate(self):
        if (self.folder / "generated").exists():
            return
        settings = {
            "population": self.accounts,
            "mix": "visit=1",
            "blocks": self.arguments.blocks,
            "txs": self.arguments.txs,
            "gas-limit": 60_000 * self.arguments.txs,
            "accounts": 2_000,
        }
        self.run("generate", "--out", self.chain, *(word for name, value in settings.items() for word in (f"--{name}", value)))
        # The state behind the last block is as large as the one to be measured, and not needed any more.
        shutil.rmtree(self.chain / ".state")
        (self.folder / "generated").touch()

    def load(self):
        """Builds the state; returns the leaves per second that arbor printed, and what it used."""
        if self.database.exists():
            self.run("rollback", "--db", self.database, "--to", 0)
            return None
        usage = self.replay("--to", "0")
        text = self.log.read_text()
        speed = re.search(r"(\d+) leaves/s", text)
        return (int(speed[1]) if speed else 0), usage

    def blocks(self):
        turns = {}
        for name in ("cold", "warm"):
            if name == "cold":
                forget(self.database)
            turns[name] = self.replay()
            self.run("rollback", "--db", self.database, "--to", 0)
        return turns


def main():
    arguments = parse()
    measure.require_linux()
    arbor = Arbor()
    place = nullcontext(arguments.keep) if arguments.keep else tempfile.TemporaryDirectory(prefix="arbor-size-", dir="/var/tmp")
    with place as workplace:
        Path(workplace).mkdir(exist_ok=True)
        loads, rows = [], []
        for accounts in arguments.accounts:
            size = Size(arbor, accounts, arguments, workplace)
            size.generate()
            loaded = size.load()
            if loaded:
                speed, usage = loaded
                written = usage.written_bytes
                disk = measure.disk_bytes(size.database)
                loads.append((accounts, speed, usage.wall_s, usage.user_s + usage.sys_s, usage.peak_rss_bytes, written, disk))
            for name, usage in size.blocks().items():
                rows.append((accounts, name, usage))
        show(arguments, loads, rows)


def show(arguments, loads, rows):
    if loads:
        print("| accounts | leaves/s | wall | CPU | peak memory | written | on disk |\n|---|---|---|---|---|---|---|")
        for accounts, speed, wall, cpu, peak, written, disk in loads:
            print(f"| {accounts:,} | {speed:,} | {wall:.1f} s | {cpu:.1f} s | {peak / 1e6:.0f} MB | {written / 1e6:.0f} MB | {disk / 1e6:.0f} MB |")
        print()
    print("| accounts | files | wall | ms a block | CPU | read a block | written a block | peak memory |\n|---|---|---|---|---|---|---|---|")
    for accounts, name, usage in rows:
        blocks = arguments.blocks
        print(
            f"| {accounts:,} | {name} | {usage.wall_s:.2f} s | {usage.wall_s / blocks * 1e3:.1f} | {usage.user_s + usage.sys_s:.2f} s "
            f"| {usage.read_bytes / blocks / 1e3:.0f} kB | {usage.written_bytes / blocks / 1e3:.0f} kB | {usage.peak_rss_bytes / 1e6:.0f} MB |"
        )
    walls = {(accounts, name): usage.wall_s for accounts, name, usage in rows}
    largest, middle = max(arguments.accounts), sorted(arguments.accounts)[-2:][0]
    ratio = walls[largest, "cold"] / walls[middle, "warm"]
    print(f"\n{largest:,} accounts cold / {middle:,} warm: {ratio:.2f}")


if __name__ == "__main__":
    try:
        main()
    except measure.CommandFailed as failure:
        sys.exit(f"error: {failure}")
