"""Publish results: store them in benchmarks/published/, and update the docs.

``python -m benchmarks.publish`` updates docs/benchmarks.md and its SVG files from
benchmarks/published/*.json. ``scripts/bench NAME --publish`` stores new results first.
"""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.charts import CHARTS, SLOWER, Chart, Column, Row
from benchmarks.measure import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

HELP = "store the results in benchmarks/published/ and update the charts and tables of the docs"
PUBLISHED = ROOT / "benchmarks" / "published"
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images" / "benchmarks"
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_SPREAD = re.compile(r"\((\d[\d,.]*)-(\d[\d,.]*)\)")
_BLOCK = re.compile(r"<!-- chart ([\w-]+): begin -->\n.*?<!-- chart \1: end -->", re.DOTALL)
_SLOWER = re.compile(r"(<!-- slower: begin -->\n).*?(<!-- slower: end -->)", re.DOTALL)
_WIDTH, _LEFT, _BARS, _ROW, _TOP = 800, 280, 390, 26, 66
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.unit { fill: #59636e }
.page { fill: #ffffff }
.other { fill: #8c959f }
.polymux { fill: #0969da }
.ours { font-weight: 600 }
.quartiles { stroke: #1f2328; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.unit { fill: #9198a1 }
.page { fill: #0d1117 }
.other { fill: #656c76 }
.polymux { fill: #4493f8 }
.quartiles { stroke: #f0f6fc }
}
"""


class Value(NamedTuple):
    """A number of a table with its quartiles, if they were recorded."""

    text: str
    median: float
    low: float | None
    high: float | None


def tables_of(markdown: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a benchmark's output by the heading above each.

    A second table below one heading gets its first column's title as its name.
    """
    found: dict[str, dict[str, Any]] = {}
    title, header = "goals", []
    for line in markdown.splitlines():
        if line.startswith("### "):
            title = line.removeprefix("### ").partition(" (")[0].strip()
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not header:
            header = cells
            name = title if title not in found else cells[0]
            found[name] = {"columns": cells, "rows": []}
        elif set("".join(cells)) - set("-: "):
            found[name]["rows"].append(cells)
    return found


def save(name: str, facts: Mapping[str, Any], markdown: str) -> None:
    """Store the results of a benchmark, then update the page and its charts.

    Args:
        name: The benchmark, such as ``requests``.
        facts: Date, machine, rounds, versions and notes.
        markdown: The tables as the benchmark prints them.
    """
    write(name, facts, tables_of(markdown))
    update()


def write(name: str, facts: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    """Write a results file with one row of a table per line."""
    lines = [f'"benchmark": {json.dumps(name)}']
    lines += [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items()]
    parts = []
    for title, table in tables.items():
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in table["rows"])
        columns = json.dumps(table["columns"], ensure_ascii=False)
        head = json.dumps(title, ensure_ascii=False)
        parts.append(f'{head}: {{"columns": {columns}, "rows": [\n{rows}\n]}}')
    lines.append('"tables": {\n' + ",\n".join(parts) + "\n}")
    PUBLISHED.mkdir(exist_ok=True)
    (PUBLISHED / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


@cache
def load(name: str) -> dict[str, Any]:
    """Return a published results file."""
    loaded: dict[str, Any] = json.loads((PUBLISHED / f"{name}.json").read_text("utf-8"))
    return loaded


def number(text: str) -> float:
    """Return a number that may have thousands separators."""
    return float(text.replace(",", ""))


def cell(chart: Chart, row: Row, column: Column) -> str:
    """Return the text of a cell of the published results.

    Raises:
        LookupError: The results have no such table, column or row.
    """
    table = load(chart.results)["tables"][row.table or chart.table]
    if column.source not in table["columns"]:
        return ""
    for cells in table["rows"]:
        if cells[0] == row.name:
            return str(cells[table["columns"].index(column.source)])
    raise LookupError(f"{chart.results}, {row.table or chart.table}: no row {row.name!r}")


def value(text: str, column: Column) -> Value | None:
    """Return the number in a cell as the page shows it."""
    found = _NUMBER.match(text)
    if found is None:
        return None
    median, around = number(found[0]), _SPREAD.search(text)
    low, high = (number(around[1]), number(around[2])) if around else (None, None)
    if column.per_second:
        median = float(f"{1e6 / median:.3g}")
        low, high = (1e6 / high, 1e6 / low) if low and high else (None, None)
        return Value(f"{median:,.0f}", median, low, high)
    return Value(f"{median:,.0f}" if abs(median) >= 1000 else found[0], median, low, high)


def shown(text: str, column: Column) -> str:
    """Return a cell of the page: the median, then the quartiles."""
    found = value(text, column)
    if found is None or column.as_text:
        return text
    around = _SPREAD.search(text)
    if around is None or column.per_second or found.low == found.high:
        return found.text
    return f"{found.text} ({around[1]} to {around[2]})"


def table(chart: Chart) -> list[str]:
    """Return the table of a chart."""
    header = (chart.first, *(one.title or one.source for one in chart.columns))
    lines = [f"| {' | '.join(header)} |", "| --- |" + " ---: |" * len(chart.columns)]
    for row in chart.rows:
        cells = [shown(cell(chart, row, one), one) for one in chart.columns]
        lines.append(f"| {' | '.join((row.label or row.name, *cells))} |")
    return lines


def bars(chart: Chart) -> list[tuple[str, Value]]:
    """Return the labels and values of the bars of a chart."""
    found = []
    for row in chart.rows:
        one = value(cell(chart, row, chart.value), chart.value) if chart.value else None
        if row.bar and one is not None:
            found.append((row.label or row.name, one))
    return found


def svg(chart: Chart) -> str:
    """Return a chart with a horizontal bar for each row, polymux highlighted."""
    drawn = bars(chart)
    height = _TOP + _ROW * len(drawn) + 10
    scale = _BARS / max(one.high or one.median for _, one in drawn)
    description = "; ".join(f"{label}: {one.text}" for label, one in drawn)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(chart.title)}</title>',
        f'<desc id="desc">{escape(f"{chart.unit}. {description}.")}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="12" y="26">{escape(chart.title)}</text>',
        f'<text class="unit" x="12" y="48">{escape(chart.unit)}</text>',
    ]
    for place, (label, one) in enumerate(drawn):
        top = _TOP + _ROW * place
        ours = chart.ours or label.startswith("polymux")
        kind, words = ("polymux", ' class="ours"') if ours else ("other", "")
        width = max(2.0, one.median * scale)
        end = _LEFT + width
        lines.append(f'<text{words} x="{_LEFT - 10}" y="{top + 15}" text-anchor="end">'
                     f"{escape(label)}</text>")  # fmt: skip
        lines.append(
            f'<rect class="{kind}" x="{_LEFT}" y="{top}" width="{width:.1f}" height="20"/>'
        )
        if one.low is not None and one.high is not None and one.high > one.low:
            left, right = (_LEFT + edge * scale for edge in (one.low, one.high))
            lines.append(f'<line class="quartiles" x1="{left:.1f}" y1="{top + 10}" '
                         f'x2="{right:.1f}" y2="{top + 10}"/>')  # fmt: skip
            end = max(end, right)
        lines.append(f'<text{words} x="{end + 8:.1f}" y="{top + 15}">{escape(one.text)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def conditions(name: str) -> str:
    """Return how results were measured, in one paragraph of the page."""
    found = load(name)
    command = found.get("command", f"scripts/bench {name}")
    sentences = [f"Reproduce with `{command}`."]
    if found.get("date"):
        sentences.append(f"Measured on {found['date']}, median of {found['rounds']} rounds.")
    if found.get("versions"):
        versions = (f"{one} {version}" for one, version in found["versions"].items())
        sentences.append(f"Versions: {', '.join(versions)}.")
    return " ".join(sentences)


def block(chart: Chart) -> str:
    """Return the marked part of the page for a chart."""
    lines = [f"<!-- chart {chart.name}: begin -->"]
    if chart.value is not None:
        lines += ["", f"![{chart.title}](images/benchmarks/{chart.name}.svg)"]
    lines += ["", *table(chart), ""]
    if chart.conditions:
        lines += [conditions(chart.results), ""]
    return "\n".join([*lines, f"<!-- chart {chart.name}: end -->"])


def slower() -> str:
    """Return the table of the figures in which polymux is behind."""
    lines = ["| measurement | polymux | better |", "| --- | ---: | --- |"]
    for one in SLOWER:
        chart = Chart("", one.results, one.table, (), ())
        column = Column(one.column)
        ours, theirs = (
            shown(cell(chart, Row(name), column), column) for name in (one.ours, one.other)
        )
        lines.append(f"| {one.what} | {ours} | {one.label or one.other}: {theirs} |")
    return "\n".join(lines)


def updated(page: str) -> str:
    """Return the page with the marked parts made again.

    Raises:
        KeyError: The page marks a chart that charts.py does not have.
    """
    charts = {one.name: one for one in CHARTS}
    page = _BLOCK.sub(lambda match: block(charts[match[1]]), page)
    return _SLOWER.sub(lambda match: f"{match[1]}\n{slower()}\n\n{match[2]}", page)


def update() -> None:
    """Write the tables of the page and the SVG files."""
    load.cache_clear()
    IMAGES.mkdir(parents=True, exist_ok=True)
    for chart in CHARTS:
        if chart.value is not None:
            (IMAGES / f"{chart.name}.svg").write_text(svg(chart), "utf-8")
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    update()
