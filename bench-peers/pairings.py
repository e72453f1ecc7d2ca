#!/usr/bin/env python3
"""Pairings on BLS12-381: blst, arkworks, wasmcurves under Node, wasmtime and wasmi, and arbor's contracts, in one table.

    bench-peers/pairings.py [--rounds N] [--report FILE]

Needs cargo, node and npm; ARBOR names the binary. Each side checks its results before it times them.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

import measure

HERE = pathlib.Path(__file__).resolve().parent


WASM = HERE / "wasmcurves"


def peers(rounds):
    """blst, arkworks, and wasmcurves' module in two engines, by the crate beside this script."""
    if not (WASM / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=WASM, check=True, capture_output=True)
    manifest = HERE / "pairings/Cargo.toml"
    with tempfile.TemporaryDirectory() as modules:
        subprocess.run(["node", "modules.js", modules], cwd=WASM, check=True)
        command = ["cargo", "run", "--release", "--quiet", "--locked", "--manifest-path", manifest]
        command += ["--", str(rounds), modules]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def node(rounds):
    result = subprocess.run(["node", "measure.js", str(rounds)], cwd=WASM, check=True, capture_output=True)
    return json.loads(result.stdout)


def contracts(rounds):
    arbor = os.environ.get("ARBOR", HERE.parent / "target/release/arbor")
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [arbor, "evm384", "bench", "--rounds", str(rounds), "--report", report.name]
        subprocess.run(command, check=True, capture_output=True)
        return json.load(open(report.name))["results"]


def native_sha1(rounds):
    """Seconds for what the contract's sample is, 1,024 bytes, by OpenSSL."""
    message = bytes([0x5A]) * 1024
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(100):
            hashlib.sha1(message).digest()
        best = min(best, (time.perf_counter() - begin) / 100)
    return best


def show(title, rows):
    """Rows of a name, seconds, and gas or nothing, beside the first; with bars as long as logarithms."""
    print(title)
    base = rows[0][1]
    for name, seconds, gas in rows:
        ratio = seconds / base
        length = len(f"{max(1, round(ratio * 10)):b}")
        print(f"  {name:32} {seconds * 1e6:>10.1f} us {ratio:>8.2f} {gas or '':>10}  {'#' * length}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--report", help="write the figures here, as JSON")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    native, compiled, tables = peers(rounds), node(rounds), contracts(rounds)
    ours = lambda table: [(row["name"], row["fastest_s"], row["gas"]) for row in tables[table]["rows"]]
    report = {}
    for title, key, table in [("one pairing", "pairing_s", "pairing"), ("two pairs", "two_pairs_s", "pairing-check")]:
        rows = [(name, times[key], None) for name, times in native.items()]
        rows.append((f"wasmcurves, node {compiled['node']}", compiled[key], None))
        show(f"{title}, microseconds, beside blst, gas", rows + ours(table))
        report[table] = {"peers": [row[:2] for row in rows], "arbor": ours(table)}
    show("SHA-1 of 1,024 bytes", [("OpenSSL", native_sha1(rounds), None)] + ours("sha1"))
    for table in tables:
        if table not in ("pairing", "pairing-check", "sha1"):
            show(table, ours(table))
    if arguments.report:
        result = {"machine": measure.machine(), "tables": report}
        pathlib.Path(arguments.report).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
