"""The pages of all.py's results: Markdown, and one self-contained file of HTML."""

import math
from html import escape

NOT_FOR_PUBLICATION = "A quick run: short settings, perhaps next to other work. Its figures are for trying things, not for publication."
# Ratios from here to 1 count as equal: a hundredth rounds them to 1.
EQUAL = 0.995
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: left; vertical-align: top; }
td.figure { text-align: right; white-space: nowrap; }
.behind { font-weight: bold; }
.note { background: #fff3c4; padding: .5rem 1rem; color: #222; }
code { overflow-wrap: anywhere; }
svg text { font: 13px system-ui, sans-serif; fill: currentColor; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b; } th, td { border-color: #444; } }
"""


def figure(value, unit):
    """A figure with its unit, to three or four digits."""
    if value is None:
        return ""
    for name, scales in [
        ("s", [(1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]),
        ("B", [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes")]),
    ]:
        if unit == name:
            scale, unit = next(((scale, words) for scale, words in scales if abs(value) >= scale), scales[-1])
            value /= scale
            break
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{'/s' if unit == '1/s' else f' {unit}'}"


def best_peer(row):
    """The best of the peers' figures with its name, or None."""
    choose = max if row["better"] == "more" else min
    return choose(row["others"].items(), key=lambda item: item[1], default=None)


def times(row):
    """How many times as good as the best peer's ours is: above 1 is ahead. None if there is no peer."""
    best = best_peer(row)
    if best is None or not row["ours"] or not best[1]:
        return None
    return row["ours"] / best[1] if row["better"] == "more" else best[1] / row["ours"]


def times_text(row):
    """The ratio in words for a cell."""
    ratio = times(row)
    return "" if ratio is None else f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.1f}"


def headline(entry):
    """The most important row of a comparison, or None."""
    key = entry["headline"]
    return next((row for row in entry["rows"] if row["key"] == key or row["key"].endswith(f"/{key}")), None)


def behind(entry):
    """The rows in which the best peer is ahead by a half per cent or more, the farthest first."""
    return sorted((row for row in entry["rows"] if (times(row) or 1) < EQUAL), key=times)


def machine(results):
    """The machine in one line."""
    found = results["machine"]
    wide = ", AVX-512 IFMA" if "avx512ifma" in found["simd"] else ", AVX2" if "avx2" in found["simd"] else ""
    return f"{found['cpu'] or found['arch']}{wide}, {found['cores']} cores, {found['memory_bytes'] / 2**30:.0f} GiB, {found['os']}"


def summary(results):
    """A line for each comparison, for a terminal."""
    lines = []
    for entry in results["results"]:
        row = headline(entry)
        text = f"{row['what']}: {times_text(row)} times as good as {best_peer(row)[0]}" if row and times(row) else entry["why"] or entry["state"]
        lines.append(f"{entry['name']:24} {text}")
    return "\n".join(lines)


def _summary_rows(results):
    for entry in results["results"]:
        row = headline(entry)
        best = best_peer(row) if row else None
        if best:
            cells = [entry["name"], row["what"], f"{best[0]}{', quoted' if row['quoted'] else ''}", figure(best[1], row["unit"])]
            yield entry, [*cells, figure(row["ours"], row["unit"]), times_text(row)]
        else:
            yield entry, [entry["name"], f"{entry['state']}: {entry['why']}" if entry["why"] else entry["title"], "", "", "", ""]


HEADS = ["comparison", "what", "best peer", "the peer's", "ours", "times as good"]


def _rows(entry):
    """The head and the cells of a comparison's table."""
    names = list(dict.fromkeys(name for row in entry["rows"] for name in row["others"]))
    yield ["", entry["ours"], *names, "times as good as the best"]
    for row in entry["rows"]:
        others = [figure(row["others"].get(name), row["unit"]) for name in names]
        yield [row["what"], figure(row["ours"], row["unit"]), *others, times_text(row)]


def _facts(entry):
    """What is said of a comparison above its table."""
    if entry["peers"]:
        yield f"Peers: {', '.join(entry['peers'])}."
    yield f"Checked before it is timed: {entry['checked']}"
    if entry.get("note"):
        yield entry["note"]
    if entry["state"] != "measured":
        yield f"State: {entry['state']}. {entry['why']}"


def _table(head, rows):
    rows = [head, *rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def markdown(results):
    """All figures as Markdown."""
    parts = ["# Comparisons with other projects", f"{machine(results)}; {results['started'][:10]}; arbor {results['versions']['arbor']}, {results['versions']['commit']}."]
    if results["settings"]["quick"]:
        parts.append(f"**{NOT_FOR_PUBLICATION}**")
    parts.append('"Times as good" compares ours with the best peer in the same run: above 1 we are ahead, below 1 behind.')
    parts.append(_table(HEADS, [cells for _, cells in _summary_rows(results)]))
    for entry in results["results"]:
        parts += [f"## {entry['title']}", f"`{entry['command']}`", "\n".join(_facts(entry))]
        if entry["rows"]:
            head, *rows = _rows(entry)
            parts.append(_table(head, rows))
    return "\n\n".join(parts) + "\n"


def _html_table(rows):
    head, *rows = rows
    cells = lambda row, tag: "".join(f"<{tag}{' class=figure' if at and tag == 'td' else ''}>{escape(cell)}</{tag}>" for at, cell in enumerate(row))
    body = "".join(f"<tr>{cells(row, 'td')}</tr>\n" for row in rows)
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>\n{body}</tbody></table>"


def _bars(results):
    """Headline ratios as bars whose lengths are logarithms; the line is where both are equal."""
    found = [(entry["name"], times(row)) for entry in results["results"] if (row := headline(entry)) and times(row)]
    if not found:
        return ""
    zero, scale, step = 420, 160, 26
    marks = []
    for place, (name, ratio) in enumerate(found):
        length, top = math.log10(ratio) * scale, place * step
        left, colour = min(zero, zero + length), "#2a7" if ratio >= 1 else "#c53"
        marks.append(
            f'<text x="0" y="{top + 17}">{escape(name)}</text>'
            f'<rect x="{left:.1f}" y="{top + 4}" width="{max(abs(length), 1):.1f}" height="18" fill="{colour}"/>'
            f'<text x="{max(zero, zero + length) + 6:.1f}" y="{top + 17}">{ratio:,.2f}</text>'
        )
    height = len(found) * step
    line = f'<line x1="{zero}" x2="{zero}" y1="0" y2="{height}" stroke="currentColor"/>'
    return f'<svg viewBox="0 0 860 {height}" role="img" aria-label="times as good as the best peer">{line}{"".join(marks)}</svg>'


def html(results):
    """All figures as one page without scripts, which asks for nothing from a network."""
    parts = ["<h1>Comparisons with other projects</h1>", f"<p>{escape(machine(results))}; {results['started'][:10]}</p>"]
    if results["settings"]["quick"]:
        parts.append(f'<p class="note">{NOT_FOR_PUBLICATION}</p>')
    parts.append("<p>How many times as good ours is as the best peer in the same run. The scale is logarithmic; at the line both are equal.</p>")
    parts += [_bars(results), _html_table([HEADS, *(cells for _, cells in _summary_rows(results))])]
    for entry in results["results"]:
        parts.append(f"<h2>{escape(entry['title'])}</h2><p><code>{escape(entry['command'])}</code></p>")
        parts += [f"<p>{escape(fact)}</p>" for fact in _facts(entry)]
        if entry["rows"]:
            parts.append(_html_table(list(_rows(entry))))
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Comparisons</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'
