#!/usr/bin/env python3
"""Imports chains with geth and with arbor, in turn on this machine, and prints both sides.

    bench-peers/replay.py CHAIN_DIR... [--runs N] [--report FILE]

A chain folder holds chain.rlp or chain.rlp.gz, and genesis.json. Every run starts from nothing. Nothing is built here: see
setup.sh. The heads (block hash and state root) must be equal, or there is no table. README.md says how things are counted.
"""

import argparse
import datetime
import json
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import measure
from chains import prepare
from sides import Arbor, Geth

# The most that arbor may use, as a share of geth's: wall time, bytes written, peak memory. Chains that have no limits of
# their own get the first line's.
LIMITS = {
    None: {"wall time": 1 / 2, "bytes written": 1 / 2, "peak memory": 1 / 2},
    "synthetic-uniswap-2500": {"wall time": 1 / 6, "bytes written": 1 / 3, "peak memory": 1 / 3},
}
# The most wall time that a replay may take, as a multiple of sender recovery and execution alone (`--tree none`), where
# there is enough of both to be measured.
ABOVE_FLOOR = {"synthetic-uniswap-2500": 1.4}


def chain_share(parts):
    """Share of bodies and receipts in geth's tables after compaction."""
    return parts["bodies_receipts_table_bytes"] / max(parts["tables_bytes"], 1)


def written_without_chain(imported):
    """Bytes written by the import, less what geth wrote for bodies, receipts and state history.

    Bodies and receipts went to the log once, as they are, and to tables by their share of the final tables. The share is
    on the high side, since merges rewrite changing trie nodes more often than these: what remains is
    rather too little than too much. State history is appended to files of its own.
    """
    parts = imported.parts
    if "tables_written_bytes" not in parts:
        return imported.usage.written_bytes
    bodies_receipts = parts["bodies_receipts_logical_bytes"] + chain_share(parts) * parts["tables_written_bytes"]
    return imported.usage.written_bytes - bodies_receipts - parts["old_blocks_bytes"] - parts["state_history_bytes"]


def written_as_imported(imported):
    """The same with all that the compaction at the end writes, which is how geth imports unless told otherwise."""
    return written_without_chain(imported) + imported.compaction.written_bytes


def written_with_share_of_compaction(imported):
    """The same, but of the compaction only the share that is not bodies and receipts: the strictest view."""
    kept = 1 - chain_share(imported.parts) if "tables_written_bytes" in imported.parts else 1
    return written_without_chain(imported) + kept * imported.compaction.written_bytes


def disk_without_chain(imported):
    parts = imported.parts
    names = ("bodies_receipts_table_bytes", "old_blocks_bytes", "state_history_bytes")
    return imported.compacted_bytes - sum(parts.get(name, 0) for name in names)


ROWS = [
    ("wall time", "s", lambda i: i.usage.wall_s),
    ("user + system CPU", "s", lambda i: i.usage.user_s + i.usage.sys_s),
    ("peak memory", "B", lambda i: i.usage.peak_rss_bytes),
    ("written, all", "B", lambda i: i.usage.written_bytes),
    ("  without bodies, receipts, state history", "B", written_without_chain),
    ("  the same, with the compaction at the end", "B", written_as_imported),
    ("  the same, with its share of that", "B", written_with_share_of_compaction),
    ("disk after close", "B", lambda i: i.disk_bytes),
    ("disk after compaction", "B", lambda i: i.compacted_bytes),
    ("  without bodies, receipts, state history", "B", disk_without_chain),
    ("compaction apart: time", "s", lambda i: i.compaction.wall_s),
    ("compaction apart: written", "B", lambda i: i.compaction.written_bytes),
    ("sync after the end", "s", lambda i: i.usage.sync_s),
]

JUDGED = [
    ("wall time", lambda i: i.usage.wall_s),
    ("bytes written", written_as_imported),
    ("peak memory", lambda i: i.usage.peak_rss_bytes),
]

LISTED_APART = [
    ("bodies and receipts, records", "bodies_receipts_logical_bytes"),
    ("bodies and receipts, in tables", "bodies_receipts_table_bytes"),
    ("blocks moved to flat files, on disk", "old_blocks_bytes"),
    ("state history, on disk", "state_history_bytes"),
    ("trie journal, on disk", "trie_journal_bytes"),
    ("headers, records", "headers_records_bytes"),
    ("transaction lookups, records", "transaction_lookups_records_bytes"),
    ("trie nodes of accounts, records", "account_nodes_records_bytes"),
    ("trie nodes of storage, records", "storage_nodes_records_bytes"),
    ("flat accounts, records", "flat_accounts_records_bytes"),
    ("flat slots, records", "flat_slots_records_bytes"),
    ("store's log, written", "log_written_bytes"),
    ("store's tables, written", "tables_written_bytes"),
]


def show(value, unit):
    return f"{value:.2f} s" if unit == "s" else f"{value / 1e6:.1f} MB"


def check_heads(chain, imports):
    """All runs of all sides must have ended at one head; returns it."""
    heads = {imported.head: side for side, runs in imports.items() for imported in runs}
    if len(heads) != 1:
        listed = "\n".join(f"  {side}: block {head[0]}, hash {head[1]}, state root {head[2]}" for head, side in heads.items())
        raise SystemExit(f"{chain.name}: the heads differ, nothing to compare\n{listed}")
    return next(iter(heads))


def median(runs, value):
    return statistics.median(value(imported) for imported in runs)


def print_table(chain, head, imports):
    sides = list(imports)
    runs = len(imports[sides[0]])
    print(f"\n{chain.name}: block {head[0]}, hash {head[1]}, state root {head[2]}")
    print(f"({'medians of ' + str(runs) + ' runs each, in turn' if runs > 1 else 'one run each'})\n")
    print(f"| {'':43} | " + " | ".join(f"{side:>12}" for side in sides) + (" | arbor / geth |" if len(sides) > 1 else " |"))
    print("|---" * (len(sides) + (2 if len(sides) > 1 else 1)) + "|")
    for label, unit, value in ROWS:
        figures = [median(imports[side], value) for side in sides]
        ratio = ""
        if len(sides) > 1:
            ratio = f" {figures[1] / figures[0]:12.3f} |" if figures[0] > 0 else f" {'-':>12} |"
        print(f"| {label:43} | " + " | ".join(f"{show(figure, unit):>12}" for figure in figures) + " |" + ratio)
    if "geth" in imports:
        print("\ngeth, listed apart:")
        for label, part in LISTED_APART:
            figures = [imported.parts[part] for imported in imports["geth"] if part in imported.parts]
            if figures:
                print(f"  {label:43} {show(statistics.median(figures), 'B'):>12}")


def judge(chain, imports, floors):
    """Prints each limit; true if all are met."""
    limits = LIMITS.get(chain.name, LIMITS[None])
    verdicts = []
    if "geth" in imports and "arbor" in imports:
        for label, value in JUDGED:
            ratio = median(imports["arbor"], value) / median(imports["geth"], value)
            verdicts.append((ratio, limits[label], f"{label}: {ratio:.3f} of geth's, at most {limits[label]:.3f}"))
    if floors:
        floor = statistics.median(usage.wall_s for usage in floors)
        wall = median(imports["arbor"], lambda i: i.usage.wall_s)
        used = statistics.median(usage.user_s + usage.sys_s for usage in floors)
        cpu = median(imports["arbor"], lambda i: i.usage.user_s + i.usage.sys_s)
        print(f"\nfloor (senders and execution alone): {floor:.2f} s of wall time, {used:.2f} s of CPU; arbor uses {cpu / used:.3f} of its CPU")
        if (most := ABOVE_FLOOR.get(chain.name)) is not None:
            verdicts.append((wall / floor, most, f"wall time: {wall / floor:.3f} of the floor's, at most {most}"))
    print()
    for ratio, limit, text in verdicts:
        print(f"{'met   ' if ratio <= limit else 'MISSED'}  {text}")
    return all(ratio <= limit for ratio, limit, _ in verdicts)


def compare(chain, sides, runs, workplace, compact):
    imports, floors = {side.name: [] for side in sides}, []
    for turn in range(runs):
        for side in sides:
            print(f"{chain.name}: {side.name}, run {turn + 1} of {runs}", file=sys.stderr, flush=True)
            folder = workplace / f"{chain.name}-{side.name}"
            imports[side.name].append(side.import_chain(chain, folder, compact))
            if isinstance(side, Arbor):
                # Right after, so that both meet the same neighbours.
                floors.append(side.floor(chain, folder))
            shutil.rmtree(folder)
    return imports, floors


def envelope(arguments, sides, results, started, wall):
    """The form of docs/design/report-format.md; the peers' figures are in results, so process is empty."""
    versions = {side.name: side.version() for side in sides}
    nothing = {name: None for name in ("user_s", "sys_s", "peak_rss_bytes", "read_bytes", "written_bytes")}
    return {
        "schema": "arboretum/1",
        "command": "bench-peers replay",
        "versions": {"arbor": versions.pop("arbor", "not run"), "commit": None, "rustc": None, **versions},
        "machine": measure.machine(),
        "settings": {name: value for name, value in vars(arguments).items() if name != "chains"},
        "results": results,
        "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "wall_seconds": wall,
        "process": nothing,
    }


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", nargs="+", metavar="CHAIN_DIR")
    parser.add_argument("--runs", type=int, default=1, help="runs of each side, in turn (default 1)")
    parser.add_argument("--only", choices=["geth", "arbor"], help="run one side alone")
    parser.add_argument("--memory", default="512MiB", help="arbor's --memory (default 512MiB)")
    parser.add_argument("--write-back", default="64MiB", help="arbor's --write-back (default 64MiB)")
    parser.add_argument("--retain", default="128", help="arbor's --retain (default 128)")
    parser.add_argument("--arbor-options", default="", help="more options for arbor replay, in one word")
    parser.add_argument("--no-compaction", action="store_true", help="leave out the compaction after each import")
    parser.add_argument("--scratch", help="folder for the databases (default: a temporary one; not one in memory)")
    parser.add_argument("--report", help="write all figures here, as JSON")
    return parser.parse_args()


def main():
    arguments = parse()
    measure.require_linux()
    started, clock = datetime.datetime.now(datetime.timezone.utc), time.monotonic()
    sides = []
    if arguments.only != "arbor":
        sides.append(Geth())
    if arguments.only != "geth":
        sides.append(Arbor(arguments.memory, arguments.write_back, arguments.retain, arguments.arbor_options))
    results, met = [], True
    with tempfile.TemporaryDirectory(prefix="arbor-peers-", dir=arguments.scratch or "/var/tmp") as workplace:
        for folder in arguments.chains:
            chain = prepare(folder, workplace)
            imports, floors = compare(chain, sides, arguments.runs, Path(workplace), not arguments.no_compaction)
            head = check_heads(chain, imports)
            print_table(chain, head, imports)
            met &= judge(chain, imports, floors)
            runs = {side: [asdict(imported) for imported in turns] for side, turns in imports.items()}
            floor = [asdict(usage) for usage in floors]
            results.append({"chain": chain.name, "head": head, "runs": runs, "floor": floor})
    if arguments.report:
        wall = time.monotonic() - clock
        text = json.dumps(envelope(arguments, sides, results, started, wall), indent=2)
        Path(arguments.report).write_text(text + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except measure.CommandFailed as failure:
        sys.exit(f"error: {failure}")
