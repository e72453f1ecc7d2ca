#!/usr/bin/env python3
"""Fetches the public part of the test data with git, and checks it.

    scripts/fetch-testdata.py [--into DIR] [--upstream URL] [--check] [PREFIX...]

testdata/manifest.tsv lists the files: path, form, SHA-256 of the upstream file, repository, commit, path there, licence. Files are put
into DIR (default: the folder that ARBOR_TESTDATA names, else ../shared beside the checkout), where the tests look for them. Files that are there and
have their SHA-256 are left as they are; others are replaced. With PREFIXes, only files whose path begins with one of them are
fetched. The form `gzip` means that the file is packed here. URL precedes the names of the repositories (default: https://github.com/);
a folder with copies of them does, too.

With --check nothing is fetched: files that are not there are counted, and files that differ are listed.

Exit codes: 0 all is there (or, with --check, nothing differs), 1 a file differs or cannot be fetched, 2 the command line is not understood.
"""

import argparse
import collections
import csv
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Row = collections.namedtuple("Row", "path form sha256 repository commit source licence")


def rows(manifest, prefixes):
    with open(manifest, newline="") as file:
        lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(lines)
        found = [Row(*line) for line in lines]
    for row in found:
        if row.form not in ("as it is", "gzip") or Path(row.path).is_absolute() or ".." in Path(row.path).parts:
            sys.exit(f"{manifest}: {row.path}: a file as it is, or gzip, below the folder of the test data is wanted")
    return [row for row in found if not prefixes or row.path.startswith(tuple(prefixes))]


def differs(row, data):
    found = hashlib.sha256(data).hexdigest()
    return None if found == row.sha256 else f"{row.path}: its SHA-256 is {found}, expected {row.sha256}"


def present(row, into):
    """What is wrong with the file that is there; None if nothing is, False if there is no file."""
    path = into / row.path
    if not path.is_file():
        return False
    try:
        data = path.read_bytes()
        return differs(row, gzip.decompress(data) if row.form == "gzip" else data)
    except (OSError, EOFError) as error:
        return f"{row.path}: {error}"


def write(row, data, into):
    path = into / row.path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(gzip.compress(data, mtime=0) if row.form == "gzip" else data)
    part.replace(path)


def fetch(wanted, upstream, into):
    """Fetches the files of one commit; returns what went wrong, a line each."""
    repository, commit = wanted[0].repository, wanted[0].commit
    wrong = []
    with tempfile.TemporaryDirectory() as folder:

        def git(*words):
            return subprocess.run(["git", "-C", folder, *words], capture_output=True)

        git("init", "-q")
        git("remote", "add", "origin", upstream + repository)
        # Without the contents of files, which the checkout fetches all at once, of the wanted ones alone.
        fetched = git("fetch", "-q", "--depth=1", "--filter=blob:none", "origin", commit)
        if fetched.returncode == 0:
            fetched = git("-c", "core.autocrlf=false", "checkout", "-q", commit, "--", *sorted({row.source for row in wanted}))
        if fetched.returncode != 0:
            return [f"{repository} at {commit}: {fetched.stderr.decode(errors='replace').strip()}"]
        for row in wanted:
            data = (Path(folder) / row.source).read_bytes()
            why = differs(row, data)
            if why:
                wrong.append(f"{why}; it is from {row.source} of {repository} at {commit}")
            else:
                write(row, data, into)
    return wrong


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--into", type=Path, default=Path(os.environ.get("ARBOR_TESTDATA") or ROOT.parent / "shared"))
    words.add_argument("--upstream", default="https://github.com/")
    words.add_argument("--manifest", type=Path, default=ROOT / "testdata/manifest.tsv")
    words.add_argument("--check", action="store_true")
    words.add_argument("prefixes", nargs="*", metavar="PREFIX")
    args = words.parse_args()
    listed = rows(args.manifest, args.prefixes)
    if not listed:
        sys.exit(f"no file begins so: {' '.join(args.prefixes)}")
    state = [(row, present(row, args.into)) for row in listed]
    missing = [row for row, found in state if found is not None]
    wrong = [found for _, found in state if found]
    if not args.check:
        for why in wrong:
            print(f"fetched again: {why}")
        wrong = []
        by_commit = collections.defaultdict(list)
        for row in missing:
            by_commit[row.repository, row.commit].append(row)
        for (repository, _), wanted in by_commit.items():
            print(f"{repository}: {len(wanted)} files", flush=True)
            wrong += fetch(wanted, args.upstream.rstrip("/") + "/", args.into)
    for why in wrong:
        print(why, file=sys.stderr)
    there = len(listed) - len(missing)
    if args.check:
        print(f"{there} files are there, {len(missing) - len(wrong)} are not, {len(wrong)} differ")
    elif not wrong:
        print(f"{len(listed)} files are in {args.into}, {there} of them were before")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
