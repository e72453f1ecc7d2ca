#!/usr/bin/env python3
"""Packs a public network's genesis for crates/chain/src/genesis/presets.

  scripts/pack-genesis.py NAME < genesis.json

reads geth's JSON form (`geth --NAME dumpgenesis`) and writes NAME.json.gz without its rules, which `Network::spec` has.
The output does not depend on the order of the input's fields; a test compares block 0's hash with the published one.
"""

import gzip
import json
import sys
from pathlib import Path

FIELDS = [
    "nonce", "timestamp", "extraData", "gasLimit", "difficulty", "mixHash", "coinbase", "number", "gasUsed",
    "parentHash", "baseFeePerGas", "excessBlobGas", "blobGasUsed",
]

name = sys.argv[1]
source = {field.lower(): value for field, value in json.load(sys.stdin).items()}
genesis = {field: source[field.lower()] for field in FIELDS if source.get(field.lower()) is not None}
accounts = {address.lower().removeprefix("0x"): account for address, account in source["alloc"].items()}
genesis["alloc"] = dict(sorted(accounts.items()))
text = json.dumps(genesis, separators=(",", ":"))
folder = Path(__file__).parent.parent / "crates/chain/src/genesis/presets"
folder.mkdir(exist_ok=True)
# No time stamp, so that the same facts give the same bytes.
(folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
