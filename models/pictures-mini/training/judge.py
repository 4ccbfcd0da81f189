"""Evaluates the images of a model.

It reads the background, and count, colors, shapes and places of plain shapes. For an object it
finds the nearest sprite.

    judge.py MODEL SPRITES WORDS [--shapes 120] [--names 100] [--steps 25] [--guidance 4]
             [--sheet sheet.png]

The evaluation is first checked on rendered images, with right captions and with wrong ones.
A third of the captions name pairs that training never showed (`compose.withheld`).
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from diffusers import StableDiffusionPipeline
from PIL import Image
from scipy import ndimage

from compose import (
    COLOR_NAMES,
    COLORS,
    COUNTS,
    PLACES,
    SCALES,
    SHAPES,
    SPOTS,
    Plan,
    Slot,
    article,
    packed,
    plural,
    read_bank,
    withheld,
)
from paint import Painter


def lab(rgb: np.ndarray) -> np.ndarray:
    """Convert sRGB values from 0 to 255 to CIE L*a*b* (D65)."""
    linear = np.asarray(rgb, float) / 255
    linear = np.where(linear > 0.04045, ((linear + 0.055) / 1.055) ** 2.4, linear / 12.92)
    matrix = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = linear @ matrix.T / (0.9505, 1.0, 1.089)
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    x, y, z = np.moveaxis(root, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


PALETTE = lab(np.array(list(COLORS.values())))


def color_name(rgb: np.ndarray) -> str:
    return COLOR_NAMES[int(((PALETTE - lab(rgb)) ** 2).sum(-1).argmin())]


def fitted(mask: np.ndarray) -> np.ndarray:
    """Scale the mask's bounding box to [48, 48] floats; its longer side fills the square."""
    rows, columns = np.where(mask)
    box = mask[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    image = Image.fromarray((box * 255).astype(np.uint8))
    scale = 48 / max(image.size)
    image = image.resize(
        (max(1, round(image.width * scale)), max(1, round(image.height * scale))),
        Image.Resampling.BILINEAR,
    )
    canvas = Image.new("L", (48, 48))
    canvas.paste(image, ((48 - image.width) // 2, (48 - image.height) // 2))
    return np.asarray(canvas, float) / 255


@dataclass(frozen=True)
class Part:
    color: str
    shape: str
    x: float  # from -1 (left) to 1
    y: float


class Reader:
    def __init__(self, bank: np.ndarray) -> None:
        self.templates = {name: fitted(bank[i, 3] > 127) for i, name in enumerate(SHAPES)}

    def read(self, pixels: np.ndarray) -> tuple[str, list[Part]]:
        """Return the background and parts of uint8 [H, W, 3]."""
        border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        background = np.median(border, 0)
        far = np.sqrt(((lab(pixels) - lab(background)) ** 2).sum(-1)) > 20
        labels, count = ndimage.label(far)
        parts = []
        for number in range(1, count + 1):
            mask = labels == number
            if mask.sum() < 24:
                continue
            inner = ndimage.binary_erosion(mask, iterations=2)
            color = color_name(np.median(pixels[inner if inner.sum() > 3 else mask], 0))
            shape = fitted(mask)
            match = {
                name: np.minimum(shape, t).sum() / np.maximum(shape, t).sum()
                for name, t in self.templates.items()
            }
            rows, columns = np.where(mask)
            middle = (
                (columns.min() + columns.max() + 1) / pixels.shape[1] - 1,
                (rows.min() + rows.max() + 1) / pixels.shape[0] - 1,
            )
            parts.append(Part(color, max(match, key=lambda name: match[name]), *middle))
        return color_name(background), parts


@dataclass(frozen=True)
class Case:
    plan: Plan
    unseen: bool
    place: tuple[int, int] | None = None


def cases(count: int, rng: random.Random) -> list[Case]:
    """Return test cases: half one shape at a place, a quarter two to five of one kind, a quarter
    two kinds.

    A third of them have a withheld pair.
    """
    no_color, no_count = withheld()
    made: list[Case] = []
    while len(made) < count:
        kind, unseen = len(made) % 4, len(made) % 3 == 0
        background = rng.randrange(12)
        pairs = [
            (c, s)
            for c in range(12)
            for s in range(12)
            if c != background and ((COLOR_NAMES[c], SHAPES[s]) in no_color) == unseen
        ]
        if not pairs:
            continue
        color, shape = rng.choice(pairs)
        name = f"{COLOR_NAMES[color]} {SHAPES[shape]}"
        tail = f" on a {COLOR_NAMES[background]} background"
        if kind < 2:
            step = rng.choice(tuple(PLACES))
            x, y = (0.5 * value for value in step)
            slots: tuple[Slot, ...] = (Slot(shape, 0.42, x, y, color),)
            made.append(
                Case(Plan(background, slots, f"{article(name)} {PLACES[step]}{tail}"), unseen, step)
            )
        elif kind == 2:
            number = rng.choice([n for n in COUNTS if ((n, SHAPES[shape]) in no_count) <= unseen])
            slots = tuple(Slot(shape, SCALES[number], x, y, color) for x, y in SPOTS[number])
            made.append(
                Case(
                    Plan(
                        background,
                        slots,
                        f"{COUNTS[number][0]} {COLOR_NAMES[color]} {plural(SHAPES[shape])}{tail}",
                    ),
                    unseen,
                )
            )
        else:
            other_color, other = rng.choice([p for p in pairs if p[1] != shape] or [(color, shape)])
            slots = (Slot(shape, 0.44, -0.5, 0, color), Slot(other, 0.44, 0.5, 0, other_color))
            other_name = f"{COLOR_NAMES[other_color]} {SHAPES[other]}"
            caption = f"{article(name)} left of {article(other_name)}{tail}"
            made.append(Case(Plan(background, slots, caption), unseen))
    return made


def score(reader: Reader, all_cases: list[Case], pictures: np.ndarray) -> dict[str, float]:
    marks: dict[str, list[bool]] = {
        key: [] for key in ("background", "count", "color", "shape", "place", "all")
    }
    for case, pixels in zip(all_cases, pictures, strict=True):
        background, parts = reader.read(pixels)
        parts = sorted(parts, key=lambda part: (part.x > 0.25, part.y))
        slots = sorted(case.plan.slots, key=lambda slot: (slot.x > 0.25, slot.y))
        right = {
            "background": background == COLOR_NAMES[case.plan.background],
            "count": len(parts) == len(slots),
            "color": [part.color for part in parts] == [COLOR_NAMES[slot.color] for slot in slots],
            "shape": [part.shape for part in parts] == [SHAPES[slot.sprite] for slot in slots],
        }
        if case.place is not None:
            right["place"] = (
                len(parts) == 1 and (_step(parts[0].x), _step(parts[0].y)) == case.place
            )
        right["all"] = all(right.values())
        for key, value in right.items():
            marks[key].append(value)
    return {key: round(float(np.mean(values)), 3) for key, values in marks.items()}


def _step(value: float) -> int:
    return 0 if abs(value) < 0.2 else (1 if value > 0 else -1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("model", "sprites", "words"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--shapes", type=int, default=120)
    parser.add_argument("--names", type=int, default=100)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--guidance", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--sheet", type=Path)
    options = parser.parse_args()
    bank, sprites = read_bank(options.sprites, options.words)
    reader, rng = Reader(bank), random.Random(options.seed)
    pipeline = StableDiffusionPipeline.from_pretrained(options.model, torch_dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    side = pipeline.vae.config.sample_size
    painter = Painter(bank, "cpu", side)

    def painted(plans: list[Plan]) -> np.ndarray:
        return painter.paint(packed(plans)).permute(0, 2, 3, 1).numpy()

    def drawn(prompts: list[str]) -> np.ndarray:
        made = []
        for start in range(0, len(prompts), 8):
            part = prompts[start : start + 8]
            seeds = [
                torch.Generator().manual_seed(options.seed + start + row)
                for row in range(len(part))
            ]
            settings = {
                "num_inference_steps": options.steps,
                "guidance_scale": options.guidance,
                "height": side,
                "width": side,
            }
            made += [
                np.asarray(image) for image in pipeline(part, generator=seeds, **settings).images
            ]
        return np.stack(made)

    chosen = cases(options.shapes, rng)
    true = painted([case.plan for case in chosen])
    print("reader, right pictures:", score(reader, chosen, true))
    print("reader, wrong pictures:", score(reader, chosen, np.roll(true, 4, 0)))
    pictures = drawn([case.plan.caption for case in chosen])
    print("model:", score(reader, chosen, pictures))
    for name, unseen in (("pairs it saw", False), ("withheld pairs", True)):
        rows = [row for row, case in enumerate(chosen) if case.unseen == unseen]
        print(f"model, {name}:", score(reader, [chosen[row] for row in rows], pictures[rows]))

    things = range(len(SHAPES), len(sprites))
    templates = painted([Plan(11, (Slot(thing, 0.93, 0.0, 0.0),), "") for thing in things]).astype(
        np.float32
    )
    small = templates.reshape(len(things), side // 4, 4, side // 4, 4, 3).mean((2, 4))
    names = rng.sample(sorted({sprites[thing].name for thing in things}), options.names)
    objects = drawn([article(name) for name in names])
    hits = 0
    for name, pixels in zip(names, objects, strict=True):
        mean = pixels.astype(np.float32).reshape(side // 4, 4, side // 4, 4, 3).mean((1, 3))
        nearest = int(((small - mean) ** 2).sum((1, 2, 3)).argmin())
        hits += sprites[things[nearest]].name == name
    print(f"names: the nearest of {len(things)} sprites has the name in {hits} of {len(names)}")
    if options.sheet:
        both = np.concatenate([pictures[:48], objects[:48]])
        sheet = both[: len(both) // 16 * 16].reshape(-1, 16, side, side, 3).transpose(0, 2, 1, 3, 4)
        Image.fromarray(sheet.reshape(-1, 16 * side, 3)).save(options.sheet)


if __name__ == "__main__":
    main()
