"""Chain folders: an export, plain or gzip, with the genesis beside it."""

import gzip
import shutil
from pathlib import Path

from sides import Chain


def prepare(folder, workplace):
    """Gives the chain in `folder`, its export unpacked into `workplace`: both sides then read the same plain file."""
    folder = Path(folder).resolve()
    genesis = folder / "genesis.json"
    if not genesis.is_file():
        raise SystemExit(f"{folder}: no genesis.json")
    plain, packed = folder / "chain.rlp", folder / "chain.rlp.gz"
    if plain.is_file():
        return Chain(folder.name, plain, genesis)
    if not packed.is_file():
        raise SystemExit(f"{folder}: neither chain.rlp nor chain.rlp.gz")
    export = Path(workplace) / f"{folder.name}.rlp"
    with gzip.open(packed) as source, open(export, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return Chain(folder.name, export, genesis)
