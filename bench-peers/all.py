#!/usr/bin/env python3
"""Runs every comparison with other projects, one after another, and writes results/MACHINE/DATE.json, .md and .html.

    bench-peers/all.py [--quick] [--only NAME,...] [--chain DIR]... [--out results]

Each comparison checks that both sides have equal results before it times them. A peer that cannot be built, a comparison that
fails and one that takes too long become entries that say why; the others go on. The files are written after each comparison, and
a second run on the same day replaces only what it ran. `--quick` is for trying things: its figures are not for publication, and
its files are DATE-quick. `--list` lists the comparisons. Linux only.
"""

import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure
import pages
import peers
from comparisons import ALL
from sides import REPOSITORY

HERE = Path(__file__).resolve().parent
CHAINS = ["synthetic-uniswap-2500", "coregeth-foundation-condense-2"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--quick", action="store_true", help="short settings, for trying things")
    parser.add_argument("--only", type=names, metavar="NAME,...", help="these comparisons alone")
    parser.add_argument("--chain", action="append", default=[], metavar="DIR", help="a folder with a chain and its genesis; may be repeated")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results", help="folder for the results")
    parser.add_argument("--no-build", action="store_true", help="leave out what is not built yet")
    parser.add_argument("--list", action="store_true", help="list the comparisons, and run nothing")
    arguments = parser.parse_args()
    unknown = set(arguments.only or []) - {comparison.name for comparison in ALL}
    if unknown:
        parser.error(f"no such comparison: {', '.join(sorted(unknown))}; --list lists them")
    return arguments


def without_paths(text):
    """A message without the folders of this machine."""
    return re.sub(r"(?<![\w.])/(?:[^\s/:'\"]+/)+", "", text)


def folder_name(machine):
    """The machine as the name of a folder: processor, cores, memory, kernel."""
    cpu = re.sub(r"\((R|TM)\)|\bCPU\b|\bProcessor\b|@.*", "", machine["cpu"] or machine["arch"])
    words = f"{cpu} {machine['cores']} cores {machine['memory_bytes'] / 2**30:.0f} GiB {machine['os']}"
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")


def this_machine():
    """The machine, with no more of the kernel's version than its first two numbers: the rest may name who built it."""
    machine = measure.machine()
    return machine | {"os": re.match(r"\w+ \d+\.\d+", machine["os"]).group()}


def versions(arbor):
    """What `arbor --version` says of itself, as far as it is built."""
    try:
        said = subprocess.run([arbor, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {"arbor": None, "commit": None, "rustc": None}
    fields = dict(line.split(maxsplit=1) for line in said.splitlines() if " " in line)
    return {"arbor": fields["arbor"], "commit": fields.get("commit"), "rustc": fields.get("compiler")}


class Chains:
    """The chains that comparisons replay: named ones, those of the test data, or a generated one."""

    def __init__(self, arguments, arbor, workplace):
        self.arbor, self.workplace, self.quick = arbor, Path(workplace), arguments.quick
        data = Path(os.environ.get("ARBOR_TESTDATA") or REPOSITORY.parent / "shared") / "data/chains"
        known = [data / name for name in CHAINS]
        self.folders = [Path(folder).resolve() for folder in arguments.chain]
        if not self.folders and not self.quick:
            self.folders = [folder for folder in known if folder.is_dir()]

    def all(self):
        """At least one folder; generates a chain if there is none."""
        if not self.folders:
            folder = self.workplace / "demo-chain"
            command = [self.arbor, "generate", "--preset", "demo", "--out", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self.folders = [folder]
        return [str(folder) for folder in self.folders]


def filled(words, arbor, chains, workplace):
    """A command with its placeholders replaced."""
    places = {"REPORT": [str(workplace / "report.json")], "OUT": [str(workplace / "out")]}
    for word in words:
        if word == "ARBOR":
            yield str(arbor)
        elif word == "CHAINS":
            yield from chains.all()
        elif word == "CHAIN":
            yield chains.all()[0]
        elif word.endswith(".py"):
            yield from [sys.executable, str(HERE / word)]
        else:
            yield from places.get(word, [word])


def shown(words, chains):
    """The command for a reader: chains by their names, and without the file of figures."""
    names = [folder.name for folder in chains.folders] or ["CHAIN"]
    places = {"ARBOR": "arbor", "CHAIN": names[0], "CHAINS": " ".join(names)}
    text = " ".join(places.get(word, word) for word in words).replace(" --report REPORT", "")
    return f"bench-peers/{text}" if words[0].endswith(".py") else text


def stop(process):
    """Ends a process and its children: first so that scripts remove their folders, then by force."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_limited(command, log, limit):
    """Runs a command with its output in a file; returns its exit status, or None after `limit` seconds."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True)
        try:
            return process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                stop(process)


def last_lines(log, count=2):
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return without_paths(" ".join(lines[-count:]))[-400:] or "it printed nothing"


def attempt(comparison, words, limit, arbor, chains):
    """Runs a comparison; returns its state, the reason if it has no figures, and its rows."""
    with tempfile.TemporaryDirectory(prefix="arbor-all-", dir="/var/tmp") as workplace:
        workplace = Path(workplace)
        log, report = workplace / "log", workplace / comparison.report.replace("REPORT", "report.json").replace("OUT", "out")
        try:
            command = list(filled(words, arbor, chains, workplace))
            status = run_limited(command, log, limit)
        except (OSError, subprocess.CalledProcessError) as failure:
            return "failed", without_paths(str(failure)), []
        if status is None:
            return "failed", f"It was stopped after {limit} s, its limit.", []
        # Status 1 with a report says that a goal was missed, which is not a failure of the comparison.
        if not report.is_file():
            return "failed", f"Exit status {status}: {last_lines(log)}", []
        try:
            return "measured", None, comparison.rows(json.loads(report.read_text()))
        except (ValueError, KeyError, TypeError, IndexError) as failure:
            return "failed", f"Its report is not as expected: {failure!r}", []


def entry(comparison, arguments, known, chains, arbor):
    """One comparison's part of the results."""
    words, limit = comparison.quick if arguments.quick else comparison.full, comparison.limits[arguments.quick]
    started, clock = datetime.datetime.now(datetime.timezone.utc), time.monotonic()
    result = {
        "name": comparison.name,
        "title": comparison.title,
        "ours": comparison.ours,
        "peers": [f"{name} {known[name].version}".strip() for name in comparison.peers if not known[name].is_tool],
        "command": shown(words or comparison.full, chains),
        "checked": comparison.checked,
        "headline": comparison.headline,
        "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": versions(arbor),
        "state": "left out",
        "why": "It has no short setting.",
        "rows": [],
    }
    if words is None:
        return result
    for name in ["arbor", *comparison.peers]:
        why = peers.missing(known[name], not arguments.no_build)
        if why is None:
            continue
        why = f"{name}: {without_paths(why)}"
        if name not in comparison.without:
            return result | {"state": "not built", "why": why}
        more, note = comparison.without[name]
        words, result["note"] = [*words, *more], f"{why} {note}"
    state, why, rows = attempt(comparison, words, limit, arbor, chains)
    return result | {"command": shown(words, chains), "state": state, "why": why, "rows": rows, "seconds": round(time.monotonic() - clock, 1)}


def merged(before, entries):
    """Entries in the order of the list; those that did not run now as they were before."""
    found = {each["name"]: each for each in [*before, *entries]}
    return [found[comparison.name] for comparison in ALL if comparison.name in found]


def write(file, results):
    """Writes the figures and both pages, each file as a whole."""
    for suffix, text in [
        (".json", json.dumps(results, indent=1) + "\n"),
        (".md", pages.markdown(results)),
        (".html", pages.html(results)),
    ]:
        path = file.parent / (file.name + suffix)
        new = path.with_suffix(path.suffix + ".new")
        new.write_text(text)
        new.replace(path)


def main():
    measure.require_linux()
    arguments = parse()
    if arguments.list:
        for comparison in ALL:
            print(f"{comparison.name:24} {comparison.title}")
        return 0
    # A process that is told to end must end what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = [comparison for comparison in ALL if not arguments.only or comparison.name in arguments.only]
    machine = this_machine()
    started, clock = datetime.datetime.now(datetime.timezone.utc), time.monotonic()
    folder = arguments.out / folder_name(machine)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (started.strftime("%Y-%m-%d") + ("-quick" if arguments.quick else ""))
    earlier = folder / f"{file.name}.json"
    before = json.loads(earlier.read_text())["results"] if earlier.exists() else []
    known, entries = peers.known(), []
    arbor = known["arbor"].places[0]
    with tempfile.TemporaryDirectory(prefix="arbor-chains-", dir="/var/tmp") as workplace:
        chains = Chains(arguments, arbor, workplace)
        for comparison in chosen:
            print(f"{comparison.name}: {comparison.title}", file=sys.stderr, flush=True)
            entries.append(entry(comparison, arguments, known, chains, arbor))
            last = entries[-1]
            print(f"{comparison.name}: {last['state']}{': ' + last['why'] if last['why'] else ''}", file=sys.stderr, flush=True)
            results = {
                "schema": "arboretum/1",
                "command": "bench-peers/all.py",
                "versions": versions(arbor),
                "machine": machine,
                "settings": {"quick": arguments.quick},
                "results": merged(before, entries),
                "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "wall_seconds": round(time.monotonic() - clock, 1),
                "process": None,
            }
            write(file, results)
    print(pages.summary(results))
    print(f"written: {file}.json, .md, .html", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
