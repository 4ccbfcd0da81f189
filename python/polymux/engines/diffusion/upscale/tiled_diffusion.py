"""Tiled diffusion: adds detail to an image by denoising overlapping tiles at each step.

The tile ControlNet keeps the detail consistent with the image (Zhang et al., "Adding Conditional
Control to Text-to-Image Diffusion Models", 2023). `polymux.engines.diffusion.upscale.tiles`
combines the tiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.engines.diffusion.loras import check_finite
from polymux.engines.diffusion.upscale.plan import CELL_PX, coded_spans, painted_spans
from polymux.engines.diffusion.upscale.schedulers import DEFAULT, Solver
from polymux.engines.diffusion.upscale.tiles import Axis, Joiner, Tile, averaged, cut, tiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from polymux.engines.diffusion.pipelines import PipelineManager
    from polymux.engines.diffusion.steps import Steps
    from polymux.engines.diffusion.upscale.plan import Pass, Size

    Pixels = NDArray[np.uint8]


class Painter:
    """Runs the passes of one request. The networks process one tile at a time.

    Args:
        manager: Provides the device and noise generators.
        pipeline: The networks on the device: ``unet``, ``controlnet``, ``vae``, ``scheduler``.
        model: Name of the model.
        values: Request fields.
        words: Embeddings of the negative prompt and the prompt; only the prompt if ``dynamic`` is
            1.
        steps: Counts tiles, and checks for cancellation at each tile.
    """

    def __init__(
        self,
        manager: PipelineManager,
        pipeline: Any,
        model: str,
        values: Mapping[str, Any],
        words: Any,
        steps: Steps,
    ) -> None:
        self._manager = manager
        self._pipeline = pipeline
        self._model = model
        self._values = values
        self._words = words
        self._steps = steps
        self._guidance = float(values.get("dynamic", 6))
        self._resemblance = float(values.get("resemblance", 0.6))
        #: Latents of the last step that have not been previewed yet.
        self._shown: Any = None

    def painted(self, canvas: Pixels, one: Pass) -> Pixels:
        """Add detail to an image.

        Args:
            canvas: Rows, columns, colors; its size is ``one.canvas``.
            one: Strength and seed of the pass.

        Raises:
            BadRequestError: Weights from the request produce NaN or infinite values.
            InternalServerError: The networks produce NaN or infinite values.
            Cancelled: The request was canceled.
        """
        import torch

        with torch.inference_mode():
            latents = self._encoded(canvas, one.canvas)
            latents = self._denoised(latents, canvas, one)
            return self._decoded(latents, one.canvas)

    def _axes(self, spans: Any, size: Size, cell: int = 1) -> tuple[Axis, Axis]:
        columns, rows = spans(self._values, size)
        return (
            Axis(size[0] // CELL_PX, columns, cell),
            Axis(size[1] // CELL_PX, rows, cell),
        )

    def _denoised(self, latents: Any, canvas: Pixels, one: Pass) -> Any:
        import torch

        values = self._values
        solver = Solver(
            str(values.get("scheduler", DEFAULT)),
            self._pipeline.scheduler.config,
            int(values.get("num_inference_steps", 18)),
            one.steps,
            latents.device,
        )
        generator = self._manager.generator(one.seed)
        noise = torch.randn(latents.shape, generator=generator).to(latents.device)
        latents = solver.noisy(latents, noise)
        axes = self._axes(painted_spans, one.canvas)
        for timestep in solver.timesteps:
            prediction = self._predicted(solver.scaled(latents, timestep), timestep, canvas, axes)
            latents = solver.next(prediction, timestep, latents, generator)
            self._shown = latents
        return latents

    def _predicted(
        self, latents: Any, timestep: Any, canvas: Pixels, axes: tuple[Axis, Axis]
    ) -> Any:
        """Predict the noise of the whole image from the predictions for all tiles."""

        def work(piece: Any, tile: Tile) -> Any:
            noise = self._noise_of(piece, timestep, cut(canvas, tile))
            self._steps.step(self._shown)
            self._shown = None
            return noise

        return averaged(latents, *axes, work, latents.shape[1])

    def _noise_of(self, piece: Any, timestep: Any, seen: Pixels) -> Any:
        import torch

        times = len(self._words)
        given = torch.cat([piece] * times).to(self._manager.dtype)
        others: dict[str, Any] = {}
        if self._resemblance > 0:
            picture = self._tensor(seen)
            down, middle = self._pipeline.controlnet(
                given,
                timestep,
                encoder_hidden_states=self._words,
                controlnet_cond=torch.cat([picture] * times),
                conditioning_scale=self._resemblance,
                return_dict=False,
            )
            others = {
                "down_block_additional_residuals": down,
                "mid_block_additional_residual": middle,
            }
        noise = self._pipeline.unet(
            given, timestep, encoder_hidden_states=self._words, return_dict=False, **others
        )[0].float()
        if times == 1:
            return noise
        without, wanted = noise.chunk(2)
        return without + self._guidance * (wanted - without)

    def _encoded(self, canvas: Pixels, size: Size) -> Any:
        import torch

        vae = self._pipeline.vae
        channels = int(vae.config.latent_channels)

        def work(_: Any, tile: Tile) -> Any:
            found = vae.encode(self._tensor(cut(canvas, tile)) * 2 - 1).latent_dist.mode()
            self._steps.step()
            return found * vae.config.scaling_factor

        cells = torch.empty(
            (1, 1, size[1] // CELL_PX, size[0] // CELL_PX), device=self._manager.device
        )
        return averaged(cells, *self._axes(coded_spans, size), work, channels)

    def _decoded(self, latents: Any, size: Size) -> Pixels:
        import torch

        vae = self._pipeline.vae
        columns, rows = self._axes(coded_spans, size, CELL_PX)
        joiner = Joiner(size, columns, rows)
        for tile in tiles(columns, rows):
            high = torch.arange(tile.top // CELL_PX, tile.bottom // CELL_PX) % latents.shape[-2]
            wide = torch.arange(tile.left // CELL_PX, tile.right // CELL_PX) % latents.shape[-1]
            piece = latents[..., high[:, None], wide].to(self._manager.dtype)
            made = vae.decode(piece / vae.config.scaling_factor, return_dict=False)[0]
            check_finite(made, self._model, self._values)
            samples = (made[0].float() / 2 + 0.5).clamp(0, 1) * 255
            joiner.add(samples.permute(1, 2, 0).cpu().numpy(), tile)
            self._steps.step()
        return joiner.joined()

    def _tensor(self, pixels: Pixels) -> Any:
        """Convert to a tensor with values from 0 to 1: batch of one, colors, rows, columns."""
        import numpy
        import torch

        plain = torch.from_numpy(numpy.ascontiguousarray(pixels.transpose(2, 0, 1)))
        return plain[None].to(self._manager.device, self._manager.dtype) / 255
