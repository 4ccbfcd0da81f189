"""Composes clips: a shape or an object that moves, grows, shrinks or spins, with a caption.

Every clip has `FRAMES` frames. Movements are linear and use the whole image, so that the caption
and the number of a frame determine where the object is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from compose import COLOR_NAMES, SHAPES, Composer, article, background_words

if TYPE_CHECKING:
    import random

FRAMES = 24
# Words after the name, and an adjective before it.
MOTIONS = {
    "left": (("moving left", "moving to the left", "moving from right to left", "going left"), ""),
    "right": (
        ("moving right", "moving to the right", "moving from left to right", "going right"),
        "",
    ),
    "up": (("moving up", "moving upwards", "going up", "rising"), "rising"),
    "down": (("moving down", "moving downwards", "going down", "falling"), "falling"),
    "grow": (("growing", "getting bigger", "growing larger", "coming closer"), "growing"),
    "shrink": (("shrinking", "getting smaller", "becoming smaller", "moving away"), "shrinking"),
    "spin": (("spinning", "rotating", "turning", "spinning clockwise"), "spinning"),
    "still": (("standing still", "not moving", "at rest"), "still"),
}
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
ROUND = {"circle", "ring"}  # spinning does not change them


@dataclass(frozen=True)
class Clip:
    motion: str
    background: int
    sprite: int
    color: int  # of COLOR_NAMES; -1 keeps the sprite's own
    path: np.ndarray  # [FRAMES, 4]: scale, x, y, angle
    caption: str


def path(motion: str, scale: float, x: float, y: float) -> np.ndarray:
    """Return the places of a clip; (x, y) is its middle, as in `compose.Slot`."""
    time = np.linspace(0, 1, FRAMES)
    places = np.tile(np.array([scale, x, y, 0.0]), (FRAMES, 1))
    if motion in DIRECTIONS:
        reach = 0.98 - scale
        for column, direction in enumerate(DIRECTIONS[motion], 1):
            if direction:
                places[:, column] = direction * reach * (2 * time - 1)
    elif motion in {"grow", "shrink"}:
        places[:, 0] = 0.25 + 0.7 * (time if motion == "grow" else 1 - time)
    elif motion == "spin":
        places[:, 3] = 2 * math.pi * np.arange(FRAMES) / FRAMES
    return places


class ClipComposer:
    def __init__(self, composer: Composer) -> None:
        self.composer = composer

    def plan(self, rng: random.Random) -> Clip:
        composer = self.composer
        background = 11 if rng.random() < 0.5 else rng.randrange(12)
        motion = rng.choice(list(MOTIONS))
        while True:
            if rng.random() < 0.6:
                sprite, color = composer.shape_and_color(rng, background)
                name = f"{COLOR_NAMES[color]} {SHAPES[sprite]}"
                turns = SHAPES[sprite] not in ROUND
            else:
                sprite, color = rng.choice(composer.things), -1
                name, turns = composer.noun(rng, composer.sprites[sprite]), True
            if motion != "spin" or turns:
                break
        words, adjective = MOTIONS[motion]
        if adjective and rng.random() < 0.3:
            caption = article(f"{adjective} {name}")
        else:
            caption = f"{article(name)} {rng.choice(words)}"
        moves = motion in DIRECTIONS
        scale = rng.uniform(0.36, 0.48) if moves else rng.uniform(0.56, 0.64)
        x, y = (rng.uniform(-0.06, 0.06) for _ in "xy")
        return Clip(
            motion,
            background,
            sprite,
            color,
            path(motion, scale, x, y),
            caption + background_words(rng, background),
        )


def packed(clips: list[Clip]) -> dict[str, np.ndarray]:
    """Return the frames of all clips, one after the other, for `Painter.paint`."""

    def each(values: list[int]) -> np.ndarray:
        return np.repeat(np.array(values, np.int32), FRAMES)

    return {
        "places": np.concatenate([clip.path for clip in clips])[:, None].astype(np.float32),
        "sprites": each([clip.sprite for clip in clips])[:, None],
        "colors": each([clip.color for clip in clips])[:, None],
        "backgrounds": each([clip.background for clip in clips]),
    }
