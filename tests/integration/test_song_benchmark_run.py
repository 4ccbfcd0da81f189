"""`scripts/bench song` from its beginning to its tables, with next to no music."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.song import __main__ as command
from benchmarks.song import costs, recognisers, scorer, whole

pytestmark = [pytest.mark.long, pytest.mark.slow]
SEED, TRACKS = 31, 15
LITTLE = costs.Sizes(hours=0.2, many_hours=0.5, questions=2, titles=500, searches=20)


def lines(text: str, name: str) -> list[list[str]]:
    found = [line for line in text.splitlines() if line.startswith(f"| {name}")]
    return [[cell.strip() for cell in line.split("|")[2:-1]] for line in found]


def test_one_command_makes_sets_scores_both_and_prints_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(whole, "REDUCED_SHARE", 0.3)
    monkeypatch.setattr(costs, "REDUCED", LITTLE)
    given = ["--seeds", str(SEED), "--tracks", str(TRACKS), "--each", "1", "--reduced"]
    command.main([*given, "--folder", str(tmp_path)])
    text = capsys.readouterr().out

    ours, peers = lines(text, "all 44 conditions")
    by_length = [float(one) for one in ours[0].split(", ")]
    assert len(by_length) == 3
    assert min(by_length) > 50
    assert by_length[1] > float(peers[0].split(", ")[1])  # of 5 s
    assert lines(text, "ten containers")[0][0] == "100"
    assert lines(text, "another song for a snippet")[0][0].startswith("0 of ")
    assert [row[1] for row in lines(text, "fingerprint alone")] == ["1,500 x"]
    [[searched, _]] = lines(text, "search by name in 500 titles")
    assert re.fullmatch(r"20 of 20 found, .* ms CPU, 95th percentile .*, worst [\d.]+", searched)

    folder = tmp_path / f"song-{SEED}-{TRACKS}-reduced"
    for who in recognisers.RECOGNISERS:
        rows = scorer.load(folder / f"rows-{who}.jsonl")
        told = [row.basis is not None for row in rows if row.inside and row.first is not None]
        assert set(told) == {who == "polymux"}
    assert json.loads((tmp_path / "song-costs-reduced.json").read_text())["text"]["missed"] == []
