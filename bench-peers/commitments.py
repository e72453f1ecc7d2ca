#!/usr/bin/env python3
"""go-ipa and arbor do the same operations on the same inputs; table of times and ratios.

Both sides' results must have the same digests, row by row, or there is no table. Times are processor time (the least of all repetitions and runs), so that a
busy machine disturbs little; on several threads they are times by the clock, of which that cannot be said.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import measure
from sides import Arbor, peers_folder

HERE = Path(__file__).resolve().parent
GROUPS = "keccak,vectors,leaves,updates,keys,points,proofs"
# What arbor is meant to reach, in times go-ipa's speed, with AVX-512 IFMA; without it, 1.
FLOORS = {
    "vector/256": 9,
    "leaf/1": 4,
    "leaf/4": 4,
    "leaf/16": 6,
    "leaf/64": 6,
    "leaf/256": 9,
    "key/header": 4,
    "key/slot": 4,
    "key/slot-repeated": 6,
    "point/map": 6,
    "point/decompress": 5,
    "prove": 10,
    "verify": 6,
}


def build():
    """Builds go-ipa's program, and finds arbor's."""
    peer = peers_folder() / "go-ipa-bench"
    peer.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", peer, "."], cwd=HERE / "go-ipa", check=True)
    return peer, Arbor().program


def go_ipa(program, threads, groups, budget):
    environment = dict(os.environ, GOMAXPROCS=str(threads))
    command = [program, "-groups", groups, "-budget", f"{budget}ms"]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def arbor(program, threads, groups, budget, tables):
    command = [program, "bench", "commitments", "--json", "--threads", str(threads), "--tables", str(tables)]
    command += ["--budget", str(budget), *groups.split(",")]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["results"]


def compare(go, ours, threads):
    """Rows of both, from several runs of each: the least time of each side."""
    clock = "ns" if threads == 1 else "wall_ns"
    first = {row["name"]: row for row in go[0]["rows"]}
    rows = []
    for row in ours[0]["rows"]:
        name = row["name"]
        if name not in first:
            continue
        digest = first[name]["digest"]
        if digest and digest != row["digest"]:
            sys.exit(f"{name}: the sides' results differ: {digest} and {row['digest']}")
        peer = min(r[clock] for run in go for r in run["rows"] if r["name"] == name)
        mine = [r for run in ours for r in run["rows"] if r["name"] == name]
        single = min(r["single"][clock] for r in mine)
        batch = min((r["batch"][clock] for r in mine if r["batch"]), default=None)
        rows.append({"name": name, "threads": threads, "go_ns": peer, "single_ns": single, "batch_ns": batch, "checked": bool(digest), "values": mine[0]["values"]})
    return rows


def show(rows, go, ours):
    keccak = min(run["keccak_ns"] for run in ours)
    print(f"arbor's Keccak-256 of 32 bytes: {keccak:.0f} ns; a product in lanes: {min(r['lane_product_ns'] for r in ours):.1f} ns")
    setup = [min(run["setup_s"] for run in side) for side in (go, ours)]
    print(f"tables: go-ipa {setup[0]:.2f} s, {go[0]['tables_bytes'] / 1e6:.0f} MB; arbor {setup[1]:.2f} s, {ours[0]['tables_bytes'] / 1e6:.0f} MB")
    print(f"\n| {'':20} | go-ipa, us | arbor single, us | ratio | arbor batch, us | ratio | with IFMA wanted | batch in Keccaks |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        batch = row["batch_ns"]
        best = batch or row["single_ns"]
        wanted = FLOORS.get(row["name"], FLOORS.get(row["name"].split("/")[0], ""))
        cells = [
            f"{row['name']}, {row['threads']} threads" if row["threads"] > 1 else row["name"],
            f"{row['go_ns'] / 1e3:.2f}",
            f"{row['single_ns'] / 1e3:.2f}",
            f"{row['go_ns'] / row['single_ns']:.1f}",
            f"{batch / 1e3:.2f}" if batch else "",
            f"{row['go_ns'] / batch:.1f}" if batch else "",
            str(wanted),
            f"{best / keccak:.1f}",
        ]
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", default=GROUPS, help=f"of {GROUPS}")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="for the proofs' second table")
    parser.add_argument("--tables", type=int, default=150_000_000, help="bytes for arbor's tables")
    parser.add_argument("--budget", type=int, default=500, metavar="MS", help="for each figure")
    parser.add_argument("--runs", type=int, default=1, help="of each side, in turn")
    parser.add_argument("--report", help="write the figures here, as JSON")
    arguments = parser.parse_args()
    peer, own = build()
    passes = [(1, arguments.groups)]
    if arguments.threads > 1 and "proofs" in arguments.groups.split(","):
        passes.append((arguments.threads, "proofs"))
    everything, keccaks = [], []
    for threads, groups in passes:
        go, ours = [], []
        for _ in range(arguments.runs):
            go.append(go_ipa(peer, threads, groups, arguments.budget))
            ours.append(arbor(own, threads, groups, arguments.budget, arguments.tables))
        rows = compare(go, ours, threads)
        print(f"\n{threads} thread{'s' if threads > 1 else ''}")
        show(rows, go, ours)
        everything += rows
        keccaks += [run["keccak_ns"] for run in ours]
    if arguments.report:
        result = {"machine": measure.machine(), "keccak_ns": min(keccaks), "rows": everything}
        Path(arguments.report).write_text(json.dumps(result, indent=2) + "\n")
    slower = [row["name"] for row in everything if row["go_ns"] < (row["batch_ns"] or row["single_ns"])]
    if slower:
        sys.exit(f"slower than go-ipa: {', '.join(slower)}")


if __name__ == "__main__":
    main()
