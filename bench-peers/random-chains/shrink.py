#!/usr/bin/env python3
"""Leaves blocks, transactions and ommers out of a seed's chain for as long as a mode still finds a difference of the
same kind. Prints what is left, and keeps the chain."""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

from dumps import Difference
from maker import Maker, arbor_program
from modes import ALL, Modes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("mode", choices=ALL)
    parser.add_argument("out", type=Path, help="folder in which the chain is left, as OUT/SEED")
    parser.add_argument("--flags", default="", help="what the chain was made with, e.g. '-without empty-ripemd'")
    return parser.parse_args()


class Shrinker:
    """Finds a small chain in which `mode` differs."""

    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.arbor = arbor_program()
        self.maker = Maker(options.flags.split())
        self.kind = None

    def difference(self, dropped, blocks):
        """Makes the chain without the dropped parts, and returns how the mode differs, or none."""
        flags = ["-blocks", str(blocks), "-drop", ",".join(sorted(dropped))]
        if self.maker.make(self.options.seed, self.options.out, *flags):
            return None
        databases = self.scratch / "databases"
        databases.mkdir()
        try:
            ALL[self.options.mode].run(Modes(self.arbor, self.folder, databases, self.options.seed))
        except Difference as difference:
            return str(difference)
        finally:
            shutil.rmtree(databases)
        return None

    @property
    def folder(self):
        return self.options.out / str(self.options.seed)

    def same(self, dropped, blocks):
        found = self.difference(dropped, blocks)
        return found is not None and kind(found) == self.kind

    def shrink(self):
        first = self.difference(set(), 0)
        if first is None:
            sys.exit(f"seed {self.options.seed}: {self.options.mode} finds no difference")
        self.kind = kind(first)
        named = re.search(r"block (\d+) \(", first)
        blocks = int(named[1]) if named else 0
        if blocks and not self.same(set(), blocks):
            blocks = 0
        dropped, parts = set(), self.parts(blocks)
        size = max(1, len(parts) // 2)
        while size:
            at = 0
            while at < len(parts):
                piece = set(parts[at : at + size])
                if self.same(dropped | piece, blocks):
                    dropped |= piece
                    del parts[at : at + size]
                else:
                    at += size
            size //= 2
        print(self.difference(dropped, blocks))
        print(f"{self.folder}: -seed {self.options.seed} -blocks {blocks} -drop {','.join(sorted(dropped))}")
        print((self.folder / "receipts.txt").read_text(), end="")

    def parts(self, blocks):
        """Returns the names of all transactions, and of the ommers that there may be."""
        lines = (self.folder / "receipts.txt").read_text().splitlines()
        last = max([blocks] + [int(line.split(":")[0]) for line in lines])
        return [line.split("=")[0] for line in lines] + [f"{block}:u" for block in range(3, last + 1)]


def kind(difference):
    """Returns a difference without its numbers, hashes and paths."""
    return re.sub(r"/\S+|0x[0-9a-f]+|\d+", "_", difference)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="shrink-", dir="/dev/shm") as scratch:
        Shrinker(arguments(), Path(scratch)).shrink()
