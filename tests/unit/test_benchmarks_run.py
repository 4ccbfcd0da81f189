"""The benchmarks run and calculate correctly. No test measures time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs import environment

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from benchmarks import contest, verdicts  # noqa: E402 - benchmarks/ is not an installed package

#: Fast cases, and the number of operations that polymux must count in each. Other cases wait for
#: clocks or models.
QUICK = {
    "requests": {"one after another": 100, "64 at once, asyncio": 128, "new TLS connections": 3},
    "streams": {"10 cancelled of 40 streams": 10, "one stream at full speed": 2_000},
    "upload": {"8 MiB in a form": 1},
}


def counts(name: str, *options: str) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--quick", *options], cwd=ROOT, timeout=300,
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads((contest.BUILD / f"{name}-quick.json").read_text())["results"]
    assert all(f"### {title}" in done.stdout for title in results)
    return {title: found["polymux"][0]["count"] for title, found in results.items()}


@pytest.mark.parametrize("name", QUICK)
def test_benchmarks_run(name: str) -> None:
    # Nothing is measured here, so no load on a core is needed.
    only = (f"--only={title}" for title in QUICK[name])
    assert counts(name, "--halting", *only) == QUICK[name]


@pytest.mark.long
@pytest.mark.parametrize("name", QUICK)
def test_every_case_runs(name: str) -> None:
    found = counts(name)
    assert found == found | QUICK[name]
    assert all(found.values())


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("handover", [3, 2]), pytest.param("interrupts", [11], marks=pytest.mark.long)],
)
def test_benchmarks_of_what_is_no_cpu_time_run(name: str, numbers: list[int]) -> None:
    subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--quick"], cwd=ROOT, timeout=300,
        capture_output=True, check=True, env=environment(),
    )  # fmt: skip
    results = json.loads((contest.BUILD / f"{name}-quick.json").read_text())["results"]
    assert [len(case) for case in results.values()] == numbers
    assert all(one["count"] > 0 for case in results.values() for [one] in case.values())


def rounds(*cpu_s: float) -> list[dict[str, float]]:
    return [{"cpu_s": one, "count": 2} for one in cpu_s]


def test_goals_go_by_the_worse_quartile_of_ratios_within_rounds() -> None:
    # In the last round the machine is ten times as slow for both, which leaves the ratio alone.
    found = {"polymux": rounds(1, 2, 1, 10), "peer": rounds(4, 6, 4, 20)}
    ratios = verdicts.Goal("", 3, "peer").found(found)
    assert ratios is not None
    assert (ratios.low, ratios.median, ratios.high) == (2.75, 3.5, 4.0)
    floor = verdicts.Goal("", 0.3, "peer", at_most=True).found(found)
    assert floor is not None
    for most, at_most, met in [(3, False, False), (2.5, False, True),
                               (0.3, True, False), (0.38, True, True)]:  # fmt: skip
        goal = verdicts.Goal("", most, "peer", at_most=at_most)
        assert goal.met(floor if at_most else ratios) is met
    failed = {"polymux": rounds(1), "peer": [{"error": "not installed"}]}
    assert verdicts.Goal("", 1, "peer").found(failed) is None
