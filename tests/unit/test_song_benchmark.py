"""The arithmetic behind the sets of songs: sounds, plans, queries and what a scorer counts."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.song import names, report, scorer, signals, styles, text_queries, tracks
from benchmarks.song.scorer import Row

SECOND = signals.RATE_HZ


def sine(hz: float, seconds: float = 2.0) -> signals.Sound:
    places = np.arange(int(seconds * SECOND)) / SECOND
    return np.sin(2 * np.pi * hz * places).astype(np.float32)


def loudest_hz(sound: signals.Sound) -> float:
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
    return float(np.argmax(spectrum) * SECOND / len(sound))


@pytest.mark.parametrize("speed", [0.95, SECOND / 8000])
def test_a_tone_at_another_speed_has_another_pitch(speed: float) -> None:
    played = signals.at_speed(sine(1000.0), speed)
    assert loudest_hz(played) == pytest.approx(1000.0 * speed, abs=1.0)
    assert signals.power(played) == pytest.approx(0.5, rel=0.03)


def test_noise_has_the_power_that_its_ratio_says() -> None:
    clean = sine(440.0)
    noise = signals.noise(signals.generator(1), len(clean), 3.0)
    added = signals.mixed_at(clean, noise, -5.0) - clean
    ratio = signals.power(clean) / signals.power(added)
    assert 10 * math.log10(ratio) == pytest.approx(-5.0, abs=0.05)


@pytest.mark.parametrize("style", list(styles.STYLES))
def test_every_style_sounds_and_is_the_same_each_time(style: str) -> None:
    plan = replace(tracks.plan(7, 3, "one", inside=True, style=style), seconds=4.0)
    once = tracks.render(plan)
    assert once.shape == (plan.channels, 4 * SECOND)
    assert np.isfinite(once).all()
    assert 0.5 < np.abs(once).max() <= 1.0
    assert 10 * math.log10(signals.power(once)) > -30.0
    assert np.array_equal(once, tracks.render(plan))


def test_plans_have_all_relatives_and_partners_inside() -> None:
    plans = tracks.drawn_up(3, 60)
    inside = {one.name for one in plans if one.inside}
    assert len(inside) == 60
    assert {one.style for one in plans} == set(styles.STYLES)
    for relation in ("sibling", "live", "loop"):
        outside = [one for one in plans if not one.inside and one.relation == relation]
        assert len(outside) == 4
        assert all(one.partner in inside for one in outside)
    assert plans == tracks.drawn_up(3, 60)
    assert plans != tracks.drawn_up(4, 60)


def test_queries_are_of_all_kinds_and_expect_the_song_that_they_are_of() -> None:
    known = [
        text_queries.Song(str(number), one.title, one.artist)
        for number, one in enumerate(names.tags(1, 400))
    ]
    asked = text_queries.queries(1, known, 320)
    assert {one.kind for one in asked} == set(text_queries.KINDS)
    assert asked == text_queries.queries(1, known, 320)
    by_key = {one.key: one for one in known}
    for query in asked:
        assert query.text.strip()
        assert query.expected
        if query.kind == "exact":
            assert query.text in {by_key[key].title for key in query.expected}


def test_typos_change_one_place_and_spare_short_words() -> None:
    random = signals.generator(6)
    typed = [text_queries.mistyped(random, "Silver River") for _ in range(200)]
    assert all(abs(len(one) - len("Silver River")) <= 1 for one in typed)
    assert sum(one != "Silver River" for one in typed) > 190
    assert text_queries.mistyped(random, "Mono") == "Mono"


def row(kind: str, first: str | None, score: float, *, accept: bool, right: bool = False) -> Row:
    song = first if accept else None
    return Row(kind, "clean", 5.0, 0, "a", "rock", song, score, first, right, 0.01, "")


def test_what_is_counted() -> None:
    rows = [
        row("inside", "a", 9.0, accept=True, right=True),
        row("inside", "a", 4.0, accept=False, right=True),
        row("inside", "b", 5.0, accept=True),
        row("inside", None, 0.0, accept=False),
        row("other songs", "b", 6.0, accept=True),
        row("other songs", "b", 1.0, accept=False),
        row("siblings", "b", 8.0, accept=True),
        row("junk", None, 0.0, accept=False),
    ]
    cell = scorer.summed(rows[:4])
    assert (cell.asked, cell.accepted, cell.first, cell.wrong) == (4, 1, 2, 1)
    assert (cell.recall, cell.rank_1) == (25.0, 50.0)
    assert scorer.summed(rows[:4], 3.0).accepted == 2
    assert scorer.false_positives(rows)["other songs"] == (1, 2)
    assert scorer.false_positives(rows, 0.5)["other songs"] == (2, 2)
    least = scorer.zero_false(rows)[5.0]
    assert 6.0 < least < 6.001  # the sibling is spared
    assert scorer.zero_false(rows, ())[5.0] > 8.0
    text = report.whole(rows, {5.0: least})
    assert "| clean | 25 (50) |" in text
    assert "| siblings | 1 | 1 |" in text
    assert report.sweep(rows, [3.0])[-1] == "| 3 | nan / 50.0 / nan | 1 | 1 | 0 | 0 | 1 | 0 |"
