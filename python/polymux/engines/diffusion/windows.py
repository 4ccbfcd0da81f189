"""Computations on latents that are wider than those the model was trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


#: Columns of a spectrogram of music per second.
_COLUMNS_PER_S = 100


def window_starts(width: int, window: int) -> list[int]:
    """Return where windows begin that cover a width; neighbors overlap by half or more.

    Example:
        >>> from polymux.engines.diffusion.windows import window_starts
        >>> window_starts(32, 32), window_starts(100, 32)
        ([0], [0, 16, 32, 48, 64, 68])
    """
    starts = list(range(0, width - window, max(1, window // 2)))
    return [*starts, width - window]


def music_columns(duration_s: float | None, begun: int) -> int:
    """Return the columns of a spectrogram of music, of 10 ms each.

    Args:
        duration_s: The requested duration. None for that of the seed image.
        begun: Columns of the seed image.
    """
    return begun if duration_s is None else round(duration_s * _COLUMNS_PER_S)


def music_cells(columns: int, begun: int, window: int) -> int:
    """Return the width of the latents of a spectrogram.

    Args:
        columns: Columns of the spectrogram.
        begun: Columns of the seed image.
        window: Width of the seed image's latents.
    """
    return max(window, -(-columns * window // begun))


def mean_of_windows(
    latents: Any,
    window: int,
    starts: Sequence[int],
    compute: Callable[[Any], Any],
    factor: int = 1,
) -> Any:
    """Return the mean of the results for all windows. The middle of a window counts most.

    Args:
        latents: Latents whose last axis is cut into windows.
        window: Width of a window.
        starts: Where the windows begin; see `window_starts`.
        compute: Returns the prediction or the image for a window.
        factor: Width of a result, relative to its window. Default: 1.
    """
    import torch

    if len(starts) == 1:
        return compute(latents)
    parts = [compute(latents[..., start : start + window]) for start in starts]
    # In float32, because sums of float16 numbers would lose gray levels.
    sums = torch.zeros(*parts[0].shape[:-1], latents.shape[-1] * factor, device=latents.device)
    totals = torch.zeros(sums.shape[-1], device=latents.device)
    rising = torch.arange(window * factor, device=latents.device) + 0.5
    weights = torch.minimum(rising, window * factor - rising)
    for start, part in zip(starts, parts, strict=True):
        place = slice(start * factor, (start + window) * factor)
        sums[..., place] += part.float() * weights
        totals[place] += weights
    return (sums / totals).to(parts[0].dtype)
