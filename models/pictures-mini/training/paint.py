"""Renders plans of `compose.py` with torch, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from compose import COLORS

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


class Painter:
    """Holds the premultiplied sprites on a device, at three sizes to prevent aliasing."""

    def __init__(self, bank: np.ndarray, device: str, side: int = 64) -> None:
        pixels = torch.from_numpy(bank).to(device).half() / 255
        pixels = torch.cat([pixels[:, :3] * pixels[:, 3:], pixels[:, 3:]], 1)
        half = functional.avg_pool2d(pixels.float(), 2)
        self.levels = [pixels, half.half(), functional.avg_pool2d(half, 2).half()]
        self.palette = torch.tensor(list(COLORS.values()), device=device) / 255
        self.device, self.side = device, side

    @torch.no_grad()
    def paint(self, plans: dict[str, np.ndarray]) -> Tensor:
        """Return uint8 [N, 3, side, side] from the arrays of `compose.packed` or `clips.packed`."""
        places, sprites, colors, backgrounds = (
            torch.as_tensor(plans[key]).to(self.device)
            for key in ("places", "sprites", "colors", "backgrounds")
        )
        canvas = (
            self.palette[backgrounds.long()][:, :, None, None]
            .expand(-1, -1, 2 * self.side, 2 * self.side)
            .clone()
        )
        for column in range(sprites.shape[1]):
            for level, (low, high) in enumerate(((0.6, 9.0), (0.3, 0.6), (0.0, 0.3))):
                scale = places[:, column, 0]
                rows = ((sprites[:, column] >= 0) & (scale >= low) & (scale < high)).nonzero()[:, 0]
                if len(rows):
                    canvas[rows] = self._over(
                        canvas[rows],
                        level,
                        sprites[rows, column],
                        colors[rows, column],
                        places[rows, column],
                    )
        small = functional.avg_pool2d(canvas, 2)
        return (small.clamp(0, 1) * 255).round().to(torch.uint8)

    def _over(
        self,
        below: Tensor,
        level: int,
        sprites: Tensor,
        colors: Tensor,
        places: Tensor,
    ) -> Tensor:
        scale, x, y, angle = places.unbind(1)
        cosine, sine = angle.cos() / scale, angle.sin() / scale
        rows = [
            torch.stack([cosine, sine, -cosine * x - sine * y], 1),
            torch.stack([-sine, cosine, sine * x - cosine * y], 1),
        ]
        grid = functional.affine_grid(
            torch.stack(rows, 1), [len(scale), 4, *below.shape[2:]], align_corners=False
        )
        warped = functional.grid_sample(
            self.levels[level][sprites.long()].float(), grid, align_corners=False
        )
        rgb, alpha = warped[:, :3], warped[:, 3:]
        flat = self.palette[colors.clamp(min=0).long()][:, :, None, None] * alpha
        rgb = torch.where((colors >= 0)[:, None, None, None], flat, rgb)
        return rgb + below * (1 - alpha)
