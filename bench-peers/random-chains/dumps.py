"""Compares dumps of a state: one line of JSON for the root, then one for each account."""

import json


class Difference(Exception):
    """Something that differs from what go-ethereum has, or between two ways to the same state."""


def _accounts(text):
    """Returns the root and the accounts by address (or by hashed address), without what is empty."""
    root, accounts = None, {}
    for line in filter(str.strip, text.splitlines()):
        entry = json.loads(line)
        if "balance" not in entry:
            root = entry.get("root", root)
            continue
        entry = {name: value for name, value in entry.items() if value not in (None, {}, "0x")}
        if "storage" in entry:
            slots = entry["storage"].items()
            entry["storage"] = {slot: value.lower().removeprefix("0x") for slot, value in slots}
        if "address" in entry:
            entry["address"] = entry["address"].lower()
        accounts[entry.get("address") or entry.get("key")] = entry
    return root, accounts


def compare(found, expected, roots=True):
    """Raises `Difference` with the first account that is not the same in both dumps; `roots`: if they are of one tree."""
    (found_root, found), (expected_root, expected) = _accounts(found), _accounts(expected)
    for account in sorted(found.keys() | expected.keys()):
        if found.get(account) != expected.get(account):
            raise Difference(f"account {account}: {found.get(account)}, expected {expected.get(account)}"[:900])
    if roots and found_root != expected_root:
        raise Difference(f"root {found_root}, expected {expected_root}")
