"""Predictions for latents that are wider than those the model was trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def window_starts(width: int, window: int) -> list[int]:
    """Return where windows begin that cover a width; neighbors overlap by half or more.

    Example:
        >>> from polymux.engines.diffusion.windows import window_starts
        >>> window_starts(32, 32), window_starts(100, 32)
        ([0], [0, 16, 32, 48, 64, 68])
    """
    starts = list(range(0, width - window, max(1, window // 2)))
    return [*starts, width - window]


def mean_prediction(
    latents: Any, window: int, starts: Sequence[int], predict: Callable[[Any], Any]
) -> Any:
    """Return the mean of the predictions of all windows. The middle of a window counts most.

    Args:
        latents: Latents whose last axis is cut into windows.
        window: Width of a window.
        starts: Where the windows begin; see `window_starts`.
        predict: Returns the prediction for a window.
    """
    import torch

    if len(starts) == 1:
        return predict(latents)
    rising = torch.arange(window, device=latents.device) + 0.5
    weights = torch.minimum(rising, window - rising).to(latents.dtype)
    sums, totals = torch.zeros_like(latents), torch.zeros_like(latents[..., :1, :])
    for start in starts:
        part = slice(start, start + window)
        sums[..., part] += predict(latents[..., part]) * weights
        totals[..., part] += weights
    return sums / totals
