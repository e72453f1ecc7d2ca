#!/usr/bin/env python3
"""Runs the commands of docs/guide/convert.md that begin with a data folder of geth, on a small chain.

    scripts/geth-guide.py ARBOR

ARBOR is the program. geth is the one on the PATH, or the one that bench-peers/setup.sh built. Exit code 2: there is
neither.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs/guide/convert.md"
# The forms of geth's database that the guide names.
SCHEMES = ("hash", "path")
PEERS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "arboretum/peers/bin"


def sections():
    """The shell blocks of the guide that name geth, in their order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    return [block for block in blocks if "geth " in block]


def run(command, folder, path):
    print(f"$ {command}", flush=True)
    env = {**os.environ, "PATH": path, "ARBOR_MEMORY": "64MiB"}
    shell = ["bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run(shell, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}\nended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def main():
    arbor = Path(sys.argv[1]).resolve()
    geth = shutil.which("geth") or PEERS / "geth"
    if not Path(geth).exists():
        print("SKIPPED: there is no geth; bench-peers/setup.sh builds it", file=sys.stderr)
        sys.exit(2)
    blocks = sections()
    if len(blocks) < 2:
        sys.exit(f"{GUIDE} has {len(blocks)} blocks of geth's commands: expected two or more")
    with tempfile.TemporaryDirectory() as folder:
        bin_folder = Path(folder) / "bin"
        bin_folder.mkdir()
        (bin_folder / "arbor").symlink_to(arbor)
        (bin_folder / "geth").symlink_to(geth)
        if not shutil.which("zstd"):
            # The guide packs dumps with zstd; gzip does as well.
            (bin_folder / "zstd").write_text("#!/bin/sh\nexec gzip\n")
            (bin_folder / "zstd").chmod(0o755)
        path = f"{bin_folder}:{os.environ['PATH']}"
        run("arbor generate --preset tiny --out made", folder, path)
        run("arbor replay --db wanted made", folder, path)
        wanted = json.loads(run("arbor status --db wanted --json", folder, path))
        number, root = str(wanted["block"]), wanted["stateRoot"]
        for scheme in SCHEMES:
            quiet = f"geth --verbosity 1 --datadir DATA --cache.preimages --state.scheme {scheme}"
            run(f"{quiet} init made/genesis.json", folder, path)
            run(f"{quiet} import made/chain.rlp", folder, path)
            for block in blocks:
                for command in block.strip().splitlines():
                    run(command.replace("BLOCK", number), folder, path)
                # All targets of the guide are named db.
                found = json.loads(run("arbor verify --db db --json", folder, path))
                if found["headerStateRoot"] != root:
                    sys.exit(f"the converted database has not the state root {root}:\n{found}")
                shutil.rmtree(Path(folder) / "db")
            shutil.rmtree(Path(folder) / "DATA")
            # geth would append to the first export.
            (Path(folder) / "chain.rlp").unlink()
    print(f"{len(blocks)} blocks of commands with geth lead to the state root {root}, with the schemes {', '.join(SCHEMES)}")


main()
