"""Tracks: plans of which some are related, and the sound of a plan."""

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
    """What a track is.

    Attributes:
        name: Its own within the set.
        style: A key of `styles.STYLES`.
        seconds: Its length.
        channels: 1 or 2.
        seeds: What decides it.
        relation: `song`, or what it is to its partner: one of RELATIONS.
        partner: The name of the track that it is related to.
        inside: It is in the catalogue.
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
    """A track that is related to no other."""
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
    """A relative of a track.

    Args:
        partner: What it is related to.
        relation: `sibling` has the same drums on the same grid under another song; `live` is the
            same song played again; `remaster` and `edit` are the same recording, changed.
        number: Tells relatives apart.
        name: Its own.
        inside: It is in the catalogue.
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
    """Another song over the loop that the partner has."""
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
    """All tracks of a set: the catalogue of so many, and what is outside of it.

    A twentieth of the catalogue is of each relation. Outside are a fifth as many other songs, and a
    fifteenth as many siblings, live versions and songs over a loop, whose partners are inside.

    Args:
        seed: Decides all of them.
        tracks: In the catalogue, relatives included; at least 15.
        share: Of the length that they would have: 60 to 120 s.

    Raises:
        ValueError: Too few tracks.
    """
    each = max(tracks // 20, 1)
    count = tracks - each * len(RELATIONS)
    if count < 10:
        raise ValueError(f"{tracks} tracks are too few for ten styles and their relatives: 15 do")
    songs = [plan(seed, number, f"song-{number:04}", inside=True) for number in range(count)]
    looped = looping(seed, each)
    found = [*songs, *relatives(songs, looped), *strangers(songs, looped, max(tracks // 15, 2))]
    found += [
        plan(seed, 100_000 + number, f"other-{number:04}", inside=False)
        for number in range(max(tracks // 5, 10))
    ]
    return [replace(one, seconds=round(one.seconds * share, 1)) for one in found]


def relatives(songs: list[Plan], looped: list[Plan]) -> list[Plan]:
    """What the catalogue has beside songs: of each relation as many as there are over loops."""
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


def strangers(songs: list[Plan], looped: list[Plan], count: int) -> list[Plan]:
    """Siblings, live versions and songs over loops that the catalogue lacks, so many of each."""
    beats = [one for one in songs if one.style in WITH_DRUMS]
    played = [one for one in songs if one.style != "drums only"]
    found = []
    for number in range(count):
        partners = {
            "sibling": beats[(len(looped) + number) % len(beats)],
            "live": played[number % len(played)],
        }
        own = 1000 + number  # other relatives than those inside
        found += [
            related(partner, relation, own, f"outside-{relation}-{number:04}", inside=False)
            for relation, partner in partners.items()
        ]
        over = looped[number % len(looped)]
        found.append(over_loop(over, own, f"outside-loop-{number:04}", inside=False))
    return found


def looping(seed: int, count: int) -> list[Plan]:
    """Songs over loops of drums, two and two over the same one."""
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
    """The sound of a track that is no remaster and no edit.

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
    """Played in a hall: its echoes, other levels of the parts' bands, and people."""
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
    """The same recording with other colours, less dynamics and another level."""
    random = generator(track.seeds.take, "remaster")
    changed = spectrum_filter(master, uneven(random, 3.0))
    changed = compressed(changed, float(random.uniform(-26, -16)), float(random.uniform(2, 5)))
    loud = peaked(changed, float(random.uniform(1.0, 2.0)))
    return peaked(np.tanh(loud).astype(np.float32), decibels(-float(random.uniform(0.1, 6.0))))


def edited(random: np.random.Generator, master: Sound) -> Sound:
    """The same recording cut into pieces of 8 to 20 s, of which most come in another order."""
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
