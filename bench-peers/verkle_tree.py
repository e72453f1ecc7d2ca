#!/usr/bin/env python3
"""go-verkle and arbor-tree-verkle fill, change and prove the same tree of random keys; table of times and ratios, peak memory, bytes per key.

Both sides' roots after every step must be equal, row by row, or there is no table. Times are by the clock, the least of a row's repetitions and of all runs;
the sides take turns. Run it on a quiet machine: go-verkle's collector uses other cores even if the tree is given one.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
# What arbor is meant to reach, in times go-verkle's speed, with AVX-512 IFMA.
WANTED = {"insert": 12, "new": 10, "updated": 10, "prove/1000": 10, "verify/1000": 10, "prove/10000": 20, "verify/10000": 20}


def build():
    """The two programs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "arboretum/peers/bin/go-verkle-bench"
    cache.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", cache, "."], cwd=HERE / "go-verkle", check=True)
    cargo = ["cargo", "bench", "-p", "arbor-tree-verkle", "--bench", "tree", "--no-run", "--locked", "--message-format", "json"]
    output = subprocess.run(cargo, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = [json.loads(line) for line in output.splitlines()]
    (bench,) = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "tree"]
    return cache, bench


def run(command, threads):
    environment = dict(os.environ, GOMAXPROCS=str(threads))
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(result.stdout)


def steps(result):
    """The rows that both sides have, in order: name, root."""
    return [(row["name"], row["root"]) for row in result["rows"] if row["name"] != "build"]


def best(results, name):
    """Seconds for each key, the least."""
    times = [row["s"] / row["keys"] for result in results for row in result["rows"] if row["name"] == name]
    return min(times, default=None)


def show(go, ours, threads):
    print(f"\n{threads} thread{'s' if threads > 1 else ''}\n")
    print("| | go-verkle, us/key | arbor, us/key | ratio | wanted with IFMA |\n|---|---|---|---|---|")
    rows = []
    for name in dict.fromkeys(name for name, _ in steps(go[0])):
        peer, mine = best(go, name), best(ours, name)
        wanted = WANTED.get(name, WANTED.get(name.split("/")[0], ""))
        rows.append({"name": name, "threads": threads, "go_s": peer, "arbor_s": mine})
        print(f"| {name} | {peer * 1e6:.1f} | {mine * 1e6:.1f} | {peer / mine:.1f} | {wanted} |")
    print(f"| build, sorted | | {best(ours, 'build') * 1e6:.1f} | {best(go, 'insert') / best(ours, 'build'):.1f} | |")
    for name, label in [("insert_peak_bytes", "peak memory, insert"), ("peak_bytes", "peak memory, all")]:
        peer, mine = (max(result[name] for result in side) for side in (go, ours))
        rows.append({"name": name, "threads": threads, "go": peer, "arbor": mine})
        print(f"| {label}, MB | {peer / 1e6:.0f} | {mine / 1e6:.0f} | {peer / mine:.1f} | 10 |")
    peer, mine = (side[0]["stored_bytes"] / side[0]["stored_keys"] for side in (go, ours))
    rows.append({"name": "stored_bytes_per_key", "threads": threads, "go": peer, "arbor": mine})
    print(f"| bytes per key, values included | {peer:.1f} | {mine:.1f} | {peer / mine:.2f} | 1 |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000, help="to begin with (13 GB of memory for go-verkle at the default)")
    parser.add_argument("--threads", type=int, default=1, help="of both sides")
    parser.add_argument("--tables", type=int, default=150_000_000, help="bytes for arbor's tables")
    parser.add_argument("--runs", type=int, default=1, help="of each side, in turn")
    parser.add_argument("--report", help="write the figures here, as JSON")
    arguments = parser.parse_args()
    peer, own = build()
    keys = str(arguments.keys)
    go, ours = [], []
    for _ in range(arguments.runs):
        ours.append(run([own, "--json", "--keys", keys, "--threads", str(arguments.threads), "--tables", str(arguments.tables)], arguments.threads))
        go.append(run([peer, "-keys", keys], arguments.threads))
        for one, other in zip(steps(go[-1]), steps(ours[-1]), strict=True):
            if one != other:
                sys.exit(f"the sides' roots differ: go-verkle {one}, arbor {other}")
    rows = show(go, ours, arguments.threads)
    if arguments.report:
        result = {"machine": measure.machine(), "keys": arguments.keys, "rows": rows}
        Path(arguments.report).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
