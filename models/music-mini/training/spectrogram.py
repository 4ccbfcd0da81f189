"""Draws audio as spectrogram images, on any device.

The images equal those of `polymux._native.media.draw_sound` of the same audio at 44,100 Hz: 512 mel
bands by HTK's formula up to 10 kHz, 10 ms a column, a window of 100 ms, darkness proportional to
the magnitude to the power of 0.25. The top row is the highest band, and 0 the loudest.
"""

from __future__ import annotations

import numpy as np
import torch

SIDE_PX = 512
MAX_HZ = 10_000.0
#: Of the transform with 8,820 points of audio at 22,050 Hz: 2.5 Hz each.
BINS = 4001
POINTS = 8820
FRAME_SAMPLES = 2205
#: Two columns, which are 220.5 samples each.
TWO_HOPS = 441


class Spectrogram:
    """Draws loops of 22,050 Hz. Every other column lies between two samples of this rate, so its
    window is sampled half a sample later."""

    def __init__(self, device: str) -> None:
        self.device = device
        hann = torch.hann_window(2 * FRAME_SAMPLES, periodic=True, dtype=torch.float64)
        self.windows = [part.float().to(device) for part in (hann[1::2], hann[0::2])]
        top = 2595 * np.log10(1 + MAX_HZ / 700)
        edges = 700 * (10 ** (np.linspace(0, top, SIDE_PX + 2) / 2595) - 1)
        hz = np.arange(BINS) * (22_050 / POINTS)
        up = (hz[:, None] - edges[None, :-2]) / np.diff(edges)[None, :-1]
        down = (edges[None, 2:] - hz[:, None]) / np.diff(edges)[None, 1:]
        filters = np.maximum(0, np.minimum(up, down))
        self.filters = torch.tensor(filters, dtype=torch.float32, device=device)

    def bands(self, sounds: torch.Tensor) -> torch.Tensor:
        """Return the magnitudes [count, bands, columns] of loops [count, samples]."""
        padded = torch.nn.functional.pad(sounds[:, None], (1102, 1323), mode="reflect")[:, 0]
        columns = []
        for begin, window in zip((0, 220), self.windows, strict=True):
            frames = padded[:, begin:].unfold(1, FRAME_SAMPLES, TWO_HOPS)[:, : SIDE_PX // 2]
            bins = torch.fft.rfft(frames * window, n=POINTS)[..., :BINS].abs()
            columns.append(bins @ self.filters)
        return torch.stack(columns, 2).flatten(1, 2).transpose(1, 2)

    def images(self, sounds: torch.Tensor) -> torch.Tensor:
        """Return images [count, 512, 512] as bytes."""
        bands = self.bands(sounds)
        shown = (bands / bands.amax((1, 2), keepdim=True).clamp_min(1e-9)) ** 0.25
        return (255 - (255 * shown).round()).to(torch.uint8).flip(1)
