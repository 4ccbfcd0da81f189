"""Draws the seed images of the model: loops of the composer, and masks.

seed_images.py SOUNDS OUT
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from compose import DRUMS, Song
from sounds import played, read_bank
from spectrogram import SIDE_PX, Spectrogram

if TYPE_CHECKING:
    from collections.abc import Callable


def og_beat() -> Song:
    song = Song(np.random.default_rng(1), 120, "major")
    song.drums(DRUMS["rock"][0])
    return song


def marim() -> Song:
    song = Song(np.random.default_rng(2), 100, "major", "1645")
    song.arpeggio("marimba", 0.5, 1.0, 57)
    song.melody("marimba", "medium", 0.8)
    return song


def vibes() -> Song:
    song = Song(np.random.default_rng(3), 80, "jazz", "2511")
    song.chords("vibraphone", "block", 1.0, 57)
    song.melody("vibraphone", "medium", 0.7)
    return song


def agile() -> Song:
    song = Song(np.random.default_rng(4), 150, "minor", "1637")
    song.arpeggio("nylon", 0.25, 0.9, 52)
    song.bass("upright", "root", 0.8)
    return song


def motorway() -> Song:
    song = Song(np.random.default_rng(5), 130, "minor", "1641")
    song.drums(DRUMS["techno"][0], 0.8)
    song.bass("synthbass", "eighths", 0.7)
    song.chords("pad", "block", 0.6)
    return song


SONGS: tuple[Callable[[], Song], ...] = (og_beat, marim, vibes, agile, motorway)


def masks() -> dict[str, Any]:
    """Return images as gray values by row or by column; 0 is the loudest."""
    rows, times_s = np.arange(SIDE_PX), np.arange(SIDE_PX) * 0.01
    third = rows < SIDE_PX // 3
    return {
        "mask_beat_lines_80": 255 - 200 * np.exp(-(times_s % 0.75) / 0.05),
        "mask_gradient_dark": 255 * np.linspace(0.6, 0.05, SIDE_PX)[:, None],
        "mask_gradient_top_70": 255 * np.interp(rows, [0, round(0.7 * SIDE_PX)], [1, 0.5])[:, None],
        "mask_gradient_top_fifth_75": 255
        * np.interp(rows, [0, SIDE_PX // 5], [0.75, 0.5])[:, None],
        "mask_top_third_75": np.where(third, 255 * 0.75, 128)[:, None],
        "mask_top_third_95": np.where(third, 255 * 0.95, 128)[:, None],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sounds", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    bank, spectrogram = read_bank(options.sounds), Spectrogram("cpu")
    images = {
        name: np.broadcast_to(np.rint(gray), (SIDE_PX, SIDE_PX)).astype(np.uint8)
        for name, gray in masks().items()
    }
    for song in SONGS:
        sound = torch.from_numpy(played(song().notes, bank))[None]
        images[song.__name__] = spectrogram.images(sound)[0].numpy()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, image in images.items():
        Image.fromarray(image).save(options.out / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
