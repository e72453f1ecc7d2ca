"""The peers of all.py: where each program lies, and how it is built."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from sides import REPOSITORY, peers_folder

HERE = Path(__file__).resolve().parent
# Seconds that a peer may take to build. RocksDB, for one, takes longer.
BUILD_LIMIT_S = 1800


@dataclass
class Peer:
    """A program of another project, or a bench of this one that must be built apart from `arbor`."""

    name: str
    version: str
    # Programs that must be on the PATH, to build it or to run it.
    needs: list = field(default_factory=list)
    # Where it may lie, best first; empty if only cargo knows.
    places: list = field(default_factory=list)
    build: list = field(default_factory=list)
    folder: Path = HERE
    environment: dict = field(default_factory=dict)
    # Why there is no way to build it here.
    never: str = ""
    # Whether it only helps to measure: no page lists it as a peer.
    is_tool: bool = False


def _go(name, folder, program, version, is_tool=False):
    place = peers_folder() / program
    return Peer(name, version, ["go"], [place], ["go", "build", "-o", place, "."], HERE / folder, is_tool=is_tool)


def _cargo(name, folder, version, target=None, program=None, needs=()):
    build = ["cargo", "build", "--release", "--locked", "--manifest-path", HERE / folder / "Cargo.toml"]
    environment = {"CARGO_TARGET_DIR": str(target)} if target else {}
    places = [program or target / "release" / f"{folder}-bench"] if target else []
    return Peer(name, version, ["cargo", *needs], places, build, environment=environment)


def _bench(name, package):
    build = ["cargo", "bench", "-p", package, "--bench", "tree", "--no-run", "--locked"]
    return Peer(name, "this checkout", ["cargo"], [], build, REPOSITORY, is_tool=True)


def _named(setting, place):
    """A place, or another that an environment variable names."""
    return Path(os.environ.get(setting) or place)


def _in_path(name):
    found = shutil.which(name)
    return [Path(found)] if found else []


def known():
    """All peers, by name."""
    geth = [_named("GETH", peers_folder() / "geth"), *_in_path("geth")]
    arbor = _named("ARBOR", Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target") / "release/arbor")
    peers = [
        Peer("arbor", "this checkout", ["cargo"], [arbor], ["cargo", "build", "--release", "--locked"], REPOSITORY),
        Peer("geth", "1.17.7", ["go"], geth, ["bash", HERE / "setup.sh"]),
        _go("geth-sizes", "geth-sizes", "geth-sizes", "1.17.7", is_tool=True),
        Peer("wrk", "any", ["wrk"], is_tool=True),
        _go("go-ipa", "go-ipa", "go-ipa-bench", "53bbb0c"),
        _go("go-verkle", "go-verkle", "go-verkle-bench", "0.2.2"),
        _go("gnark-crypto", "gnark", "gnark-bench", "0.18.1"),
        _go("trie/bintrie", "geth-bintrie", "geth-bintrie", "go-ethereum 1.17.7"),
        _bench("bench of the Verkle tree", "arbor-tree-verkle"),
        _bench("bench of the EIP-7864 tree", "arbor-tree-eip7864"),
        _cargo("arkworks and blst", "arithmetic", "0.6 and 0.3.17", peers_folder().parent / "arithmetic"),
        _cargo("blst, arkworks, wasmtime and wasmi", "pairings", "0.3.17, 0.6, 48, 2", needs=["node", "npm"]),
        _cargo("NOMT", "nomt", "1.0.5", HERE / "nomt/target", _named("NOMT", HERE / "nomt/target/release/nomt-bench")),
        _cargo("QMDB", "qmdb", "2026.10.0", HERE / "qmdb/target", _named("QMDB", HERE / "qmdb/target/release/qmdb-bench")),
        Peer(
            "zkSync's tree",
            "29.13",
            places=[_named("ZKSYNC_TREE", HERE / "zksync-tree/target/release/zksync-tree-bench")],
            never="It needs rustc 1.85 with RUSTC_BOOTSTRAP=1, and RocksDB (bench-peers/README.md, loadtest.py).",
        ),
    ]
    return {peer.name: peer for peer in peers}


def missing(peer, may_build=True):
    """Builds a peer if it is not there; returns why it cannot be had, or None."""
    if any(place.is_file() for place in peer.places):
        return None
    if peer.never:
        return peer.never
    absent = [name for name in peer.needs if not shutil.which(name)]
    if absent:
        return f"{' and '.join(absent)} must be installed first."
    if not peer.build:
        return None
    if not may_build:
        return "It is not built, and --no-build was given."
    return _failed_build(peer)


def _failed_build(peer):
    """Runs the command that builds a peer; returns why it failed, or None."""
    peers_folder().mkdir(parents=True, exist_ok=True)
    environment = os.environ | peer.environment
    command = [str(word) for word in peer.build]
    try:
        done = subprocess.run(command, cwd=peer.folder, env=environment, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"Its build was stopped after {BUILD_LIMIT_S} s."
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return f"Its build failed: {lines[-1] if lines else f'exit status {done.returncode}'}"
