#!/usr/bin/env python3
"""Makes random chains with go-ethereum and runs arbor over them in every way; prints what differs, and at the end what
the chains had. The exit status is 1 if anything differs."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dumps import Difference
from maker import Maker, arbor_program
from modes import ALL, Modes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int, help="first seed; every seed is another chain")
    parser.add_argument("count", type=int, help="number of seeds")
    parser.add_argument("--jobs", type=int, default=1, help="chains that are run at the same time")
    parser.add_argument("--modes", default=",".join(ALL), help="only these modes, separated by commas")
    parser.add_argument("--long", action="store_true", help="chains of more than 256 blocks")
    parser.add_argument("--without", default="", help="leave out: delegation-shapes,empty-ripemd")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="keep the chains that differ here")
    parser.add_argument("--scratch", metavar="FOLDER", type=Path, default=Path("/dev/shm"), help="place of the databases")
    parsed = parser.parse_args()
    parsed.modes = parsed.modes.split(",")
    unknown = [mode for mode in parsed.modes if mode not in ALL]
    if unknown:
        parser.error(f"no such mode: {', '.join(unknown)}; there are {', '.join(ALL)}")
    return parsed


class Session:
    """Chains one after another, and the sums of what they had."""

    def __init__(self, options, maker, arbor, scratch):
        self.options, self.maker, self.arbor, self.scratch = options, maker, arbor, scratch
        self.chains, self.not_made = 0, 0
        self.runs, self.differences, self.seconds, self.had = Counter(), Counter(), Counter(), {}

    def chain(self, seed):
        """Makes and runs a seed's chain; returns what there is to be added up, or none if geth cannot make the chain."""
        folder, databases = self.scratch / f"{seed}", self.scratch / f"{seed}-databases"
        error = self.maker.make(seed, self.scratch)
        if error:
            print(f"{seed}: not made: {error}", flush=True)
            return None
        counts = json.loads((folder / "counts.json").read_text())
        modes = Modes(self.arbor, folder, databases, seed)
        differing, seconds = {}, {}
        for name in self.options.modes:
            if seed % ALL[name].every:
                continue
            databases.mkdir()
            begin = time.monotonic()
            try:
                ALL[name].run(modes)
            except Difference as difference:
                differing.setdefault(str(difference), []).append(name)
            seconds[name] = time.monotonic() - begin
            shutil.rmtree(databases)
        for difference, names in differing.items():
            print(f"{seed} {counts['First']}..{counts['Last']} [{', '.join(names)}] {difference}", flush=True)
        if differing and self.options.keep:
            shutil.copytree(folder, self.options.keep / f"{seed}", dirs_exist_ok=True)
        shutil.rmtree(folder)
        return counts, [name for names in differing.values() for name in names], seconds

    def add(self, result):
        if result is None:
            self.not_made += 1
            return
        counts, differing, seconds = result
        self.chains += 1
        self.runs.update(seconds.keys())
        self.seconds.update(seconds)
        self.differences.update(differing)
        for name, value in counts.items():
            if isinstance(value, dict):
                self.had.setdefault(name, Counter()).update(value)
            elif name in ("First", "Last"):
                self.had.setdefault(name, Counter())[value] += 1
            elif name != "Seed":
                self.had[name] = self.had.get(name, 0) + value

    def print_summary(self):
        for name, had in sorted(self.had.items()):
            if isinstance(had, Counter):
                had = ", ".join(f"{what} {number}" for what, number in had.most_common())
            print(f"{name.lower()}: {had}")
        for mode in self.options.modes:
            print(f"{mode}: {self.runs[mode]} chains, {self.differences[mode]} differ, {self.seconds[mode]:.0f} s")
        total = sum(self.differences.values())
        print(f"{self.chains} chains, {total} differences, {self.not_made} seeds that geth could not make")


def main():
    options = arguments()
    maker, arbor = Maker(["-without", options.without] + ["-long"] * options.long), arbor_program()
    with tempfile.TemporaryDirectory(prefix="random-chains-", dir=options.scratch) as scratch:
        session = Session(options, maker, arbor, Path(scratch))
        with ThreadPoolExecutor(options.jobs) as jobs:
            for result in jobs.map(session.chain, range(options.seed, options.seed + options.count)):
                session.add(result)
    session.print_summary()
    return 1 if session.differences or not session.chains else 0


if __name__ == "__main__":
    sys.exit(main())
