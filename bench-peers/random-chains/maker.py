"""The programs: arbor, and the one that makes chains, which is compiled when it is first needed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def arbor_program():
    """Returns the program that `ARBOR` names, or what `cargo build` makes."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target"))
    program = Path(os.environ.get("ARBOR", target / "debug" / "arbor"))
    if not program.is_file():
        sys.exit(f"{program}: no such program; build it with `cargo build`, or name it in ARBOR")
    return program


class Maker:
    """Makes chains with go-ethereum. `flags` go to the program, for every chain."""

    def __init__(self, flags):
        if not shutil.which("go"):
            sys.exit("Go is needed to make chains: the version in bench-peers/random-chains/go.mod, or a later one")
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        self.program = cache / "arboretum" / "peers" / "bin" / "random-chains"
        # A dependency of geth names functions of Go's runtime, which newer linkers forbid without this flag.
        subprocess.run(["go", "build", "-ldflags=-checklinkname=0", "-o", self.program, "."], cwd=HERE, check=True)
        self.flags = flags

    def make(self, seed, out, *more):
        """Makes the chain of a seed in `out/SEED`; returns an error if geth cannot."""
        words = [self.program, "-seed", str(seed), "-out", str(out), *self.flags, *more]
        done = subprocess.run(words, capture_output=True, text=True)
        return done.stderr.strip()[-400:] if done.returncode else None
