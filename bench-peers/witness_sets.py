#!/usr/bin/env python3
"""Compares geth's and arbor's answers of `debug_executionWitness` as sets, over whole chains.

    bench-peers/witness_sets.py CHAIN_DIR... [--most N] [--examples N]

Both import a chain with all its states and serve it. For each block (at most N of a chain, spread evenly), both are asked
for the witness; nodes, codes and headers are compared as sets. `arbor witness diff` then says of each node that only one of
them has whether the canonical witness (execution-apis 845, EIP-8025) has it. A table is printed. Exit status 1: arbor lacks a
node that is canonical, or has one that is not.
"""

import argparse
import collections
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from chains import prepare
from measure import CommandFailed, require_linux
from nodes import import_into_arbor, import_into_geth, serve_arbor, serve_geth
from sides import Arbor, find_program, peers_folder


def numbers(head, most):
    count = min(head, most)
    return sorted({1 + place * (head - 1) // max(count - 1, 1) for place in range(count)})


def compare_block(arbor, nodes, number, chain, workplace, counts, examples):
    files = []
    for node in nodes:
        files.append(workplace / f"{node.name}.json")
        try:
            files[-1].write_text(json.dumps(node.call("debug_executionWitness", hex(number))))
        except CommandFailed as failure:
            counts[f"blocks at which {node.name} fails"] += 1
            examples.append(f"block {number}: {failure}")
            return
    command = [arbor, "witness", "diff", *files, "--json", "--witness-chain", chain.export, "--genesis", chain.genesis]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if not done.stdout:
        raise CommandFailed(f"block {number}: {done.stderr}")
    found = json.loads(done.stdout)
    counts["blocks"] += 1
    if "unnamed" in found:
        raise CommandFailed(f"block {number}: {found['unnamed']}")
    for kind in ("nodes", "codes", "headers"):
        different = found[kind]
        counts[f"blocks whose {kind} differ"] += bool(different)
        for item in different:
            side = nodes[0].name if item["onlyIn"] == "a" else nodes[1].name
            canonical = {True: "canonical", False: "surplus", None: "by BLOCKHASH"}[item.get("canonical")]
            counts[f"{kind} only of {side}, {canonical}"] += 1
            # Surplus ones of arbor, and canonical ones of geth.
            counts["wrong"] += kind != "headers" and (side == "arbor") == (canonical == "surplus")
            examples.append(f"block {number}: {kind[:-1]} only of {side}, {canonical}: {json.dumps(item)}")


def compare_chain(folder, programs, options):
    geth, arbor = programs
    counts, examples = collections.Counter(), []
    with tempfile.TemporaryDirectory(prefix="arbor-witness-sets-", dir="/var/tmp") as workplace:
        workplace = Path(workplace)
        chain = prepare(folder, workplace)
        base = import_into_geth(geth, chain, workplace, archive=True)
        import_into_arbor(arbor, chain, workplace, retain="all")
        with serve_geth(base, workplace) as first, serve_arbor(arbor, chain, workplace, call_time=600) as second:
            head = int(second.call("eth_blockNumber"), 16)
            for number in numbers(head, options.most):
                compare_block(arbor, [first, second], number, chain, workplace, counts, examples)
    return counts, examples


def main():
    require_linux()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--examples", type=int, default=3)
    options = parser.parse_args()
    geth = find_program("geth", "GETH", [peers_folder() / "geth", shutil.which("geth")], "Run bench-peers/setup.sh, or name it in GETH.")
    programs = (geth, Arbor().program)
    wrong = 0
    for folder in options.chains:
        counts, examples = compare_chain(folder, programs, options)
        wrong += counts.pop("wrong", 0)
        print(f"{folder.name}: " + "; ".join(f"{name}: {count}" for name, count in counts.items()), flush=True)
        for example in examples[: options.examples]:
            print(f"    {example}")
    print("ok: arbor has exactly the canonical nodes and codes" if not wrong else f"FAILED: {wrong} nodes or codes of arbor are missing or surplus")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandFailed as failure:
        sys.exit(f"error: {failure}")
