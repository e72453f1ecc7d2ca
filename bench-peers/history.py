#!/usr/bin/env python3
"""What history costs: kept not at all, for 128 versions, and whole; reads and proofs far back; rolling back; pruning; old nodes.

    bench-peers/history.py [CHAIN_DIR] [--parts retention,old-proofs] [--blocks N] [--back N] [--keep DIR]

retention: Without a chain one is generated: --blocks blocks of 20 transactions of every kind. It is replayed once with each retention, in turn, and compacted.
Of the whole history are then taken: reads and proofs, latest and --back blocks behind (`arbor bench reads`); a rollback of 1,000 blocks and their
replay; and pruning, a tenth of the history at a time, which must cost the same wherever it stands. Only arbor takes part.

old-proofs: --proof-blocks blocks of 50 transactions that touch random ones of --population accounts. They are replayed with
and without --history-proofs, in turn: the CPU from the first block on. Then `arbor serve` is asked for `eth_getProof` of random
accounts at random heights 128, 1,000 and 10,000 blocks back, every request another height: with old nodes, without, and, if
geth is there (bench-peers/setup.sh, or GETH), geth after it has imported the same chain. Answers that two give must be the same.
A quick try: --parts old-proofs --proof-blocks 1200 --population 20000 --replays 1. Exit status 1: a limit is missed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import measure
from old_proofs import measure_old_proofs
from sides import Arbor

RETENTIONS = ["none", "128", "all"]
ROLLED_BACK = 1_000


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", nargs="?", metavar="CHAIN_DIR")
    parser.add_argument("--parts", default="retention,old-proofs", help="retention, old-proofs or both (default)")
    parser.add_argument("--blocks", type=int, default=12_000, help="of the generated chain (default 12000)")
    parser.add_argument("--back", type=int, default=10_000, help="blocks behind the latest (default 10000)")
    parser.add_argument("--memory", default="512MiB", help="arbor's --memory")
    parser.add_argument("--keep", help="folder for chain and databases, kept (default: a temporary one)")
    parser.add_argument("--proof-blocks", type=int, default=20_000, help="of the chain of old-proofs (default 20000)")
    parser.add_argument("--population", type=int, default=1_000_000, help="accounts of that chain (default 1000000)")
    parser.add_argument("--replays", type=int, default=3, help="with and without old nodes (default 3 each)")
    parser.add_argument("--requests", type=int, default=200, help="at each distance (default 200)")
    parser.add_argument("--rebuilt", type=int, default=20, help="of these, how many without old nodes (default 20)")
    parser.add_argument("--geth", type=lambda text: text.split(","), default=["path"], help="path, archive or both (default path)")
    arguments = parser.parse_args()
    arguments.parts = set(arguments.parts.split(","))
    if not arguments.parts <= {"retention", "old-proofs"} or not set(arguments.geth) <= {"path", "archive"}:
        parser.error("--parts: retention, old-proofs or both; --geth: path, archive or both")
    return arguments


class Histories:
    """The databases of one chain, a folder for each retention."""

    def __init__(self, arbor, arguments, workplace):
        self.arbor, self.arguments, self.workplace = arbor, arguments, Path(workplace)
        self.log = self.workplace / "log"
        self.chain = Path(arguments.chain) if arguments.chain else self.workplace / "chain"

    def run(self, *words):
        self.log.unlink(missing_ok=True)
        return measure.run([self.arbor.program, *words], self.log)

    def generate(self):
        if self.arguments.chain or (self.chain / "genesis.json").exists():
            return
        self.run("generate", "--out", self.chain, "--blocks", self.arguments.blocks, "--txs", 20, "--accounts", 2_000)

    def database(self, retention):
        return self.workplace / f"retain-{retention}"

    def replay(self, retention, *more):
        options = ["--memory", self.arguments.memory, "--write-back", "64MiB", "--retain", retention]
        return self.run("replay", "--db", self.database(retention), *options, *more, self.chain)

    def blocks(self, retention):
        text = subprocess.run([self.arbor.program, "status", "--db", self.database(retention), "--json"], check=True, capture_output=True).stdout
        return json.loads(text)["block"]


def mb(count):
    return f"{count / 1e6:,.1f} MB"


def cpu(usage):
    return usage.user_s + usage.sys_s


def replays(histories):
    """Replays with each retention and prints what it takes."""
    print("| retained | wall | CPU | peak memory | written | compaction writes | disk, compacted |\n|---|---|---|---|---|---|---|")
    for retention in RETENTIONS:
        replayed = histories.replay(retention)
        compacted = histories.replay(retention, "--compact")
        disk = measure.disk_bytes(histories.database(retention))
        print(
            f"| {retention} | {replayed.wall_s:.1f} s | {cpu(replayed):.1f} s | {mb(replayed.peak_rss_bytes)} "
            f"| {mb(replayed.written_bytes)} | {mb(compacted.written_bytes)} | {mb(disk)} |",
            flush=True,
        )


def reads(histories):
    back = histories.arguments.back
    words = ["bench", "reads", "--db", histories.database("all"), "--proofs", 200, "--back", 0, 128, back // 10, back]
    histories.run(*words)
    print(f"\n```\n{histories.log.read_text().rstrip()}\n```\n")


def rollback(histories):
    database, head = histories.database("all"), histories.blocks("all")
    nothing = histories.run("rollback", "--db", database, "--to", head)
    back = histories.run("rollback", "--db", database, "--to", head - ROLLED_BACK)
    again = histories.replay("all")
    print("| | wall | CPU | written |\n|---|---|---|---|")
    for name, usage in [
        ("rollback of nothing (opening, closing)", nothing),
        (f"rollback of {ROLLED_BACK:,} blocks", back),
        ("replay of the same", again),
    ]:
        print(f"| {name} | {usage.wall_s:.2f} s | {cpu(usage):.2f} s | {mb(usage.written_bytes)} |", flush=True)


def prunes(histories):
    blocks = histories.blocks("all")
    step = blocks // 10
    print(f"\n| {step:,} versions pruned, leaving | wall | CPU | written |\n|---|---|---|---|")
    for left in range(blocks - step, 0, -step):
        usage = histories.run("prune", "--db", histories.database("all"), "--retain", left)
        print(f"| {left:,} | {usage.wall_s:.3f} s | {cpu(usage):.2f} s | {mb(usage.written_bytes)} |", flush=True)
    histories.run("verify", "--db", histories.database("all"))


def main():
    arguments = parse()
    measure.require_linux()
    place = nullcontext(arguments.keep) if arguments.keep else tempfile.TemporaryDirectory(prefix="arbor-history-", dir="/var/tmp")
    with place as workplace:
        Path(workplace).mkdir(exist_ok=True)
        missed = []
        if "retention" in arguments.parts:
            histories = Histories(Arbor(), arguments, workplace)
            histories.generate()
            replays(histories)
            reads(histories)
            rollback(histories)
            prunes(histories)
        if "old-proofs" in arguments.parts:
            missed = measure_old_proofs(Arbor(), arguments, workplace)
    for limit in missed:
        print(f"MISSED: {limit}")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except measure.CommandFailed as failure:
        sys.exit(f"error: {failure}")
