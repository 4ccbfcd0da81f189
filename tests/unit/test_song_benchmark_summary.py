"""The tables of `scripts/bench song`, of rows that nobody measured, and what a kept row holds."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.song import containers, report, scorer
from benchmarks.song.basis import Basis, Window
from benchmarks.song.scorer import Row
from benchmarks.song.snippets import LENGTHS_S


def row(
    kind: str, condition: str, seconds: float, *, named: bool, right: bool, score: float = 1.0
) -> Row:
    return Row(kind, condition, seconds, 0, "a", "rock", "a" if named else None, score, "a", right,
               0.0, "")  # fmt: skip


def rows(missed: set[tuple[str, float]], *, wrong: int = 0) -> list[Row]:
    """Two snippets of each condition and length; of those missed one stood first and no more."""
    found = []
    for name in report.TABLE:
        for seconds in LENGTHS_S:
            found.append(row("inside", name, seconds, named=True, right=True))
            refused = (name, seconds) in missed
            found.append(row("inside", name, seconds, named=not refused, right=True))
    found += [row("inside", "speed +4 % and telephone", 5.0, named=False, right=False)]
    found += [row("container", one, 5.0, named=True, right=True) for one in containers.CONTAINERS]
    for kind in scorer.MUST_NOT_MATCH:
        found += [row(kind, "clean", 5.0, named=number < wrong, right=False) for number in range(4)]
    return found


def cells(text: str, name: str) -> list[str]:
    """The cells of the one line that begins so."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {name}")]
    assert len(lines) == 1
    return [cell.strip() for cell in lines[0].split("|")[2:-1]]


def test_seeds_stand_side_by_side_with_mean_and_worst() -> None:
    missed = {("microphone far", 2.0), ("pink 0 dB", 5.0), ("tempo +4 %, same pitch", 5.0)}
    text = report.summary({"seed 1": rows(set()), "seed 2": rows(missed, wrong=1)})
    assert text.startswith("| snippets of the catalogue, % | seed 1 | seed 2 | mean | worst | goal")
    far = cells(text, "microphone far away")
    assert far == ["100, 100, 100", "50, 100, 100", "75, 100, 100", "50, 100, 100", "70, 95, 99"]
    noise = cells(text, "white, pink, babble noise, 0 dB")
    assert noise[1:4] == ["100, 50, 100", "100, 75, 100", "100, 50, 100"]
    assert cells(text, "±4 % tempo")[1] == "75"
    assert cells(text, "±1 semitone")[1] == "100"
    count = len(report.TABLE)
    two, five = (f"{100 * (1 - part / (2 * count)):.1f}" for part in (1, 2))
    assert cells(text, f"all {count} conditions")[1] == f"{two}, {five}, 100"
    assert cells(text, "stood first")[1] == "100, 100, 100"
    assert cells(text, "ten containers")[1] == "100"
    assert cells(text, "other songs |") == ["0 of 4", "1 of 4", "1 of 8", "47.09 %", "0"]
    assert cells(text, "junk and broken")[2] == "1 of 8"
    assert cells(text, "siblings")[-1] == "≤ 8 %"
    inside = 6 * count + 1 + len(containers.CONTAINERS)
    assert cells(text, "another song for a snippet")[2] == f"0 of {2 * inside:,}"


def test_snippets_that_raised_are_told_but_for_broken_ones() -> None:
    fine = row("inside", "clean", 5.0, named=True, right=True)
    assert "raised" not in report.summary({"a": [fine, replace(fine, kind="broken", error="x")]})
    assert "1 snippets that are not broken raised: x" in report.summary(
        {"a": [fine, replace(fine, error="x")]}
    )


@pytest.mark.parametrize(
    ("wrong", "asked", "bound"), [(0, 1242, 0.308), (0, 10, 27.75), (5, 10, 76.34), (0, 0, 100.0)]
)
def test_the_upper_end_of_wilsons_interval(wrong: int, asked: int, bound: float) -> None:
    assert report.at_most(wrong, asked) == pytest.approx(bound, abs=0.01)


BASIS = Basis(0.9, 5.0, "speed", 1.02, 1.02, (3.0, 2.0), (Window(16.0, 0.5, 64, 40),
              Window(-9.0, 0.1, 25, 3)))  # fmt: skip


def test_features_are_what_the_regression_weighs() -> None:
    # 64 peaks are fewer than 13 a second for 5 s; evidence against the song counts as none.
    least = 65.0
    assert BASIS.features() == pytest.approx(
        [1.0, math.log1p(16.0 / math.sqrt(least)), 0.0, 3.0, 2.0, 1.0, math.log(least)]
    )
    assert replace(BASIS, tempo=1.004).features()[5] == 0.0
    assert replace(BASIS, change="tempo").features()[5] == 0.0


def test_rows_are_kept_whole_and_older_ones_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    kept = replace(row("inside", "clean", 5.0, named=True, right=True), basis=BASIS)
    older = row("inside", "clean", 5.0, named=True, right=True)
    scorer.keep([kept, older], path)
    assert scorer.load(path) == [kept, older]
    path.write_text(path.read_text().replace(', "basis": null', ""))
    assert scorer.load(path) == [kept, older]
