#!/usr/bin/env python3
"""Replays the same chains under several trees in one run, and compares what each takes with the first.

    bench-peers/trees.py [--runs N] [--sides mpt,verkle,verkle:leaf-commitments+compressed] [--report FILE] CHAIN_DIR...

A side is a tree and, after a colon, settings of `--tree-settings` joined by plus signs; or `no-lanes`, for portable code; or `write-through`, for a flush after
every block (which `published` has, too); or `throttled`, for a disk as slow as `--throttle` says. Sides take turns, each time from nothing, with the same write-back, memory and
retention; medians are printed. Every side must end at the same block hash, and the state of those that headers say nothing of is compared with the last header
(`arbor verify`, outside all figures). Only arbor takes part.
"""

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import measure
from chains import prepare
from sides import Arbor, _output


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", nargs="+", metavar="CHAIN_DIR")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sides", default="mpt,verkle")
    parser.add_argument("--memory", default="512MiB")
    parser.add_argument("--write-back", default="64MiB")
    parser.add_argument("--retain", default="128")
    parser.add_argument("--throttle", default="1000:1000", help="requests a second, and microseconds of each, of `throttled` sides (default: %(default)s)")
    parser.add_argument("--threads", help="arbor's --threads (default: all cores)")
    parser.add_argument("--to", help="last block to replay")
    parser.add_argument("--report", help="write the figures of all runs here, as JSON")
    return parser.parse_args()


def replay(arbor, chain, side, folder, arguments):
    """One import from nothing; what it used, and arbor's own report."""
    tree, _, settings = side.partition(":")
    folder.mkdir()
    database, log, report = folder / "db", folder / "log", folder / "report.json"
    words = ["replay", "--db", database, "--tree", tree, "--genesis", chain.genesis, "--report", report]
    settings = settings.split("+") if settings else []
    write_back = "0" if {"write-through", "published"} & set(settings) else arguments.write_back
    words += ["--memory", arguments.memory, "--write-back", write_back, "--retain", arguments.retain]
    of_tree = [setting for setting in settings if setting not in ("write-through", "no-lanes", "throttled")]
    words += ["--throttle", arguments.throttle] if "throttled" in settings else []
    words += ["--tree-settings", ",".join(of_tree)] if of_tree else []
    words += ["--threads", arguments.threads] if arguments.threads else []
    words += ["--to", arguments.to] if arguments.to else []
    lanes = ["env", "ARBOR_BACKEND=portable"] if "no-lanes" in settings else []
    usage = measure.run([*lanes, arbor.program, *words, chain.export], log, report)
    results = json.loads(report.read_text())["results"]
    return {"side": side, "usage": asdict(usage), "disk_bytes": measure.disk_bytes(database / "fjall"), "results": results}


def check(arbor, folder):
    """The state against the tree and the header; the roots of all blocks, by which runs are compared."""
    _output([arbor.program, "verify", "--db", folder / "db"])
    return _output([arbor.program, "roots", "--db", folder / "db"])


def rows(run):
    """What is compared, in seconds or bytes."""
    usage, results = run["usage"], run["results"]
    total, stored = results["total"], results["database"]["bytes"]
    published = total.get("work", {}).get("published", {})
    return {
        "wall time, s": usage["wall_s"],
        "CPU, s": usage["user_s"] + usage["sys_s"],
        "keys, s": total["keys_s"],
        "tree, s": total["tree_s"],
        "store, s": total["store_s"],
        "waiting for roots, s": total["backlog_s"],
        "written, MB": usage["written_bytes"] / 1e6,
        "size, MB": run["disk_bytes"] / 1e6,
        "peak memory, MB": usage["peak_rss_bytes"] / 1e6,
        "nodes written, million": total["nodes"] / 1e6,
        **{f"to the store: {kind}, MB": count / 1e6 for kind, count in stored.items()},
        **{f"published form: {kind}, MB": count / 1e6 for kind, count in published.items()},
        **{counted(name): count / 1e6 for name, count in results["counters"].items()},
    }


def counted(name):
    """What a counter is called in the table."""
    name = name.replace("_", " ")
    return name.replace(" bytes", ", MB") if name.endswith(" bytes") else f"{name}, million"


def show(chain, sides, runs):
    print(f"\n{chain.name}: medians of {len(runs[sides[0]])} runs, ratios to {sides[0]}\n")
    header = [""] + [cell for side in sides for cell in ([side] if side == sides[0] else [side, "ratio"])]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    names = {name: None for side in sides for name in rows(runs[side][0])}
    for name in names:
        medians = [statistics.median(rows(run).get(name, 0) for run in runs[side]) for side in sides]
        cells = [name, f"{medians[0]:.2f}"]
        for median in medians[1:]:
            cells += [f"{median:.2f}", f"{median / medians[0]:.2f}" if medians[0] else ""]
        print("| " + " | ".join(cells) + " |")


def main():
    measure.require_linux()
    arguments = parse()
    arbor, sides = Arbor(), arguments.sides.split(",")
    everything = []
    with tempfile.TemporaryDirectory(prefix="arbor-trees-", dir="/var/tmp") as workplace:
        workplace = Path(workplace)
        for folder in arguments.chains:
            chain = prepare(folder, workplace)
            runs, roots = {side: [] for side in sides}, {}
            for number in range(arguments.runs):
                for side in sides:
                    place = workplace / f"{chain.name}-{side}-{number}"
                    runs[side].append(replay(arbor, chain, side, place, arguments))
                    found = check(arbor, place)
                    if roots.setdefault(side.partition(":")[0], found) != found:
                        sys.exit(f"{side}: the roots of this run differ from those before")
            heads = {run["results"]["head"]["hash"] for side in sides for run in runs[side]}
            if len(heads) != 1:
                sys.exit(f"{chain.name}: the sides end at different blocks")
            show(chain, sides, runs)
            everything += [{"chain": chain.name, **run} for side in sides for run in runs[side]]
    if arguments.report:
        result = {"machine": measure.machine(), "settings": vars(arguments), "runs": everything}
        Path(arguments.report).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
