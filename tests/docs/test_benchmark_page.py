"""docs/benchmarks.md, its charts and the published results agree."""

from __future__ import annotations

import json
import re
import sys
from xml.etree import ElementTree

import pytest
from support.native_build import ROOT

sys.path.append(str(ROOT))

from benchmarks import publish, verdicts
from benchmarks.charts import CHARTS, Chart, Column

DRAWN = [one for one in CHARTS if one.value is not None]
PAGE = publish.PAGE.read_text("utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def test_tables_are_those_of_the_published_results() -> None:
    assert publish.updated(PAGE) == PAGE, "run: python -m benchmarks.publish"


def test_every_chart_is_on_the_page_once() -> None:
    found = re.findall(r"<!-- chart ([\w-]+): begin -->", PAGE)
    assert sorted(found) == sorted(one.name for one in CHARTS)
    files = {path.stem for path in publish.IMAGES.iterdir()}
    assert files == {one.name for one in DRAWN}


@pytest.mark.parametrize("chart", DRAWN, ids=lambda one: one.name)
def test_charts_are_those_of_the_published_results(chart: Chart) -> None:
    text = (publish.IMAGES / f"{chart.name}.svg").read_text("utf-8")
    assert text == publish.svg(chart), "run: python -m benchmarks.publish"
    picture = ElementTree.fromstring(text)
    description = picture.findtext(f"{SVG}desc") or ""
    assert picture.findtext(f"{SVG}title") == chart.title
    assert all(f"{label}: {one.text}" in description for label, one in publish.bars(chart))
    assert "prefers-color-scheme: dark" in text
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert len(picture.findall(f"{SVG}rect[@class='polymux']")) > 0


def test_numbers_in_the_text_are_published() -> None:
    """Decimal numbers of the prose are in a results file or in the developer notes."""
    prose = re.sub(
        r"<!-- (chart [\w-]+|slower): begin -->.*?<!-- \1: end -->", "", PAGE, flags=re.DOTALL
    )
    prose = re.sub(r"\]\([^)]*\)|`[^`]*`", "", prose)
    known = "".join(path.read_text("utf-8") for path in publish.PUBLISHED.glob("*.json"))
    known += (ROOT / "benchmarks/NOTES.md").read_text("utf-8")
    machine = {"2.5", "6.18", "3.11"}
    numbers = set(re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", prose)) - machine
    # Sizes and versions that say what was done, not what was measured.
    described = {"5.12", "1.5", "44.1"}
    assert {one for one in numbers - described if one not in known} == set()


def test_a_published_table_is_stored_and_read(tmp_path, monkeypatch) -> None:
    markdown = "### one\n\n| client | us |\n| --- | ---: |\n| polymux | 1.5 (1.0-2.0) |\n"
    monkeypatch.setattr(publish, "PUBLISHED", tmp_path)
    publish.write("new", {"date": "2026-01-01"}, publish.tables_of(markdown))
    stored = json.loads((tmp_path / "new.json").read_text("utf-8"))
    assert stored["benchmark"] == "new"
    assert stored["tables"]["one"] == {
        "columns": ["client", "us"],
        "rows": [["polymux", "1.5 (1.0-2.0)"]],
    }


def test_a_benchmark_prints_what_can_be_published() -> None:
    rounds = {
        "polymux": [{"cpu_s": 1.0, "count": 1}, {"cpu_s": 3.0, "count": 1}],
        "peer": [{"error": "not installed"}],
    }
    lines = verdicts.case_table(rounds, list(rounds), [verdicts.CPU], "polymux")
    stored = publish.tables_of("\n".join(["### case (2 rounds)", "", *lines]))["case"]
    assert stored["columns"] == ["client", "CPU, µs each", "times polymux"]
    found = publish.value(stored["rows"][0][1], Column(""))
    assert found is not None
    assert (found.median, found.low, found.high) == (2e6, 1.5e6, 2.5e6)
    assert publish.value(stored["rows"][1][1], Column("")) is None
    assert publish.shown("12.5 (10.0-20.0)", Column("", per_second=True)) == "80,000"
