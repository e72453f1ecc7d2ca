#!/usr/bin/env python3
"""Audits the dependencies by deny.toml: licences, banned crates, sources, and known vulnerabilities.

With cargo-deny installed, it does all of it. Without, this script checks licences, bans and sources itself, from what
Cargo says of the locked packages, and reports that vulnerabilities were not looked up. A vulnerability database that cannot be
reached is reported too, and is no failure; everything that was looked at and found wrong is.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def with_cargo_deny():
    """True if the audit passes. Advisories come last and alone, so that no network means no more than that."""
    passed = subprocess.run(["cargo", "deny", "check", "licenses", "bans", "sources"], cwd=ROOT).returncode == 0
    looked_up = subprocess.run(["cargo", "deny", "check", "advisories"], cwd=ROOT, capture_output=True, text=True)
    unreachable = looked_up.returncode != 0 and re.search(r"failed to (fetch|clone|acquire|load|open).*(advisory|db|database)", looked_up.stderr)
    if unreachable:
        print("audit: vulnerabilities NOT looked up: the advisory database cannot be reached")
        return passed
    print(looked_up.stderr, end="")
    return passed and looked_up.returncode == 0


def allowed(expression, licences):
    """Whether an SPDX expression can be met with the given licences; `/` is the old way to write OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))
    words = {"OR": "or", "AND": "and", "(": "(", ")": ")"}
    # Every token becomes one of six words, so that nothing of the expression itself is evaluated.
    return eval(" ".join(words.get(token) or str(token in licences) for token in tokens))


def without_cargo_deny():
    try:
        import tomllib
    except ImportError:
        print("audit: NOT done: neither cargo-deny nor a Python with tomllib (3.11) is here")
        return True
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    output = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    packages = [package for package in json.loads(output.stdout)["packages"] if package["source"]]
    general = set(rules["licenses"]["allow"])
    special = {rule["crate"]: set(rule["allow"]) for rule in rules["licenses"]["exceptions"]}
    banned = {rule["crate"] for rule in rules["bans"]["deny"]}
    wrong = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if not allowed(package["license"] or "none", general | special.get(package["name"], set())):
            wrong.append(f"{name}: licence {package['license']}")
        if package["name"] in banned:
            wrong.append(f"{name}: banned")
        if package["source"] != REGISTRY:
            wrong.append(f"{name}: from {package['source']}")
    for line in wrong:
        print(f"audit: {line}")
    print(f"audit: licences, bans and sources of {len(packages)} packages: {len(wrong)} wrong")
    print("audit: vulnerabilities NOT looked up: cargo-deny is not available (cargo install --locked cargo-deny)")
    return not wrong


if __name__ == "__main__":
    sys.exit(0 if (with_cargo_deny if shutil.which("cargo-deny") else without_cargo_deny)() else 1)
