"""The comparisons of all.py: the command of each, what it needs, and how its report becomes rows.

A row has `key` (stable, within the comparison), `what` (in words), `unit`, `ours`, `others` (a figure for each peer), `better`
(`less` or `more`) and `quoted` (whether the others' figures are from another run). Figures are in seconds, bytes, or what the
unit says.
"""

import re
from dataclasses import dataclass, field
from statistics import median
from typing import Callable

import loadtest
import replay
from measure import Usage
from sides import Imported

PUBLISHED_ROOT = "1ddec3794d0a1c5b44c2d9c7aa985cc61c70e988da2e6f2a810e0eb37f4322c0"


@dataclass
class Comparison:
    """One command, in a full and a short form; `quick` is None if there is no short form."""

    name: str
    title: str
    # What both sides must agree in before there are times.
    checked: str
    peers: list
    # Of the words, CHAINS and CHAIN stand for chains, REPORT for the file of figures, OUT for an empty folder.
    full: list
    quick: list | None
    rows: Callable
    # The most important row, by its key.
    headline: str
    # Seconds that the full and the short form may take.
    limits: tuple = (3600, 300)
    # What is measured, if not arbor as a whole.
    ours: str = "arbor"
    # Where the report lies, if the command has no option for it.
    report: str = "REPORT"
    # Words to use instead if these peers cannot be had; the peers' figures are then quoted.
    without: dict = field(default_factory=dict)


def row(key, what, unit, ours, others, better="less", quoted=False):
    """A row of a comparison; peers without a figure are left out."""
    others = {name: value for name, value in others.items() if value is not None}
    return {"key": key, "what": what, "unit": unit, "ours": ours, "others": others, "better": better, "quoted": quoted}


# What replay.py, with its own functions, takes from an import.
OF_IMPORT = [
    ("wall", "wall time", "s", lambda i: i.usage.wall_s),
    ("cpu", "CPU", "s", lambda i: i.usage.user_s + i.usage.sys_s),
    ("memory", "peak memory", "B", lambda i: i.usage.peak_rss_bytes),
    ("written", "written, without geth's bodies, receipts and history", "B", replay.written_as_imported),
    ("disk", "disk after compaction, without geth's bodies, receipts and history", "B", replay.disk_without_chain),
]


def _imported(run):
    return Imported(**run | {"usage": Usage(**run["usage"]), "compaction": Usage(**run["compaction"])})


def of_replay(report):
    rows = []
    for chain in report["results"]:
        sides = {side: [_imported(run) for run in runs] for side, runs in chain["runs"].items()}
        name = chain["chain"]
        for key, what, unit, value in OF_IMPORT:
            geth, ours = (median(value(run) for run in sides[side]) for side in ("geth", "arbor"))
            rows.append(row(f"{name}/{key}", f"{name}: {what}", unit, ours, {"geth": geth}))
    return rows


def of_serve(report):
    rows = []
    for method, found in report["serving"].items():
        for key, what, unit, group, field_, scale, better in [
            ("rate", "requests a second at most", "1/s", "peak", "rate", 1, "more"),
            ("cpu", "CPU of a request", "s", "peak", "cpu_micros", 1e-6, "less"),
            ("p99", "p99 at half of geth's peak rate", "s", "paced", "p99_micros", 1e-6, "less"),
        ]:
            geth, ours = (median(each[field_] for each in found[group][side]) * scale for side in ("geth", "arbor"))
            rows.append(row(f"{method}/{key}", f"{method}: {what}", unit, ours, {"geth": geth}, better))
    return rows


# Rows of commitments.py in words; N is what follows in the name.
OPERATIONS = {
    "keccak": "Keccak-256 of N bytes",
    "vector": "commitment to N full scalars",
    "leaf": "leaf of N values",
    "update": "one value of a leaf of N changed",
    "update-many": "N of 256 values of a leaf changed",
    "update-from-points": "one value of a leaf of N changed, from its points alone",
    "key/header": "tree key of an account's header",
    "key/slot": "tree key of a slot",
    "key/slot-repeated": "tree key of a slot, its address known",
    "point/map": "image of a point in the scalar field",
    "point/compress": "encoding of a point",
    "point/decompress": "decoding of a point, with the check of its subgroup",
    "prove": "multiproof of N openings made",
    "verify": "multiproof of N openings verified",
}


def _operation(name):
    kind, _, number = name.partition("/")
    words = OPERATIONS.get(name) or OPERATIONS.get(kind, name).replace("N", number)
    return re.sub(r"\b1 (full scalar|value|opening)s", r"1 \1", words)


def of_commitments(report):
    rows, keccak = [], report["keccak_ns"]
    for each in report["rows"]:
        threads = each["threads"]
        suffix, more = (f"/{threads}", f", {threads} threads") if threads > 1 else ("", "")
        key, what = each["name"] + suffix, _operation(each["name"]) + more
        others = {"go-ipa": each["go_ns"] / 1e9}
        if each["batch_ns"]:
            rows.append(row(key, f"{what}, in batches", "s", each["batch_ns"] / 1e9, others))
            rows.append(row(f"{key}/single", f"{what}, one at a time", "s", each["single_ns"] / 1e9, others))
        else:
            rows.append(row(key, what, "s", each["single_ns"] / 1e9, others))
        if key.startswith(("leaf/", "update/", "key/")):
            best = (each["batch_ns"] or each["single_ns"]) / keccak / each["values"]
            rows.append(row(f"{key}/keccaks", f"{what}, for each value", "Keccaks", best, {}))
    return rows


def of_arithmetic(report):
    peers = lambda each: {name: ns / 1e9 for name, ns in each["peers_ns"].items() if ns is not None}
    return [row(each["name"], each["name"], "s", each["arbor_ns"] / 1e9, peers(each)) for each in report["rows"]]


def of_verkle_tree(report):
    rows = []
    for each in report["rows"]:
        name = each["name"]
        if "go_s" in each:
            rows.append(row(name, f"{name}, for each key", "s", each["arbor_s"], {"go-verkle": each["go_s"]}))
        else:
            rows.append(row(name, name.replace("_", " "), "B", each["arbor"], {"go-verkle": each["go"]}))
    return rows


def of_bintrie(report):
    rows = []
    for each in report["rows"]:
        name = each["name"]
        if "geth_s" in each:
            rows.append(row(name, f"{name}, for each key", "s", each["arbor_s"], {"trie/bintrie": each["geth_s"]}))
        else:
            rows.append(row(name, f"{name.replace('_', ' ')}, for each key", "B", each["arbor"], {"trie/bintrie": each["geth"]}))
    return rows


def of_loadtest(report):
    rows = []
    for name, sides in report["results"].items():
        common = loadtest.WORKLOADS[name][0]
        leaves = int(common[0]) * int(common[1])
        quoted = not any("root" in run for run in sides["zksync"])
        ours, peer = ({what: loadtest.median(sides[side], what) for what in loadtest.FIGURES} for side in ("arbor", "zksync"))
        words = f"{name}: {common[0]} blocks of {int(common[1]):,} leaves, leaves a second"
        rows.append(row(f"{name}/rate", words, "1/s", leaves / ours["s"], {"zkSync's tree": leaves / peer["s"]}, "more", quoted))
        merged = loadtest.median(sides["arbor"], "compacted")
        if merged is not None:
            rows.append(row(f"{name}/merged", f"{name}: on disk, ours merged", "B", merged, {"zkSync's tree": peer["disk"]}, quoted=quoted))
        for what, label, unit in [
            ("written", "written", "B"),
            ("disk", "on disk at the end", "B"),
            ("memory", "peak memory", "B"),
            ("verify_s", "check of the whole tree", "s"),
        ]:
            if ours[what] is not None:
                rows.append(row(f"{name}/{what}", f"{name}: {label}", unit, ours[what], {"zkSync's tree": peer[what]}, quoted=quoted))
    if {"insert", "proofs"} <= report["results"].keys():
        times = {side: [loadtest.median(report["results"][name][side], "s") for name in ("insert", "proofs")] for side in ("arbor", "zksync")}
        ours, peer = (with_proofs / plain for plain, with_proofs in times.values())
        rows.append(row("proofs/times", "time with proofs and reads, by the time without", "times", ours, {"zkSync's tree": peer}, quoted=quoted))
    return rows


def of_leaves(report):
    rows, results = [], report["results"]
    peers = [side for side in results if not side.startswith("arbor")]
    for key, what, unit, better in [
        ("new", "new leaves", "1/s", "more"),
        ("updates", "changed leaves", "1/s", "more"),
        ("new_bytes", "written for each new leaf", "B", "less"),
        ("update_bytes", "written for each changed leaf", "B", "less"),
        ("memory", "peak memory", "B", "less"),
        ("disk", "on disk", "B", "less"),
    ]:
        of = lambda side: median(run[key] for run in results[side])
        rows.append(row(key, what, unit, of("arbor"), {peer: of(peer) for peer in peers}, better))
    return rows


def _contracts(table, what, rows, peers):
    """Rows of contracts in arbor's engine, under each interface, and in revm; the first peer is native."""
    native = next(iter(peers.values()))
    for name, seconds in rows:
        executor, interface, *more = name.split(", ")
        of_engine = executor == "engine" and interface != "plain EVM"
        if (of_engine or interface == "v7") and more != ["products twice"]:
            key, words = f"{table}/{executor}, {interface}", f"{what}, {executor}, {interface}"
            yield row(key, words, "s", seconds, peers)
            yield row(f"{key}/times", f"{words}, by the native time", "times", seconds / native, {})


PAIRINGS = [("pairing", "one pairing"), ("pairing-check", "check of two pairs")]


def of_pairings(report):
    rows = []
    for table, what in PAIRINGS:
        found = report["tables"][table]
        # Of arbor's own rows the first is blst's or the precompile's.
        contracts = [(name, seconds) for name, seconds, _ in found["arbor"][1:] if name.startswith("engine")]
        rows += _contracts(table, what, contracts, dict(found["peers"]))
    return rows


def of_evm384(report):
    rows = []
    for table, what in PAIRINGS:
        first, *contracts = [(each["name"], each["fastest_s"]) for each in report["results"][table]["rows"]]
        rows += _contracts(table, what, contracts, dict([first]))
    return rows


def of_senders(report):
    rows = []
    for each in report["results"]["batches"]:
        key, what = str(each["batch"]), f"a sender, in batches of {each['batch']}"
        rows.append(row(key, what, "s", each["method_us"] / 1e6, {"libsecp256k1": each["libsecp256k1_us"] / 1e6}))
    return rows


# The settings without what a round of optimisations brought: inversions and normalisations one by one, narrow tables.
BEFORE_ROUND = "verkle:narrow-tables+single-images+single-affine"
TREES = ["mpt", "verkle", "verkle:published", "verkle:compressed", BEFORE_ROUND]


def of_trees(report):
    """Verkle next to Merkle-Patricia; and what its settings are worth."""
    results = report["results"]
    if results["failed"]:
        raise ValueError("; ".join(results["failed"]))
    figures = {figure["name"]: dict(zip(TREES, figure["trees"])) for figure in results["figures"]}
    value = lambda name, tree: (figures[name][tree] or {}).get("median")
    rows = []
    for name, what, unit in [
        ("wall_s", "wall time", "s"),
        ("written_bytes", "written to disk", "B"),
        ("disk_bytes", "size on disk", "B"),
        ("peak_rss_bytes", "peak memory", "B"),
    ]:
        rows.append(row(name, what, unit, value(name, "verkle"), {"Merkle-Patricia": value(name, "mpt")}))
    for key, what, name, side, base in [
        ("written", "bytes written, by Merkle-Patricia's", "written_bytes", "verkle", "mpt"),
        ("published", "bytes written in the published layout, by Merkle-Patricia's", "written_bytes", "verkle:published", "mpt"),
        ("compressed", "wall time with compressed points, by the time without", "wall_s", "verkle:compressed", "verkle"),
        ("round", "wall time without batched inversions and normalisations and without wide tables, by the time with them", "wall_s", BEFORE_ROUND, "verkle"),
    ]:
        rows.append(row(f"times/{key}", what, "times", value(name, side) / value(name, base), {}))
    return rows


def _of_loadtest(*figures):
    """Rows of arbor's load test alone: the key, the words, the unit and the figure of each."""

    def rows(report):
        return [row(key, what, unit, value(report["results"]), {}) for key, what, unit, value in figures]

    return rows


BLOCK = ("block", "the last block, with its commit", "s", lambda results: results["blocks"][-1]["wall_s"])
CHECK = ("check", "check of the whole tree", "s", lambda results: results["verify_s"])
DISK = ("disk", "on disk, merged", "B", lambda results: results["compacted_bytes"])


def _with_root(rows):
    """The same rows, if the root is the published one."""

    def checked(report):
        root = report["results"]["root"].removeprefix("0x")
        if root != PUBLISHED_ROOT:
            raise ValueError(f"the root is {root}, not the published {PUBLISHED_ROOT}")
        return rows(report)

    return checked


QUOTED = "The figures of zkSync's tree are quoted: they were measured earlier, on a machine of two cores."
LOADTEST = ["--memory", "1GiB", "--write-back", "128MiB", "--report", "REPORT"]
COMPARE = ["ARBOR", "compare", "--trees", ",".join(TREES), "--no-survey", "--growth", "0", "--out", "OUT", "CHAIN"]

ALL = [
    Comparison(
        "replay",
        "Import of a chain, next to go-ethereum",
        "Both end at the same block hash and state root.",
        ["geth", "geth-sizes"],
        ["replay.py", "CHAINS", "--runs", "2", "--report", "REPORT"],
        ["replay.py", "CHAIN", "--report", "REPORT"],
        of_replay,
        "wall",
    ),
    Comparison(
        "serve",
        "JSON-RPC, next to go-ethereum",
        "Both give the same answers to 200 requests of each method.",
        ["geth", "wrk"],
        ["serve.py", "CHAIN", "--parts", "serving", "--report", "REPORT"],
        ["serve.py", "CHAIN", "--parts", "serving", "--seconds", "1", "--runs", "1", "--report", "REPORT"],
        of_serve,
        "eth_getProof/cpu",
    ),
    Comparison(
        "commitments",
        "Pedersen commitments, keys and multiproofs, next to go-ipa",
        "All results of each row have the same digest.",
        ["go-ipa"],
        ["commitments.py", "--runs", "2", "--report", "REPORT"],
        ["commitments.py", "--budget", "50", "--groups", "keccak,vectors,leaves,updates,keys,points", "--report", "REPORT"],
        of_commitments,
        "vector/256",
    ),
    Comparison(
        "verkle-tree",
        "The Verkle tree alone, next to go-verkle",
        "The roots after every step are equal.",
        ["go-verkle", "bench of the Verkle tree"],
        ["verkle_tree.py", "--report", "REPORT"],
        ["verkle_tree.py", "--keys", "20000", "--report", "REPORT"],
        of_verkle_tree,
        "insert",
    ),
    Comparison(
        "bintrie",
        "The unified binary tree, next to go-ethereum's trie/bintrie",
        "The roots after every step are equal.",
        ["trie/bintrie", "bench of the EIP-7864 tree"],
        ["bintrie.py", "--report", "REPORT"],
        ["bintrie.py", "--keys", "20000", "--report", "REPORT"],
        of_bintrie,
        "insert",
    ),
    Comparison(
        "zksync",
        "The load test of AR16MT (amortized radix-16 Merkle tree), next to zkSync's tree",
        "The roots are equal. If the peer's figures are quoted, nothing is compared.",
        ["zkSync's tree"],
        ["loadtest.py", "--report", "REPORT"],
        ["loadtest.py", "insert", "--report", "REPORT"],
        of_loadtest,
        "insert/rate",
        limits=(7200, 600),
        without={"zkSync's tree": (["--peer", "quoted"], QUOTED)},
    ),
    Comparison(
        "zksync-published",
        "zkSync's published run, by arbor alone: 75 blocks of 150,000 leaves",
        "The root after block 74 is the published one.",
        [],
        ["ARBOR", "loadtest", "75", "150000", "--prune", *LOADTEST],
        None,
        _with_root(_of_loadtest(BLOCK, CHECK)),
        "block",
    ),
    Comparison(
        "zksync-published-proofs",
        "The same with a proof of every write and of 50,000 reads a block",
        "The root after block 74 is the published one.",
        [],
        ["ARBOR", "loadtest", "75", "150000", "--prune", "--proofs", "--reads", "50000", *LOADTEST],
        None,
        _with_root(_of_loadtest(BLOCK)),
        "block",
    ),
    Comparison(
        "zksync-pruned",
        "zkSync's published run of pruning, by arbor alone: 3,000 blocks of 5,000 leaves, the latest version kept",
        "The whole tree is checked at the end.",
        [],
        ["ARBOR", "loadtest", "3000", "5000", "--prune", *LOADTEST],
        None,
        _of_loadtest(DISK, CHECK),
        "disk",
    ),
    Comparison(
        "zksync-kept",
        "The same with all versions kept",
        "The whole tree is checked at the end.",
        [],
        ["ARBOR", "loadtest", "3000", "5000", *LOADTEST],
        None,
        _of_loadtest(DISK, CHECK),
        "disk",
    ),
    Comparison(
        "nomt",
        "A load of leaves, next to NOMT",
        "The trees are different ones: each side reads back its own leaves, and roots are not compared.",
        ["NOMT"],
        ["leaves.py", "--peers", "NOMT", "--report", "REPORT"],
        ["leaves.py", "--peers", "NOMT", "--blocks", "4", "--update-blocks", "2", "--report", "REPORT"],
        of_leaves,
        "new",
    ),
    Comparison(
        "qmdb",
        "The same load, next to QMDB",
        "Each side reads back its own leaves. QMDB's root is that of a log of changes: no proof of it shows what a key holds now.",
        ["QMDB"],
        ["leaves.py", "--peers", "QMDB", "--report", "REPORT"],
        ["leaves.py", "--peers", "QMDB", "--blocks", "4", "--update-blocks", "2", "--report", "REPORT"],
        of_leaves,
        "new",
    ),
    Comparison(
        "arithmetic",
        "Field and curve under the commitments, next to gnark-crypto, arkworks and blst",
        "All results of each row have the same digest.",
        ["gnark-crypto", "arkworks and blst"],
        ["arithmetic.py", "--report", "REPORT"],
        ["arithmetic.py", "--ms", "20", "--runs", "1", "--report", "REPORT"],
        of_arithmetic,
        "field/mul, in lanes",
    ),
    Comparison(
        "evm384",
        "Pairings by EVM384 contracts, next to blst",
        "Each result is compared with that of blst or of the precompile.",
        [],
        ["ARBOR", "evm384", "bench", "--rounds", "60", "--report", "REPORT"],
        ["ARBOR", "evm384", "bench", "--rounds", "10", "--report", "REPORT"],
        of_evm384,
        "pairing/engine, v7",
        ours="EVM384 contract",
    ),
    Comparison(
        "pairings",
        "Pairings by EVM384 contracts, next to blst, arkworks and WebAssembly",
        "Each side checks its pairing before it is timed.",
        ["blst, arkworks, wasmtime and wasmi"],
        ["pairings.py", "--rounds", "60", "--report", "REPORT"],
        ["pairings.py", "--rounds", "5", "--report", "REPORT"],
        of_pairings,
        "pairing/engine, v7",
        ours="EVM384 contract",
    ),
    Comparison(
        "senders",
        "Senders of transactions, next to libsecp256k1",
        "Both recover the same senders.",
        [],
        ["ARBOR", "bench", "senders", "--report", "REPORT"],
        ["ARBOR", "bench", "senders", "--budget", "200", "--report", "REPORT"],
        of_senders,
        "64",
    ),
    Comparison(
        "trees",
        "Verkle next to Merkle-Patricia, both by arbor",
        "Each run ends at the same block, those of a tree with the same roots, and `arbor verify` accepts the database of its first.",
        [],
        [*COMPARE, "--repeat", "2"],
        [*COMPARE, "--repeat", "1"],
        of_trees,
        "wall_s",
        ours="Verkle",
        report="OUT/results.json",
    ),
]
