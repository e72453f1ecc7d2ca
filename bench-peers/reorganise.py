#!/usr/bin/env python3
"""Rolls back some blocks of a chain and replays as many, at several heights: the time follows the blocks, not the chain.

    bench-peers/reorganise.py CHAIN_DIR [--heights 600,1200,2400] [--blocks 25,50,100] [--runs N]

Every figure is a command's from its start to its end, opening and closing the database included; "nothing" is a rollback to the
block where the database stands already. Only arbor takes part: geth has no such command without a running node.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import measure
from chains import prepare
from sides import Arbor


def numbers(text):
    return [int(number) for number in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", metavar="CHAIN_DIR")
    parser.add_argument("--heights", type=numbers, default=[600, 1200, 2400], help="where to roll back, ascending")
    parser.add_argument("--blocks", type=numbers, default=[25, 50, 100], help="how far, at most 128")
    parser.add_argument("--runs", type=int, default=3, help="times each; the median is shown (default 3)")
    parser.add_argument("--scratch", help="folder for the database (default: a temporary one)")
    return parser.parse_args()


def main():
    arguments = parse()
    measure.require_linux()
    arbor = Arbor()
    with tempfile.TemporaryDirectory(prefix="arbor-peers-", dir=arguments.scratch or "/var/tmp") as workplace:
        chain = prepare(arguments.chain, workplace)
        database, log = Path(workplace) / "db", Path(workplace) / "log"

        def replay(to):
            options = ["--db", database, "--genesis", chain.genesis, *arbor.options, "--to", to]
            return measure.run([arbor.program, "replay", *options, chain.export], log)

        def rollback(to):
            return measure.run([arbor.program, "rollback", "--db", database, "--to", to], log)

        def median(usages):
            wall = statistics.median(usage.wall_s for usage in usages)
            return f"{wall:6.2f} s ({statistics.median(usage.user_s + usage.sys_s for usage in usages):5.2f} s CPU)"

        print(f"| {'at block':>8} | {'blocks':>6} | {'rolled back in':22} | {'replayed in':22} |\n|---|---|---|---|")
        for height in arguments.heights:
            replay(height)
            print(f"| {height:8} | {0:6} | {median([rollback(height) for _ in range(arguments.runs)]):22} | {'':22} |", flush=True)
            for blocks in arguments.blocks:
                turns = [(rollback(height - blocks), replay(height)) for _ in range(arguments.runs)]
                back, again = zip(*turns)
                print(f"| {height:8} | {blocks:6} | {median(back):22} | {median(again):22} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except measure.CommandFailed as failure:
        sys.exit(f"error: {failure}")
