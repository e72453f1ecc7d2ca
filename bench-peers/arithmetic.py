#!/usr/bin/env python3
"""Field and curve arithmetic under Banderwagon: arbor, gnark-crypto, arkworks and blst on the same inputs; table of times and ratios.

    bench-peers/arithmetic.py [--ms N] [--runs N] [--report FILE]

Needs cargo and Go. One thread. Each row's results must be the same on all sides, or there is no table.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
LIBRARIES = ["arbor", "gnark-crypto", "arkworks", "blst"]
# Rows that have no counterpart of their own elsewhere: compared with the peers' row of the plain name.
BESIDE = {"field/mul, in lanes": "field/mul", "field/sqrt, together": "field/sqrt"}


def build():
    """The two programs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "arboretum/peers"
    gnark = cache / "bin/gnark-bench"
    gnark.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", gnark, "."], cwd=HERE / "gnark", check=True)
    environment = dict(os.environ, CARGO_TARGET_DIR=str(cache / "arithmetic"))
    manifest = HERE / "arithmetic/Cargo.toml"
    subprocess.run(["cargo", "build", "--release", "--locked", "--manifest-path", manifest], env=environment, check=True)
    return [cache / "arithmetic/release/arithmetic-bench", gnark]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ms", type=int, default=300, help="milliseconds for each row")
    parser.add_argument("--runs", type=int, default=3, help="of each program, in turn; the least time counts")
    parser.add_argument("--report", help="write the figures here, as JSON")
    arguments = parser.parse_args()
    programs = build()
    environment = dict(os.environ, RAYON_NUM_THREADS="1", GOMAXPROCS="1")
    least, digests = {}, {}
    for _ in range(arguments.runs):
        for program in programs:
            output = subprocess.run([program, str(arguments.ms)], env=environment, check=True, stdout=subprocess.PIPE).stdout
            for row in json.loads(output):
                key = (row["name"], row["library"])
                least[key] = min(row["ns"], least.get(key, row["ns"]))
                name = BESIDE.get(row["name"], row["name"])
                if digests.setdefault(name, row["digest"]) != row["digest"]:
                    sys.exit(f"{row['name']}: {row['library']} has another result than {programs[0].name}'s first")
    print("| nanoseconds | " + " | ".join(LIBRARIES) + " | fastest other / arbor |")
    print("|---|" + "---|" * (len(LIBRARIES) + 1))
    rows = []
    for name, library in least:
        if library != "arbor":
            continue
        other = BESIDE.get(name, name)
        peers = [least.get((other, peer)) for peer in LIBRARIES[1:]]
        rows.append({"name": name, "arbor_ns": least[name, "arbor"], "peers_ns": dict(zip(LIBRARIES[1:], peers))})
        cells = ["" if ns is None else f"{ns:,.1f}" for ns in [least[name, "arbor"], *peers]]
        ratio = min(ns for ns in peers if ns is not None) / least[name, "arbor"]
        print(f"| {name} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    if arguments.report:
        result = {"machine": measure.machine(), "rows": rows}
        Path(arguments.report).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
