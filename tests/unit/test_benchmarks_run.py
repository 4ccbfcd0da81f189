"""The benchmarks run, and their arithmetic is right; no test times anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.programs import environment

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from benchmarks import contest, verdicts  # noqa: E402 - the benchmarks are no package of ours

#: Benchmark to the cases that its tables have, and what one run of polymux must have counted.
QUICK = {
    "requests": {
        "one after another": 100,
        "64 at once, asyncio": 128,
        "100 at once, asyncio": 100,
        "new TLS connections": 3,
    },
    "streams": {
        "40 streams of 10 tokens a second": 400,
        "40 streams of 50 tokens a second": 2_000,
        "20 streams of 10 tokens a second": 200,
        "50 open streams": 50,
        "10 cancelled of 40 streams": 10,
        "one stream at full speed": 2_000,
    },
    "upload": {"8 MiB in a form": 1},
    "server": {
        "300 requests a second": 150,
        "32 connections": 320,
        "20 streams of 50 tokens a second": 500,
        "100 MB behind a wrong key": 2,
        "a flood of wrong keys": 100,
        "a full queue": 20,
        "deadlines of 1 s": 6,
        "callers who leave": 4,
        "callers who leave real engines": 4,
        "4 uploads of 4 MiB": 4,
        "400 mixed requests": 400,
        "start": 1,
        "stopping with 5 open streams": 5,
        "chat, 12 tokens": 12,
        "speech": 1,
    },
}


def quick(name: str) -> tuple[str, dict[str, Any]]:
    """What a quick run of a benchmark printed, and what it kept."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--quick"], cwd=ROOT, capture_output=True,
        text=True, check=False, timeout=300, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((contest.BUILD / f"{name}-quick.json").read_text())


@pytest.mark.parametrize("name", QUICK)
def test_every_benchmark_runs(name: str) -> None:
    said, found = quick(name)
    assert set(found["results"]) == set(QUICK[name])
    for title, count in QUICK[name].items():
        assert f"### {title}" in said
        (measured,) = found["results"][title]["polymux"]
        assert measured["count"] == count
        assert measured["cpu_s"] > 0


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("handover", {"polymux", "polymux, asyncio, ready", "an object of pybind11"}),
        ("interrupts", {"a call", "a stream between two chunks", "an upload", "connecting",
                        "a stream before its head", "looking up a name", "between two tries",
                        "a job between two looks", "a fetch", "a fetch, looking up a name",
                        "time.sleep"}),
    ],
)  # fmt: skip
def test_benchmarks_of_what_is_no_cpu_time_run(name: str, wanted: set[str]) -> None:
    _, found = quick(name)
    [case] = found["results"].values()
    assert set(case) == wanted
    for [measured] in case.values():
        assert measured["count"] > 0
        assert measured.get("worst_s", measured.get("spent_ns")) > 0


def test_a_benchmark_of_imports_says_what_it_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.imports", "--quick"], cwd=ROOT, capture_output=True,
        text=True, check=False, timeout=60, env={**environment(), "PATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert "apt-get install valgrind" in done.stderr


def rounds(*cpu_s: float) -> list[dict[str, float]]:
    return [{"cpu_s": one, "count": 2} for one in cpu_s]


def test_goals_go_by_the_worse_quartile_of_ratios_within_rounds() -> None:
    # The machine is ten times as slow in the last round, for both: the ratio does not see it.
    found = {"polymux": rounds(1, 2, 1, 10), "peer": rounds(4, 6, 4, 20)}
    goal = verdicts.Goal("", 3, "peer")
    ratios = goal.found(found)
    assert ratios is not None
    assert (ratios.low, ratios.median, ratios.high) == (2.75, 3.5, 4.0)
    assert not goal.met(ratios)
    assert verdicts.Goal("", 2.5, "peer").met(ratios)
    floor = verdicts.Goal("", 0.3, "peer", at_most=True)
    of_floor = floor.found(found)
    assert of_floor is not None
    assert of_floor.high == pytest.approx(0.375)
    assert not floor.met(of_floor)
    assert verdicts.Goal("", 0.38, "peer", at_most=True).met(of_floor)


def test_a_row_tells_on_which_side_of_its_goal_a_figure_is() -> None:
    """1.05 beside a goal of 1.05 would say nothing of why it is missed."""
    goals = [verdicts.Goal(what, most, "peer", at_most=True)
             for what, most in (("near", 1.05), ("far", 2.0))]  # fmt: skip
    found = {"polymux": rounds(1.0524), "peer": rounds(1.0)}
    case = contest.Case("a case", ())
    near, far = verdicts.goals_table([(goals, found, case)])[2:]
    assert near == "| a case: near | at most 1.05 | 1.052 | 1.052 (1.052-1.052) | **no** |"
    assert far == "| a case: far | at most 2 | 1.05 | 1.05 (1.05-1.05) | yes |"


def test_a_goal_without_figures_is_none() -> None:
    found = {"polymux": rounds(1), "peer": [{"error": "not installed"}]}
    assert verdicts.Goal("", 1, "peer").found(found) is None
    assert verdicts.Goal("", 1, "absent").found(found) is None


def test_a_peer_that_fails_stays_with_its_reason() -> None:
    python = sys.executable
    peer = contest.Variant("peer", (python, "-c", "raise SystemExit('no such thing')"))
    good = contest.Variant("polymux", (python, "-c", "print('{\"cpu_s\": 1, \"requests\": 2}')"),
                           ours=True)  # fmt: skip
    results = contest.measure([contest.Case("case", (good, peer))], 2)
    assert results["case"]["polymux"] == [{"cpu_s": 1, "count": 2}] * 2
    assert results["case"]["peer"] == [{"error": "no such thing"}]
    lines = verdicts.case_table(results["case"], ["polymux", "peer"], (verdicts.CPU,), "polymux")
    assert lines[2] == "| polymux | 500000.0 | 1.00 (1.00-1.00)x |"
    assert lines[3].startswith("| peer | not measured: no such thing |")
    broken = contest.Variant("polymux", peer.command, ours=True)
    with pytest.raises(SystemExit, match="no such thing"):
        contest.measure([contest.Case("case", (broken,))], 1)


def test_what_is_published_replaces_its_own_part_alone() -> None:
    once = contest.insert("# Benchmarks\n\nText.\n", "requests", "first")
    assert once.count("first") == 1
    assert "## Requests" in once
    twice = contest.insert(f"{once}\n## After\n", "requests", "second")
    assert "first" not in twice
    assert twice.count("second") == 1
    assert twice.startswith("# Benchmarks\n\nText.\n")
    assert twice.endswith("\n## After\n")


@pytest.mark.parametrize(
    "given",
    [["--quick", "--publish"], ["--rounds", "3", "--publish"], ["--only", "x", "--publish"]],
)
def test_nothing_half_measured_is_published(given: list[str]) -> None:
    with pytest.raises(SystemExit):
        contest.arguments("requests", "", given)
