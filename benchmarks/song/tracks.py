"""Tracks: plans, some of which are related, and their sound."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.song.band import Seeds, mix
from benchmarks.song.signals import (
    RATE_HZ,
    Sound,
    compressed,
    decibels,
    generator,
    noise,
    peaked,
    power,
    room,
    spectrum_filter,
    uneven,
)
from benchmarks.song.styles import STYLES, WITH_DRUMS, assemble

RELATIONS = ("sibling", "live", "loop", "remaster", "edit")


@dataclass(frozen=True)
class Plan:
    """The plan of a track.

    Attributes:
        name: Unique name within the set.
        style: Key of `styles.STYLES`.
        seconds: Length.
        channels: 1 or 2.
        seeds: Seeds of the track.
        relation: `song`, or its relation to the partner: one of RELATIONS.
        partner: Name of the related track.
        inside: Whether it is in the index.
    """

    name: str
    style: str
    seconds: float
    channels: int
    seeds: Seeds
    relation: str = "song"
    partner: str = ""
    inside: bool = True


def plan(seed: int, number: int, name: str, *, inside: bool, style: str = "") -> Plan:
    """Return a plan for an unrelated track."""
    random = generator(seed, "plan", number)
    drawn = [int(word) for word in random.integers(1, 1 << 31, 5)]
    return Plan(
        name,
        style or list(STYLES)[number % len(STYLES)],
        float(np.round(random.uniform(60, 120), 1)),
        int(random.choice([1, 2, 2])),
        Seeds(*drawn),
        inside=inside,
    )


def related(partner: Plan, relation: str, number: int, name: str, *, inside: bool) -> Plan:
    """Return a plan for a track related to `partner`.

    Args:
        partner: The other track.
        relation: `sibling` has the same drums on the same grid with another song; `live` is the
            same song played again; `remaster` and `edit` are the same recording, changed.
        number: Distinguishes related tracks.
        name: Unique name within the set.
        inside: Whether it is in the index.
    """
    random = generator(partner.seeds.take, relation, number)
    drawn = [int(word) for word in random.integers(1, 1 << 31, 5)]
    seeds = partner.seeds
    if relation == "sibling":
        seeds = replace(seeds, score=drawn[0], sound=drawn[1], take=drawn[2])
    elif relation == "live":
        seeds = replace(seeds, kit=drawn[0], take=drawn[1])
    seconds = float(np.round(random.uniform(60, 120), 1))
    return replace(
        partner,
        name=name,
        seconds=partner.seconds if relation in {"remaster", "edit"} else seconds,
        seeds=replace(seeds, take=drawn[3]) if relation in {"remaster", "edit"} else seeds,
        relation=relation,
        partner=partner.name,
        inside=inside,
    )


def over_loop(partner: Plan, number: int, name: str, *, inside: bool) -> Plan:
    """Return a plan for another song with the partner's loop."""
    random = generator(partner.seeds.loop, "loop", number)
    drawn = [int(word) for word in random.integers(1, 1 << 31, 5)]
    return replace(
        partner,
        name=name,
        seconds=float(np.round(random.uniform(60, 120), 1)),
        seeds=replace(Seeds(*drawn), loop=partner.seeds.loop),
        relation="loop",
        partner=partner.name,
        inside=inside,
    )


def drawn_up(seed: int, tracks: int, share: float = 1.0) -> list[Plan]:
    """Return the plans of a set: the tracks of the index, and those outside it.

    A twentieth of the index has each relation. There are also tracks outside it: unrelated songs,
    a fifth of the index's number; and siblings, live versions and songs over a loop, a fifteenth
    each. Their partners are inside.

    Args:
        seed: Seed of all plans.
        tracks: Tracks in the index, including related ones; at least 15.
        share: Share of the normal track length of 60 to 120 s.

    Raises:
        ValueError: Too few tracks.
    """
    each = max(tracks // 20, 1)
    count = tracks - each * len(RELATIONS)
    if count < 10:
        raise ValueError(f"tracks: too few for ten styles (got {tracks}, minimum 15)")
    songs = [plan(seed, number, f"song-{number:04}", inside=True) for number in range(count)]
    looped = looping(seed, each)
    found = [*songs, *relatives(songs, looped), *held_out(songs, looped, max(tracks // 15, 2))]
    found += [
        plan(seed, 100_000 + number, f"other-{number:04}", inside=False)
        for number in range(max(tracks // 5, 10))
    ]
    return [replace(one, seconds=round(one.seconds * share, 1)) for one in found]


def relatives(songs: list[Plan], looped: list[Plan]) -> list[Plan]:
    """Return the related tracks of the index: as many of each relation as there are songs over
    loops."""
    beats = [one for one in songs if one.style in WITH_DRUMS]
    played = [one for one in songs if one.style != "drums only"]
    found = []
    for number, over in enumerate(looped):
        partners = {
            "sibling": beats[number % len(beats)],
            "live": played[-1 - number % len(played)],
            "remaster": songs[number * 3 % len(songs)],
            "edit": songs[(number * 3 + 1) % len(songs)],
        }
        found += [
            related(partner, relation, number, f"{relation}-{number:04}", inside=True)
            for relation, partner in partners.items()
        ]
        found.append(over)
    return found


def held_out(songs: list[Plan], looped: list[Plan], count: int) -> list[Plan]:
    """Return `count` siblings, live versions and songs over loops each, outside the index."""
    beats = [one for one in songs if one.style in WITH_DRUMS]
    played = [one for one in songs if one.style != "drums only"]
    found = []
    for number in range(count):
        partners = {
            "sibling": beats[(len(looped) + number) % len(beats)],
            "live": played[number % len(played)],
        }
        own = 1000 + number  # numbers that related tracks inside do not use
        found += [
            related(partner, relation, own, f"outside-{relation}-{number:04}", inside=False)
            for relation, partner in partners.items()
        ]
        over = looped[number % len(looped)]
        found.append(over_loop(over, own, f"outside-loop-{number:04}", inside=False))
    return found


def looping(seed: int, count: int) -> list[Plan]:
    """Return songs over drum loops; two songs share each loop."""
    found: list[Plan] = []
    for number in range(count):
        style = WITH_DRUMS[number // 2 % len(WITH_DRUMS)]
        fresh = plan(seed, 200_000 + number, f"loop-{number:04}", inside=True, style=style)
        if number % 2:
            found.append(over_loop(found[-1], number, fresh.name, inside=True))
            continue
        loop = int(generator(seed, "loop", number).integers(1, 1 << 31))
        found.append(replace(fresh, seeds=replace(fresh.seeds, loop=loop), relation="loop"))
    return found


def render(track: Plan) -> Sound:
    """Return the sound of a track that is not a remaster or an edit.

    Returns:
        Shape (channels, frames), peaks near full scale.
    """
    band, parts = assemble(track.style, track.seeds, track.seconds, live=track.relation == "live")
    random = generator(track.seeds.sound, "desk")
    total = mix(parts, track.channels)
    del parts
    total = spectrum_filter(total, uneven(random, 1.5))
    if track.relation == "live":
        total = on_stage(track, total)
    total = peaked(total, 1.0)
    hard = float(random.uniform(0.8, 2.2))
    total = np.tanh(total * np.float32(hard)).astype(np.float32)
    fade = band.frames - RATE_HZ // 2
    total[:, fade:] *= np.linspace(1.0, 0.0, band.frames - fade, dtype=np.float32)
    return peaked(total, decibels(-float(random.uniform(0.3, 4.0))))


def on_stage(track: Plan, total: Sound) -> Sound:
    """Simulate a concert hall: its echoes, different levels of the frequency bands, and the
    audience."""
    random = generator(track.seeds.take, "stage")
    decay, direct = float(random.uniform(0.5, 1.3)), float(random.uniform(2.0, 8.0))
    total = np.stack([room(random, channel, decay, direct) for channel in total])
    total = spectrum_filter(total, uneven(random, 4.0))
    people = noise(random, total.shape[1], 4.0)
    swell = np.interp(
        np.arange(total.shape[1]), np.arange(0, total.shape[1] + RATE_HZ, RATE_HZ * 4),
        random.uniform(0.2, 1.0, len(range(0, total.shape[1] + RATE_HZ, RATE_HZ * 4))),
    )  # fmt: skip
    loud = np.float32(np.sqrt(power(total)) * decibels(-30.0))
    return total + people * swell.astype(np.float32) * loud


def remastered(track: Plan, master: Sound) -> Sound:
    """Return the same recording with another equalization, less dynamics and another level."""
    random = generator(track.seeds.take, "remaster")
    changed = spectrum_filter(master, uneven(random, 3.0))
    changed = compressed(changed, float(random.uniform(-26, -16)), float(random.uniform(2, 5)))
    loud = peaked(changed, float(random.uniform(1.0, 2.0)))
    return peaked(np.tanh(loud).astype(np.float32), decibels(-float(random.uniform(0.1, 6.0))))


def edited(random: np.random.Generator, master: Sound) -> Sound:
    """Cut the recording into pieces of 8 to 20 s, and return most of them in another order."""
    frames = master.shape[-1]
    cuts = [0]
    while frames - cuts[-1] > 20 * RATE_HZ:
        cuts.append(cuts[-1] + int(random.uniform(8, 20) * RATE_HZ))
    pieces = [master[..., a:b] for a, b in zip(cuts, [*cuts[1:], frames], strict=True)]
    order = [int(place) for place in random.permutation(len(pieces))]
    keep = order[: max(2, int(len(order) * 0.8))]
    seam = RATE_HZ // 50
    rise = np.linspace(0.0, 1.0, seam, dtype=np.float32)
    result = pieces[keep[0]].copy()
    for place in keep[1:]:
        following = pieces[place].copy()
        following[..., :seam] *= rise
        following[..., :seam] += result[..., -seam:] * rise[::-1]
        result = np.concatenate([result[..., :-seam], following], axis=-1)
    return result
