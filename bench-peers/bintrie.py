#!/usr/bin/env python3
"""go-ethereum's binary tree (trie/bintrie) and arbor-tree-eip7864 with SHA-256 fill and change the same tree of random slots; table of times and ratios,
memory.

Both sides' roots after every step must be equal, or there is no table. A step is a batch with its commit: on both sides the changed records go to a map in
memory. go-ethereum's tree keeps its nodes in memory between steps; with --reopen it reads them from the map, as arbor does. Times are by the clock, for each
key of all steps of a row, the least of all runs; the sides take turns. Run it on a quiet machine: Go's collector uses other cores even if the tree is given
one.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
# What arbor is meant to reach: times geth's speed, times the time of the hashes alone, bytes of memory a key.
SPEED, OVER_HASHES, BYTES = 5, 2, 250


def build(profile):
    """The two programs, arbor's with a profile of cargo."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "arboretum/peers/bin/geth-bintrie"
    cache.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", cache, "."], cwd=HERE / "geth-bintrie", check=True)
    cargo = ["cargo", "bench", "-p", "arbor-tree-eip7864", "--bench", "tree", "--no-run", "--locked", "--profile", profile, "--message-format", "json"]
    output = subprocess.run(cargo, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = [json.loads(line) for line in output.splitlines()]
    (bench,) = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "tree"]
    return cache, bench


def run(command):
    """One side's rows."""
    result = subprocess.run(command, env=dict(os.environ, GOMAXPROCS="1"), check=True, stdout=subprocess.PIPE)
    return json.loads(result.stdout)


def compare_roots(geth, own):
    """Ends the program if a root differs."""
    for number, (one, other) in enumerate(zip(geth["rows"], own["rows"], strict=True)):
        if [one[field] for field in ("name", "keys", "root")] != [other[field] for field in ("name", "keys", "root")]:
            sys.exit(f"the sides differ after step {number}: geth {one}, arbor {other}")
    print(f"{len(own['rows'])} steps with equal roots, the last {own['rows'][-1]['root']}", file=sys.stderr)


def total(result, name, field):
    return sum(row[field] for row in result["rows"] if row["name"] == name)


def seconds(results, name):
    """Seconds for each key, the least of all runs."""
    return min(total(result, name, "s") / total(result, name, "keys") for result in results)


def show(geth, own, keys):
    print("\n| | geth, us/key | arbor, us/key | ratio | wanted | arbor, hashes/key | times the hashes alone | wanted |\n|---|---|---|---|---|---|---|---|")
    rows = []
    for name in dict.fromkeys(row["name"] for row in own[0]["rows"]):
        peer, mine = seconds(geth, name), seconds(own, name)
        calls = total(own[0], name, "calls") / total(own[0], name, "keys")
        over = mine / (calls * min(result["seconds_of_call"] for result in own))
        rows.append({"name": name, "geth_s": peer, "arbor_s": mine, "calls": calls, "over_hashes": over})
        print(f"| {name} | {peer * 1e6:.2f} | {mine * 1e6:.2f} | {peer / mine:.1f} | {SPEED} | {calls:.1f} | {over:.2f} | {OVER_HASHES} |")
    for name, label in [("peak_bytes", "peak memory"), ("stored_bytes", "paths and records")]:
        peer, mine = (max(result[name] for result in side) / keys for side in (geth, own))
        rows.append({"name": name, "geth": peer, "arbor": mine})
        print(f"| {label}, bytes a key | {peer:.0f} | {mine:.0f} | {peer / mine:.1f} | {BYTES if name == 'peak_bytes' else ''} | | | |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000, help="to begin with")
    parser.add_argument("--depth", type=int, default=8, help="levels of geth's tree in one record")
    parser.add_argument("--levels", type=int, default=4, help="levels of arbor's tree in one record")
    parser.add_argument("--inner", action="store_true", help="arbor stores the hashes within records")
    parser.add_argument("--reopen", action="store_true", help="geth forgets its nodes after each commit")
    parser.add_argument("--runs", type=int, default=1, help="of each side, in turn")
    parser.add_argument("--profile", default="bench", help="of cargo: dev builds quickly, to compare roots alone")
    parser.add_argument("--programs", nargs=2, metavar=("GETH", "ARBOR"), help="built before, instead of building them")
    parser.add_argument("--report", help="write the figures here, as JSON")
    arguments = parser.parse_args()
    peer, bench = arguments.programs or build(arguments.profile)
    keys = str(arguments.keys)
    own_command = [bench, "--json", "--keys", keys, "--hash", "sha256", "--levels", str(arguments.levels)]
    geth_command = [peer, "-keys", keys, "-depth", str(arguments.depth)]
    own_command += ["--inner"] if arguments.inner else []
    geth_command += ["-reopen"] if arguments.reopen else []
    geth, own = [], []
    for _ in range(arguments.runs):
        own.append(run(own_command))
        geth.append(run(geth_command))
        compare_roots(geth[-1], own[-1])
    rows = show(geth, own, arguments.keys)
    if arguments.report:
        result = {"machine": measure.machine(), "settings": vars(arguments), "rows": rows}
        Path(arguments.report).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
