#!/usr/bin/env python3
"""Makes docs/results.md from the figures of a run of bench-peers/all.py.

    scripts/results_page.py [RESULTS.json] [--check]

Without a file the newest in results/ is taken; a quick run only if there is no full one. What the five sources published, and why we
are behind where we are, is in bench-peers/sources.json. `--check` writes nothing and fails if the page is another one.
"""

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "bench-peers"))

import pages  # noqa: E402

PAGE = REPOSITORY / "docs/results.md"
NOT_MEASURED = "not measured in this run"


class Run:
    """The figures of a run, by the names of comparisons and the keys of rows."""

    def __init__(self, results):
        self.results = results
        self.entries = {entry["name"]: entry for entry in results["results"]}

    def row(self, reference):
        """The row of `COMPARISON KEY`; of several chains the first's. None if it was not measured."""
        name, _, key = (reference or "").partition(" ")
        rows = self.entries.get(name, {"rows": []})["rows"]
        return next((row for row in rows if row["key"] == key or row["key"].endswith(f"/{key}") and "/" not in key), None)


def newest():
    """The newest full run, or the newest quick one."""
    found = sorted((REPOSITORY / "results").glob("*/*.json"), key=lambda path: (not path.stem.endswith("-quick"), path.stem, path.parent.name))
    if not found:
        sys.exit("results/ has no figures; bench-peers/all.py makes them")
    return found[-1]


def prose(text):
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)


def command_lines(command):
    """A command, broken where a line of the page ends."""
    return " \\\n".join(textwrap.wrap(command, 116, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def in_words(row):
    """How ours stands to the best peer of the same run."""
    ratio = pages.times(row) if row else None
    if ratio is None:
        return ""
    peer = pages.best_peer(row)[0] + (", quoted" if row["quoted"] else "")
    if row["unit"] in ("s", "1/s"):
        return f"{ratio:.1f} times as fast as {peer}" if ratio >= 1 else f"takes {1 / ratio:.2f} times as long as {peer}"
    return f"{1 / ratio:.2f} of {peer}'s"


def ours(figure, row):
    """Our figure, or a peer's that stands for it, in a cell."""
    if row is None:
        return NOT_MEASURED
    if "peer" not in figure:
        return pages.figure(row["ours"], row["unit"])
    value = row["others"].get(figure["peer"])
    return NOT_MEASURED if value is None else f"{pages.figure(value, row['unit'])} ({figure['peer']})"


def source(number, found, run):
    """The section of one source."""
    rows = []
    for figure in found["figures"]:
        row = run.row(figure["row"])
        published = figure.get("published_text") or pages.figure(figure.get("published"), figure["unit"]) or "none"
        ratio = ""
        if figure.get("same_unit") and row:
            ratio = f"{row['ours'] / figure['published']:.2f}"
        rows.append([figure["what"], published, ours(figure, row), ratio, in_words(run.row(figure.get("next_to")))])
    names = dict.fromkeys(figure["row"].partition(" ")[0] for figure in found["figures"])
    commands = [run.entries[name]["command"] for name in names if name in run.entries]
    parts = [f"## {number}. {found['title']}", prose(f"{found['about']} Details: [{found['page'].split('#')[0]}]({found['page']}).")]
    if commands:
        parts.append("```sh\n" + "\n".join(map(command_lines, commands)) + "\n```")
    parts.append(table(["what", "published", "here", "here by published", "next to a peer, same run"], rows))
    return "\n\n".join(parts)


def summary(run):
    """One row for each comparison that was measured."""
    rows = []
    for entry in run.results["results"]:
        row = pages.headline(entry)
        if entry["state"] == "measured" and row:
            rows.append([entry["title"], row["what"], pages.figure(row["ours"], row["unit"]), in_words(row), str(len(pages.behind(entry)))])
    return table(["comparison", "its main figure", "ours", "next to the best peer", "rows where we are behind"], rows)


def behind_published(run, sources):
    """A table of the published figures in the same unit that are better than ours."""
    rows = []
    for figure in (figure for found in sources for figure in found["figures"] if figure.get("same_unit")):
        row = run.row(figure["row"])
        if row and row["ours"] * pages.EQUAL > figure["published"]:
            cells = [pages.figure(value, row["unit"]) for value in (figure["published"], row["ours"])]
            rows.append([row["what"], *cells, f"{row['ours'] / figure['published']:.2f}"])
    if not rows:
        return "Of the published figures that are ratios or sizes and were measured in this run, none is better than ours."
    words = prose("Published figures that are ratios or sizes, and better than ours. No reason is given where none was looked for.")
    return f"### Published figures\n\n{words}\n\n" + table(["what", "published", "here", "here by published"], rows)


def behind(run, reasons):
    """All rows in which a peer is ahead, by the reason."""
    groups = {}
    for name, entry in run.entries.items():
        for row in pages.behind(entry):
            reason = next((at for at, each in enumerate(reasons) if re.fullmatch(each["rows"], f"{name} {row['key']}")), None)
            groups.setdefault((name if reason is None else "", reason), []).append(row)
    if not groups:
        return "No peer of this run is ahead in any row."
    parts = []
    for (name, at), rows in sorted(groups.items(), key=lambda item: pages.times(item[1][0])):
        reason = {"title": run.entries[name]["title"], "why": "The reason was not looked into.", "page": "measurements.md"} if at is None else reasons[at]
        parts.append(f"### {reason['title']}")
        parts.append(prose(f"{reason['why']} [Details]({reason['page']})."))
        cells = [[row["what"], f"{pages.best_peer(row)[0]}", by_how_much(row)] for row in rows]
        parts.append(table(["what", "ahead is", "ours takes"], cells))
    return "\n\n".join(parts)


def by_how_much(row):
    return f"{1 / pages.times(row):.2f} times as {'long' if row['unit'] in ('s', '1/s') else 'much'}"


def not_measured(run):
    """What has no figures in this run, and why."""
    lines = []
    for entry in run.results["results"]:
        if entry["state"] != "measured":
            lines.append(textwrap.fill(f"- *{entry['title']}* ({entry['state']}): {entry['why']}", 118, subsequent_indent="  ", break_long_words=False))
        elif entry.get("note"):
            lines.append(textwrap.fill(f"- *{entry['title']}*: {entry['note']}", 118, subsequent_indent="  ", break_long_words=False))
    return "\n".join(lines) or "Every comparison was measured."


def page(file, run, data):
    results = run.results
    name = file.resolve().relative_to(REPOSITORY).as_posix()
    quick = results["settings"]["quick"]
    parts = ["# Results", "<!-- Made by scripts/results_page.py. Change bench-peers/sources.json or the run, not this page. -->"]
    parts.append(
        prose(
            "Arboretum measures itself next to other projects: on the same input, on one machine, in turn, and only after the results of both sides "
            "were compared. One command runs all of it, and this page is made from what it writes. It has the figures that five sources published, "
            "ours next to them, and every row in which we are behind."
        )
    )
    parts.append("```sh\ncargo build --release\nbench-peers/all.py          # all comparisons; --list names them\nscripts/results_page.py     # this page\n```")
    if quick:
        parts.append(prose(f"**{pages.NOT_FOR_PUBLICATION} A full run will replace this page.**"))
    parts.append(
        prose(
            f"Machine: {pages.machine(results)}. Date: {results['started'][:10]}. Program: arbor {results['versions']['arbor']}, commit "
            f"{results['versions']['commit']}. All rows: [{Path(name).stem}.md](../{name.removesuffix('.json')}.md)."
        )
    )
    parts += ["## In short", prose("A peer is another project's program in the same run. Figures of the published column are from other machines."), summary(run)]
    parts += [source(number, found, run) for number, found in enumerate(data["sources"], 1)]
    parts += ["## Where we are behind", prose("Every row of this run in which a peer is ahead, with the reason if it is known."), behind(run, data["behind"])]
    parts.append(behind_published(run, data["sources"]))
    parts += ["## Not measured", not_measured(run)]
    parts += [
        "## Details",
        prose(
            "[Measurements](measurements.md) has the project's goals, met and missed, and the pages for each part. [The notebook](notebook/README.md) "
            "has what was tried and rejected."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", metavar="RESULTS.json")
    parser.add_argument("--check", action="store_true", help="fail if docs/results.md is not what would be written")
    arguments = parser.parse_args()
    file = arguments.results or newest()
    run = Run(json.loads(file.read_text()))
    if run.results["schema"] != "arboretum/1":
        sys.exit(f"{file}: the schema is {run.results['schema']}, not arboretum/1")
    text = page(file, run, json.loads((REPOSITORY / "bench-peers/sources.json").read_text()))
    if not arguments.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit("docs/results.md is not what scripts/results_page.py makes of the newest run; run it")


if __name__ == "__main__":
    main()
