"""The two programs that are compared: how each imports a chain, and what it leaves behind."""

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from measure import CommandFailed, Usage, disk_bytes, run

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass
class Chain:
    """A chain as both sides read it: an uncompressed export and a genesis in geth's form."""

    name: str
    export: Path
    genesis: Path


@dataclass
class Imported:
    """One side's import of one chain."""

    usage: Usage
    # Block number, block hash and state root, the hashes as 0x and lower-case hex.
    head: tuple
    disk_bytes: int
    compacted_bytes: int
    compaction: Usage
    # Parts of the figures above, in bytes, by name.
    parts: dict = field(default_factory=dict)


def peers_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "arboretum" / "peers" / "bin"


def find_program(name, setting, places, hint):
    """The program named by an environment variable, or the first that exists in `places`."""
    chosen = os.environ.get(setting)
    for place in [chosen] if chosen else places:
        if place and Path(place).is_file():
            return Path(place)
    tried = chosen or ", ".join(str(place) for place in places if place)
    raise SystemExit(f"{name} not found ({tried}). {hint}")


def _output(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise CommandFailed(f"exit {done.returncode}: {' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return done.stdout


class Geth:
    """geth of the version in setup.sh, path scheme, everything else at its default."""

    name = "geth"

    def __init__(self):
        hint = "Run bench-peers/setup.sh, or name it in GETH."
        self.program = find_program("geth", "GETH", [peers_folder() / "geth", shutil.which("geth")], hint)
        self.sizes = find_program("geth-sizes", "GETH_SIZES", [peers_folder() / "geth-sizes"], hint)

    def version(self):
        return re.search(r"^Version: (\S+)", _output([self.program, "version"]), re.M).group(1)

    def import_chain(self, chain, folder, compact=True):
        """Imports into `folder`, which must not exist; import itself opens no port and dials nobody."""
        datadir, log = folder / "data", folder / "log"
        folder.mkdir(parents=True)
        base = [self.program, "--datadir", datadir, "--state.scheme", "path"]
        usage = run([*base, "init", chain.genesis], log)
        # geth merges its tables at the end of an import unless told not to: measured apart, as for arbor.
        usage += run([*base, "import", "--nocompaction", chain.export], log)
        size = disk_bytes(datadir)
        engine = engine_writes(log.read_text(errors="replace"))
        head = self._head(datadir)
        compaction = run([self.program, "--datadir", datadir, "db", "compact"], log) if compact else Usage()
        return Imported(usage, head, size, disk_bytes(datadir), compaction, self._parts(datadir) | engine)

    def _head(self, datadir):
        text = _output([self.program, "--datadir", datadir, "db", "metadata"])
        number = int(re.search(r"headBlock\.Number\s*\|\s*(\d+)", text).group(1))
        block_hash = re.search(r"headBlock\.Hash\s*\|\s*(0x[0-9a-f]{64})", text).group(1)
        root = re.search(r"headBlock\.Root\s*\|\s*(0x[0-9a-f]{64})", text).group(1)
        return number, block_hash, root

    def _parts(self, datadir):
        chaindata = datadir / "geth" / "chaindata"
        kinds = json.loads(_output([self.sizes, chaindata]))
        parts = {f"{name}_records_bytes": kind["logical_bytes"] for name, kind in kinds.items()}
        for place in ("logical", "table"):
            parts[f"bodies_receipts_{place}_bytes"] = sum(kinds[name][f"{place}_bytes"] for name in ("bodies", "receipts"))
        parts["tables_bytes"] = sum(path.stat().st_size for path in chaindata.glob("*.sst"))
        # Blocks older than geth's last 90,000 are moved to flat files.
        parts["old_blocks_bytes"] = disk_bytes(chaindata / "ancient" / "chain")
        parts["state_history_bytes"] = disk_bytes(chaindata / "ancient" / "state")
        parts["trie_journal_bytes"] = disk_bytes(datadir / "geth" / "triedb")
        return parts


def engine_writes(log):
    """Bytes that pebble, geth's store, says it wrote to its log and to its tables: the statistics at the end of an import."""
    statistics = log[log.rindex("level | tables") :]
    rows = [line.split("|") for line in statistics.splitlines() if re.match(r" +[0-6] \|", line)]
    # Flushes are in row 0, merges in the rows of their outputs; the cell is "files bytes".
    tables = sum(_bytes(row[6].split()[1]) for row in rows)
    written = re.search(r"^WAL: .*written: (\S+)", statistics, re.M).group(1)
    return {"log_written_bytes": _bytes(written), "tables_written_bytes": tables}


def _bytes(text):
    """A size as pebble prints it: `3.2MB`, in powers of 1,024."""
    figure, unit = re.fullmatch(r"([\d.]+)([KMGT]?)B", text).groups()
    return int(float(figure) * 1024 ** " KMGT".index(unit or " "))


class Arbor:
    """The release binary of this checkout."""

    name = "arbor"

    def __init__(self, memory="512MiB", write_back="64MiB", retain="128", extra=""):
        target = os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target"
        hint = "Run `cargo build --release`, or name the program in ARBOR."
        self.program = find_program("arbor", "ARBOR", [Path(target) / "release" / "arbor"], hint)
        self.options = ["--memory", memory, "--write-back", write_back, "--retain", retain, *shlex.split(extra)]

    def version(self):
        return _output([self.program, "--version"]).split()[1]

    def import_chain(self, chain, folder, compact=True):
        """Replays into `folder`, which must not exist."""
        folder.mkdir(parents=True)
        database, log, report = folder / "db", folder / "log", folder / "report.json"
        replay = [self.program, "replay", "--db", database, "--genesis", chain.genesis, *self.options]
        usage = run([*replay, "--report", report, chain.export], log, report)
        size = disk_bytes(database)
        head = self._head(database)
        # Nothing is left to replay: the second run only compacts.
        compaction = run([*replay, "--compact", chain.export], log) if compact else Usage()
        own = json.loads(report.read_text())
        return Imported(usage, head, size, disk_bytes(database), compaction, {"report": own["results"]})

    def floor(self, chain, folder):
        """Recovers senders and executes over plain maps in memory, on as many threads: no tree, no store."""
        folder.mkdir(parents=True, exist_ok=True)
        return run([self.program, "replay", "--tree", "none", "--genesis", chain.genesis, chain.export], folder / "floor.log")

    def _head(self, database):
        status = json.loads(_output([self.program, "status", "--db", database, "--json"]))
        return status["block"], status["blockHash"], status["stateRoot"]

    def generate(self, folder, options):
        """Makes a chain with `arbor generate`."""
        _output([self.program, "generate", "--out", folder, *options])
