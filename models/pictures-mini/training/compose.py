"""Composes images and captions from a bank of sprites.

Half of the captions name plain shapes ("two red stars on a blue background", "a small green ring in
the top left corner"), half name sprites ("a strawberry", "emoji of a fox", "a cat left of a dog").
Pairs of color and shape, and of count and shape, that `withheld` returns never appear. They test
whether the model follows a prompt or repeats a training image.
"""

from __future__ import annotations

import io
import json
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

COLORS = {
    "red": (220, 40, 40),
    "orange": (245, 140, 30),
    "yellow": (250, 220, 50),
    "green": (50, 165, 70),
    "blue": (45, 95, 215),
    "purple": (130, 60, 175),
    "pink": (245, 140, 185),
    "brown": (125, 80, 45),
    "black": (20, 20, 20),
    "gray": (135, 135, 135),
    "turquoise": (60, 195, 195),
    "white": (255, 255, 255),
}
COLOR_NAMES = list(COLORS)
SHAPES = [
    "circle",
    "square",
    "triangle",
    "star",
    "heart",
    "diamond",
    "hexagon",
    "cross",
    "crescent moon",
    "ring",
    "arrow",
    "oval",
]
COUNTS = {2: ("two", "2"), 3: ("three", "3"), 4: ("four", "4"), 5: ("five", "5")}
PLACES = {
    (-1, -1): "in the top left corner",
    (0, -1): "at the top",
    (1, -1): "in the top right corner",
    (-1, 0): "on the left",
    (0, 0): "in the center",
    (1, 0): "on the right",
    (-1, 1): "in the bottom left corner",
    (0, 1): "at the bottom",
    (1, 1): "in the bottom right corner",
}
# Relative to the center of the image; half of its side is 1.
SPOTS = {
    1: ((0.0, 0.0),),
    2: ((-0.5, 0.0), (0.5, 0.0)),
    3: ((0.0, -0.48), (-0.5, 0.46), (0.5, 0.46)),
    4: ((-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5), (0.5, 0.5)),
    5: ((-0.64, -0.64), (0.64, -0.64), (0.0, 0.0), (-0.64, 0.64), (0.64, 0.64)),
}
SCALES = {2: 0.45, 3: 0.44, 4: 0.43, 5: 0.31}
SLOTS = 5
# Titles of collections, which do not describe the drawing.
NOT_NAMES = {
    "aiga symbol signs",
    "etiquette icons",
    "homes",
    "antenna",
    "lemon theme",
    "advertising",
    "road signs",
    "map symbols",
    "pantyhose",
    "menu collection example",
    "boating rules illustration",
    "capsized sailing illustration",
    "people",
    "head",
    "contour chipmunk",
    "pc connectors",
    "switch cisco",
    "cone alt",
    "various cliparts",
    "w cloud",
    "stick man",
    "hummer",
    "blueman",
}


@dataclass(frozen=True)
class Sprite:
    name: str
    keys: tuple[str, ...]
    source: str  # "shape", "emoji" or "clipart"


def read_bank(folder: Path, word_list: Path, per_name: int = 3) -> tuple[np.ndarray, list[Sprite]]:
    """Return sprites as uint8 [N, 4, 128, 128]: the shapes, all emoji, and some clip art.

    Clip art is used if its name consists of words in `word_list`, a file with one English word per
    line; at most `per_name` drawings for a name.
    """
    words = {line.strip().lower() for line in word_list.read_text(errors="ignore").splitlines()}
    listed: list[dict[str, Any]] = json.loads((folder / "sprites.json").read_text())
    blob = (folder / "sprites.bin").read_bytes()
    seen: dict[str, int] = defaultdict(int)
    pictures, sprites = [], []
    for entry in sorted(
        listed, key=lambda entry: ("shape", "emoji", "clipart").index(entry["src"])
    ):
        name = entry["name"].strip(" -'")
        parts = [word for word in re.split(r"[ -]+", name) if word]
        if entry["src"] == "clipart":
            english = all(word in words or word.rstrip("s") in words for word in parts)
            if (
                entry["bw"]
                or not english
                or name in NOT_NAMES
                or len(parts) > 3
                or seen[name] >= per_name
            ):
                continue
        seen[name] += 1
        data = blob[entry["off"] : entry["off"] + entry["len"]]
        pictures.append(np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")).transpose(2, 0, 1))
        keys = tuple(
            key
            for key in entry["keys"]
            if key and key != name and all(word in words for word in key.split())
        )
        sprites.append(Sprite(name, keys[:5], entry["src"]))
    assert [sprite.name for sprite in sprites[: len(SHAPES)]] == SHAPES
    return np.stack(pictures), sprites


def withheld(seed: int = 34) -> tuple[set[tuple[str, str]], set[tuple[int, str]]]:
    """Return pairs that training never shows: 24 of 144 of color and shape, 8 of 48 of count and
    shape."""
    rng = random.Random(seed)
    colors = {
        (COLOR_NAMES[(i + shift) % 12], SHAPES[i])
        for i in range(12)
        for shift in rng.sample(range(12), 2)
    }
    counts = {(2 + i % 4, shape) for i, shape in enumerate(rng.sample(SHAPES, 8))}
    return colors, counts


def plural(name: str) -> str:
    if name.endswith(("s", "x", "ch", "sh")):
        return name if name.endswith("s") and not name.endswith("ss") else name + "es"
    return name[:-1] + "ies" if re.search(r"[^aeiou]y$", name) else name + "s"


def article(name: str) -> str:
    return ("an " if name[:1] in "aeiou" else "a ") + name


def background_words(rng: random.Random, background: int) -> str:
    """Return the end of a caption; a white background is named in 40 %."""
    color = COLOR_NAMES[background]
    if color == "white" and rng.random() >= 0.4:
        return ""
    return rng.choice(
        (
            f" on a {color} background",
            f" on a {color} background",
            f", {color} background",
            f" on {color}",
        )
    )


@dataclass(frozen=True)
class Slot:
    sprite: int
    scale: float
    x: float
    y: float
    color: int = -1  # of COLOR_NAMES; -1 keeps the sprite's own


@dataclass(frozen=True)
class Plan:
    background: int
    slots: tuple[Slot, ...]
    caption: str


class Composer:
    def __init__(self, sprites: list[Sprite]) -> None:
        self.sprites = sprites
        self.shapes = range(len(SHAPES))
        self.things = range(len(SHAPES), len(sprites))
        self.emoji = [i for i, sprite in enumerate(sprites) if sprite.source == "emoji"]
        self.no_color, self.no_count = withheld()

    def plan(self, rng: random.Random) -> Plan:
        background = 11 if rng.random() < 0.5 else rng.randrange(12)
        make = rng.choices(
            (
                self._shape,
                self._shapes,
                self._two_shapes,
                self._thing,
                self._small_thing,
                self._things,
                self._two_things,
                self._silhouette,
            ),
            (20, 12, 10, 40, 4, 5, 5, 4),
        )[0]
        slots, caption = make(rng, background)
        return Plan(background, tuple(slots), caption + background_words(rng, background))

    def shape_and_color(self, rng: random.Random, background: int) -> tuple[int, int]:
        """Return a shape and a color that differs from the background and is not withheld."""
        while True:
            shape, color = rng.choice(self.shapes), rng.randrange(12)
            if color != background and (COLOR_NAMES[color], SHAPES[shape]) not in self.no_color:
                return shape, color

    def _shape(self, rng: random.Random, background: int) -> tuple[list[Slot], str]:
        shape, color = self.shape_and_color(rng, background)
        size = rng.choice(("", "", "small", "large"))
        place = rng.choice(tuple(PLACES)) if rng.random() < 0.6 else None
        name = f"{size} {COLOR_NAMES[color]} {SHAPES[shape]}".strip()
        if place is None:
            scale = {"": 0.62, "small": 0.34, "large": 0.92}[size] * rng.uniform(0.96, 1.04)
            x, y = (rng.uniform(-0.08, 0.08) for _ in "xy")
            return [Slot(shape, scale, x, y, color)], article(name)
        scale = {"": 0.42, "small": 0.28, "large": 0.58}[size] * rng.uniform(0.97, 1.03)
        x, y = (step * (0.94 - scale) + rng.uniform(-0.03, 0.03) for step in place)
        return [Slot(shape, scale, x, y, color)], f"{article(name)} {PLACES[place]}"

    def _shapes(self, rng: random.Random, background: int) -> tuple[list[Slot], str]:
        while True:
            (shape, color), count = self.shape_and_color(rng, background), rng.randint(2, 5)
            if (count, SHAPES[shape]) not in self.no_count:
                break
        slots = self._spread(rng, shape, count, color)
        return slots, f"{rng.choice(COUNTS[count])} {COLOR_NAMES[color]} {plural(SHAPES[shape])}"

    def _spread(self, rng: random.Random, sprite: int, count: int, color: int) -> list[Slot]:
        scale = SCALES[count] * rng.uniform(0.95, 1.0)
        return [
            Slot(sprite, scale, x + rng.uniform(-0.03, 0.03), y + rng.uniform(-0.03, 0.03), color)
            for x, y in SPOTS[count]
        ]

    def _pair(
        self,
        rng: random.Random,
        one: tuple[int, int],
        other: tuple[int, int],
        names: tuple[str, str],
    ) -> tuple[list[Slot], str]:
        words, x, y = rng.choice(
            (
                ("and", -1, 0), ("next to", -1, 0), ("left of", -1, 0), ("to the left of", -1, 0),
                ("right of", 1, 0), ("to the right of", 1, 0), ("above", 0, -1), ("below", 0, 1),
            )
        )  # fmt: skip
        scale = rng.uniform(0.42, 0.46)
        jitter = [rng.uniform(-0.03, 0.03) for _ in range(4)]
        slots = [
            Slot(one[0], scale, 0.5 * x + jitter[0], 0.5 * y + jitter[1], one[1]),
            Slot(other[0], scale, -0.5 * x + jitter[2], -0.5 * y + jitter[3], other[1]),
        ]
        return slots, f"{article(names[0])} {words} {article(names[1])}"

    def _two_shapes(self, rng: random.Random, background: int) -> tuple[list[Slot], str]:
        one = self.shape_and_color(rng, background)
        other = self.shape_and_color(rng, background)
        names = [f"{COLOR_NAMES[color]} {SHAPES[shape]}" for shape, color in (one, other)]
        return self._pair(rng, one, other, (names[0], names[1]))

    def noun(self, rng: random.Random, sprite: Sprite) -> str:
        """Return a name for a sprite: in a fifth of all cases another than its main one."""
        return rng.choice(sprite.keys) if sprite.keys and rng.random() < 0.2 else sprite.name

    def _thing(self, rng: random.Random, _background: int) -> tuple[list[Slot], str]:
        thing = rng.choice(self.things)
        name = self.noun(rng, self.sprites[thing])
        if self.sprites[thing].source == "emoji":
            form = rng.choice(("{a}", "{a}", "{n}", "{n} emoji", "an emoji of {a}"))
        else:
            form = rng.choice(("{a}", "{a}", "{n}", "clip art of {a}", "a drawing of {a}"))
        place = (rng.uniform(-0.05, 0.05) for _ in "xy")
        return [Slot(thing, rng.uniform(0.88, 0.98), *place)], form.format(a=article(name), n=name)

    def _small_thing(self, rng: random.Random, _background: int) -> tuple[list[Slot], str]:
        thing, place, scale = (
            rng.choice(self.things),
            rng.choice(tuple(PLACES)),
            rng.uniform(0.38, 0.44),
        )
        x, y = (step * (0.94 - scale) + rng.uniform(-0.03, 0.03) for step in place)
        return [Slot(thing, scale, x, y)], f"a small {self.sprites[thing].name} {PLACES[place]}"

    def _things(self, rng: random.Random, _background: int) -> tuple[list[Slot], str]:
        thing, count = rng.choice(self.things), rng.choice((2, 2, 3, 4))
        return self._spread(
            rng, thing, count, -1
        ), f"{rng.choice(COUNTS[count])} {plural(self.sprites[thing].name)}"

    def _two_things(self, rng: random.Random, _background: int) -> tuple[list[Slot], str]:
        one, other = rng.choice(self.things), rng.choice(self.things)
        return self._pair(
            rng, (one, -1), (other, -1), (self.sprites[one].name, self.sprites[other].name)
        )

    def _silhouette(self, rng: random.Random, background: int) -> tuple[list[Slot], str]:
        thing, color = rng.choice(self.emoji), rng.choice([c for c in range(12) if c != background])
        name = self.sprites[thing].name
        form = rng.choice(
            ("a {c} silhouette of {a}", "{a} silhouette in {c}", "silhouette of {a} in {c}")
        )
        return [Slot(thing, rng.uniform(0.85, 0.95), 0.0, 0.0, color)], form.format(
            c=COLOR_NAMES[color], a=article(name)
        )


def packed(plans: list[Plan]) -> dict[str, np.ndarray]:
    """Return plans as arrays without captions, for `Painter.paint`.

    A place is scale, x, y and the angle in radians, clockwise.
    """
    places = np.zeros((len(plans), SLOTS, 4), np.float32)
    sprites = np.full((len(plans), SLOTS), -1, np.int32)
    colors = np.full((len(plans), SLOTS), -1, np.int32)
    for row, plan in enumerate(plans):
        for column, slot in enumerate(plan.slots):
            places[row, column, :3] = slot.scale, slot.x, slot.y
            sprites[row, column], colors[row, column] = slot.sprite, slot.color
    backgrounds = np.array([plan.background for plan in plans], np.int32)
    return {"places": places, "sprites": sprites, "colors": colors, "backgrounds": backgrounds}
