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
from benchmarks.song.band import Band, Seeds
from benchmarks.song.drums import Hit
from benchmarks.song.harmony import Note
from benchmarks.song.scorer import Row
from benchmarks.song.voices import Timbre

SECOND = signals.RATE_HZ


def sine(hz: float, seconds: float = 2.0) -> signals.Sound:
    places = np.arange(int(seconds * SECOND)) / SECOND
    return np.sin(2 * np.pi * hz * places).astype(np.float32)


def loudest_hz(sound: signals.Sound) -> float:
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
    return float(np.argmax(spectrum) * SECOND / len(sound))


@pytest.mark.parametrize("speed", [0.95, 1.0, 1.03, SECOND / 8000])
def test_a_tone_at_another_speed_has_another_pitch(speed: float) -> None:
    played = signals.at_speed(sine(1000.0), speed)
    assert loudest_hz(played) == pytest.approx(1000.0 * speed, abs=1.0)
    assert signals.power(played) == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize("ratio_db", [10.0, 0.0, -5.0])
def test_noise_has_the_power_that_its_ratio_says(ratio_db: float) -> None:
    clean = sine(440.0)
    noise = signals.noise(signals.generator(1), len(clean), 3.0)
    added = signals.mixed_at(clean, noise, ratio_db) - clean
    ratio = signals.power(clean) / signals.power(added)
    assert 10 * math.log10(ratio) == pytest.approx(ratio_db, abs=0.05)


def test_pink_noise_falls_by_three_decibels_an_octave() -> None:
    spectrum = np.abs(np.fft.rfft(signals.noise(signals.generator(2), 20 * SECOND, 3.0))) ** 2
    hz = np.linspace(0, SECOND / 2, len(spectrum))
    low = spectrum[(hz > 200) & (hz < 400)].mean()
    high = spectrum[(hz > 3200) & (hz < 6400)].mean()
    assert 10 * math.log10(low / high) == pytest.approx(12.0, abs=1.0)


def test_a_room_sounds_as_long_as_it_is_told() -> None:
    click = np.zeros(2 * SECOND, np.float32)
    click[0] = 1.0
    heard = signals.room(signals.generator(3), click, 0.8, 0.0)
    assert heard[0] == pytest.approx(1.0, abs=0.05)
    left = np.cumsum(heard[::-1].astype(np.float64) ** 2)[::-1]
    fall_db = 10 * math.log10(left[int(0.1 * SECOND)] / left[int(0.5 * SECOND)])
    assert 30.0 <= fall_db <= 45.0  # 60 dB in 0.8 s, the high frequencies faster


def test_a_moving_filter_that_does_nothing_changes_nothing() -> None:
    sound = signals.noise(signals.generator(4), SECOND)
    same = signals.moving_filter(sound, lambda times, hz: np.ones((len(times), hz.shape[1])))
    assert np.allclose(sound, same, atol=1e-4)


def test_a_wav_comes_back_as_it_was() -> None:
    sound = sine(500.0, 0.5) * np.float32(0.5)
    back = signals.wav_sound(signals.wav_bytes(signals.to_int16(sound)))
    assert np.allclose(sound, back, atol=1 / 32767)


def test_machines_repeat_a_note_to_the_sample_and_people_do_not() -> None:
    notes = [Note(beat, 1.0, 60.0) for beat in (0.0, 4.0)]
    for exact in (True, False):
        band = Band(Seeds(1, 2, 3, 4, 5), 120.0, 4.0, exact=exact)
        played = band.play(notes, Timbre(), "keys")
        bar = round(4 * 60.0 / band.tempo_bpm * SECOND)
        first, second = played[: bar - 1], played[bar : 2 * bar - 1]
        assert np.array_equal(first, second[: len(first)]) is exact
        assert signals.power(second) > 0


def test_a_loop_is_the_same_in_all_songs_over_it() -> None:
    one = Band(Seeds(1, 2, 3, 4, 5, loop=9), 100.0, 12.0, exact=True)
    other = Band(Seeds(6, 7, 8, 9, 10, loop=9), 100.0, 8.0, exact=True)
    length = min(one.frames, other.frames)
    assert np.array_equal(one.loop()[:length], other.loop()[:length])
    bars = round(8 * 60.0 / one.tempo_bpm * SECOND)
    assert np.array_equal(one.loop()[:bars], one.loop()[bars : 2 * bars])


def test_a_kit_belongs_to_its_seed() -> None:
    hits = [Hit(0.0, "snare", 1.0), Hit(1.0, "kick", 1.0)]
    first, same, other = (
        Band(Seeds(song, 1, kit, 1, 1), 120.0, 2.0, exact=True).drums(hits)
        for song, kit in ((1, 1), (2, 1), (1, 2))
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("style", list(styles.STYLES))
def test_every_style_sounds_and_is_the_same_each_time(style: str) -> None:
    plan = replace(tracks.plan(7, 3, "one", inside=True, style=style), seconds=8.0)
    once = tracks.render(plan)
    assert once.shape == (plan.channels, 8 * SECOND)
    assert np.isfinite(once).all()
    assert 0.5 < np.abs(once).max() <= 1.0
    assert 10 * math.log10(signals.power(once)) > -30.0
    assert np.array_equal(once, tracks.render(plan))


def test_plans_have_all_relatives_and_partners_inside() -> None:
    plans = tracks.drawn_up(3, 60)
    inside = {one.name for one in plans if one.inside}
    assert len(inside) == 60
    assert len({one.name for one in plans}) == len(plans)
    assert {one.style for one in plans} == set(styles.STYLES)
    for relation in tracks.RELATIONS:
        assert sum(one.inside and one.relation == relation for one in plans) == 3
    for relation in ("sibling", "live", "loop"):
        strangers = [one for one in plans if not one.inside and one.relation == relation]
        assert len(strangers) == 4
        assert all(one.partner in inside for one in strangers)
    by_name = {one.name: one for one in plans}
    for one in plans:
        partner = by_name.get(one.partner)
        if one.relation == "sibling" and partner:
            assert (one.seeds.kit, one.seeds.groove) == (partner.seeds.kit, partner.seeds.groove)
            assert one.seeds.score != partner.seeds.score
        if one.relation == "live" and partner:
            assert one.seeds.score == partner.seeds.score
            assert one.seeds.take != partner.seeds.take
    assert plans == tracks.drawn_up(3, 60)
    assert plans != tracks.drawn_up(4, 60)


def test_too_few_tracks_are_refused() -> None:
    with pytest.raises(ValueError, match="14 tracks are too few"):
        tracks.drawn_up(1, 14)


def test_an_edit_is_made_of_the_pieces_of_its_recording() -> None:
    master = np.arange(60 * SECOND, dtype=np.float32)[None, :]
    edit = tracks.edited(signals.generator(5), master)[0]
    steps = np.diff(edit)
    assert (steps == 1.0).mean() > 0.98  # all but the seams
    assert (np.abs(steps) > 1.5).any()


def test_tags_are_different_and_in_several_scripts() -> None:
    tags = names.tags(1, 2000)
    assert len({(one.title, one.artist) for one in tags}) == 2000
    together = "".join(one.title for one in tags)
    for some in ("ß", "Ł", "夜", "ж", "ı", "θ", "노"):  # noqa: RUF001 - letters of their languages
        assert some in together


def songs(count: int = 400) -> list[text_queries.Song]:
    return [
        text_queries.Song(str(number), one.title, one.artist)
        for number, one in enumerate(names.tags(1, count))
    ]


def test_queries_are_of_all_kinds_and_expect_the_song_that_they_are_of() -> None:
    known = songs()
    asked = text_queries.queries(1, known, 320)
    assert {one.kind for one in asked} == set(text_queries.KINDS)
    assert asked == text_queries.queries(1, known, 320)
    assert asked != text_queries.queries(2, known, 320)
    by_key = {one.key: one for one in known}
    for query in asked:
        assert query.text.strip()
        assert query.expected
        if query.kind == "exact":
            assert query.text in {by_key[key].title for key in query.expected}
        if query.kind == "no punctuation":
            assert text_queries.sorted_words(query.text) in {
                text_queries.sorted_words(by_key[key].title) for key in query.expected
            } | {
                text_queries.sorted_words(text_queries.bare(by_key[key].title))
                for key in query.expected
            }


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
