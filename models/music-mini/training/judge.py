"""Trains the classifier of music in tests/support/music_judge.py, and applies it to files.

    judge.py compose SOUNDS VAE FOLDER [--rounds 40] [--plain 40]
    judge.py train FOLDER OUT
    judge.py read OUT FILE...

The names of WAV files begin with their class: CLASS-anything.wav. `compose` writes new loops of
each class, whose seeds differ from those of the model's training. VAE is the folder of the model's
VAE. Each round has two loops of a class: one as it was composed, and one whose image went through
the VAE and was played by polymux, as generated music is. It continues where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusers import AutoencoderKL
from polymux._native import media
from scipy.signal import resample_poly
from torch.nn import functional

from compose import INSTRUMENTS, Loop, band, drum_loop, solo
from sounds import played, read_bank
from spectrogram import SIDE_PX, Spectrogram

sys.path.append(str(Path(__file__).parents[3] / "tests"))
from support.music_judge import MOST_DEVIATIONS, NAMES, RATE_HZ, Judge, features, levels, read

SEED = 4711
#: One in this many is held out of the training.
HELD_OUT = 6
HIDDEN, STEPS, BATCH, RATE = 96, 2000, 64, 3e-3
#: Columns of parts that are used besides whole loops: 4 s.
PART_COLUMNS = 170
#: Noise that is added to the normalized features in training, and their share that is left out.
NOISE, LEFT_OUT = 0.5, 0.3


def composed(name: str, number: int) -> Loop:
    rng = np.random.default_rng((SEED, NAMES.index(name), number))
    if name in INSTRUMENTS:
        return solo(rng, name)
    return drum_loop(rng) if name == "drums" else band(rng, name)


class Coder:
    """Sends loops through the image, the VAE and the playback."""

    def __init__(self, vae: Path) -> None:
        self._vae: Any = AutoencoderKL.from_pretrained(vae, torch_dtype=torch.float32)
        self._spectrogram = Spectrogram("cpu")

    @torch.inference_mode()
    def __call__(self, samples: np.ndarray, seed: int) -> np.ndarray:
        image = self._spectrogram.images(torch.from_numpy(samples)[None]).float()
        shown = (image / 127.5 - 1)[:, None].expand(-1, 3, -1, -1)
        coded = self._vae.encode(shown).latent_dist.mean
        made = self._vae.decode(coded).sample.mean(1)[0].clamp(-1, 1)
        pixels = ((made + 1) * 127.5).round().byte().numpy().tobytes()
        sound = media.play_picture(pixels, SIDE_PX, SIDE_PX, 1, seed, None, None)
        whole = media.finish_sound(sound["samples"], 1, RATE_HZ)
        return np.frombuffer(whole, "<i2")


def write(path: Path, samples: np.ndarray) -> None:
    unfinished = path.with_suffix(".part")
    with wave.open(str(unfinished), "wb") as file:
        file.setparams((1, 2, RATE_HZ, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    unfinished.rename(path)


def compose_all(options: argparse.Namespace) -> None:
    bank, coder = read_bank(options.sounds), Coder(options.vae)
    options.folder.mkdir(parents=True, exist_ok=True)
    for number in range(options.rounds + options.plain):
        for name in NAMES:
            plain = options.folder / f"{name}-plain-{number}.wav"
            if not plain.exists():
                loop = played(composed(name, 2 * number).notes, bank)
                write(plain, resample_poly(loop, 2, 1) * 20_000)
            coded = options.folder / f"{name}-coded-{number}.wav"
            if number < options.rounds and not coded.exists():
                write(coded, coder(played(composed(name, 2 * number + 1).notes, bank), number))
        print(f"round {number}", flush=True)


def measured(folder: Path) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the features of all files and of their parts, their classes, and which are held out.

    The levels are kept beside the files.
    """
    rows, labels, held = [], [], []
    for path in sorted(folder.glob("*.wav")):
        known = path.with_suffix(".npy")
        if not known.exists():
            np.save(known, levels(read(path)).astype(np.float32))
        fine = np.load(known).astype(float)
        name, _, number = path.stem.split("-")
        is_held = int(number) % HELD_OUT == 0
        parts = [fine] if is_held else [fine, fine[:PART_COLUMNS], fine[-PART_COLUMNS:]]
        for part in parts:
            rows.append(features(part))
            labels.append(NAMES.index(name))
            held.append(is_held)
    return torch.tensor(np.array(rows)).float(), torch.tensor(labels), torch.tensor(held)


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(SEED)
    rows, labels, held = measured(options.folder)
    mean, deviation = rows[~held].mean(0), rows[~held].std(0).clamp_min(0.02)
    rows = ((rows - mean) / deviation).clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS)
    net = torch.nn.Sequential(
        torch.nn.Linear(rows.shape[1], HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(HIDDEN, len(NAMES)),
    )
    optimizer = torch.optim.AdamW(net.parameters(), RATE, weight_decay=0.05)
    known = (~held).nonzero()[:, 0]
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - step / STEPS) + 1e-5
        pick = known[torch.randint(len(known), (BATCH,))]
        noisy = rows[pick] + NOISE * torch.randn(BATCH, rows.shape[1])
        noisy = functional.dropout(noisy, LEFT_OUT)
        loss = functional.cross_entropy(net(noisy), labels[pick], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    first, last = net[0], net[3]
    weights = {
        "mean": mean, "deviation": deviation, "first": first.weight, "first_bias": first.bias,
        "last": last.weight, "last_bias": last.bias,
    }  # fmt: skip
    small = {name: one.detach().numpy().astype(np.float16) for name, one in weights.items()}
    np.savez_compressed(options.out, **small)
    net.eval()
    with torch.no_grad():
        right = net(rows).argmax(1) == labels
    print(f"held out: {right[held].float().mean():.3f} of {int(held.sum())}")
    for index, name in enumerate(NAMES):
        print(f"  {name}: {right[held & (labels == index)].float().mean():.2f}")


def read_all(options: argparse.Namespace) -> None:
    judge, right = Judge(options.weights), 0
    for path in options.files:
        shares = judge.probabilities(read(path))
        best = sorted(shares, key=lambda name: -shares[name])[:3]
        right += best[0] == path.stem.split("-")[0]
        print(path.name, ", ".join(f"{name} {shares[name]:.2f}" for name in best))
    print(f"{right} of {len(options.files)} have the class in their name")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("compose")
    command.add_argument("sounds", type=Path)
    command.add_argument("vae", type=Path)
    command.add_argument("folder", type=Path)
    command.add_argument("--rounds", type=int, default=40)
    command.add_argument("--plain", type=int, default=40, help="further rounds of composed loops")
    command.set_defaults(run=compose_all)
    command = commands.add_parser("train")
    command.add_argument("folder", type=Path)
    command.add_argument("out", type=Path)
    command.set_defaults(run=train)
    command = commands.add_parser("read")
    command.add_argument("weights", type=Path)
    command.add_argument("files", type=Path, nargs="+")
    command.set_defaults(run=read_all)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
