#!/usr/bin/env python3
"""Lets geth import a chain that `arbor generate` made, and compares the heads.

    bench-peers/generated.py [OPTIONS OF arbor generate]

Without options: the preset `tiny`, plain and gzip made once each, which must hold the same blocks. geth checks every block
and root of its own accord; arbor replays the same files; both must stand at the same block hash and state root.
"""

import sys
import tempfile
from pathlib import Path

from chains import prepare
from measure import CommandFailed, require_linux
from sides import Arbor, Geth


def main():
    require_linux()
    options = sys.argv[1:] or ["--preset", "tiny"]
    if "--help" in options or "-h" in options:
        print(__doc__)
        return 0
    geth, arbor = Geth(), Arbor()
    with tempfile.TemporaryDirectory(prefix="arbor-generated-", dir="/var/tmp") as workplace:
        workplace = Path(workplace)
        folders = [workplace / "plain", workplace / "packed"]
        arbor.generate(folders[0], options)
        arbor.generate(folders[1], [*options, "--gzip"])
        plain, packed = (prepare(folder, workplace) for folder in folders)
        if plain.export.read_bytes() != packed.export.read_bytes():
            print("FAILED: two generations of one chain differ")
            return 1
        heads = {side.name: side.import_chain(plain, workplace / side.name, compact=False).head for side in (geth, arbor)}
    for name, (number, block_hash, root) in heads.items():
        print(f"{name:>6}: block {number}, hash {block_hash}, state root {root}")
    equal = len(set(heads.values())) == 1 and heads["geth"][0] > 0
    print("ok: geth imports the generated chain, heads are equal" if equal else "FAILED: the heads differ or no block was imported")
    return 0 if equal else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandFailed as failure:
        sys.exit(f"error: {failure}")
