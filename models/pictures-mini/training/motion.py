"""Motion layers (AnimateDiff, Guo et al. 2023, arXiv:2307.04725) over the UNet for images.

They are trained together with the UNet and the text encoder, because the words of a motion reach
the layers only through these.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from diffusers import MotionAdapter, UNetMotionModel
from torch import Tensor, nn

from clips import FRAMES, ClipComposer, packed

if TYPE_CHECKING:
    from pathlib import Path

    from diffusers import UNet2DConditionModel

    from compose import Composer
    from paint import Painter

CLIPS_PER_BATCH = 32


class MotionNet(nn.Module):
    """The UNet for clips, which uses the parameters of `unet`, and motion layers of its own.

    At first the layers change nothing.
    """

    def __init__(self, unet: UNet2DConditionModel) -> None:
        super().__init__()
        adapter = MotionAdapter(
            block_out_channels=tuple(unet.config.block_out_channels),
            motion_layers_per_block=unet.config.layers_per_block,
            motion_num_attention_heads=4,
            motion_max_seq_length=FRAMES,
        )
        net = UNetMotionModel.from_unet2d(unet, adapter).to(unet.device)
        for name, parameter in unet.named_parameters():
            path, _, leaf = name.rpartition(".")
            setattr(net.get_submodule(path), leaf, parameter)
        blocks = [*net.down_blocks, net.mid_block, *net.up_blocks]
        self.net = net
        self.layers = nn.ModuleList(layer for block in blocks for layer in block.motion_modules)
        for layer in self.layers:
            nn.init.zeros_(layer.proj_out.weight)
            nn.init.zeros_(layer.proj_out.bias)

    def forward(self, latents: Tensor, times: Tensor, words: Tensor) -> Tensor:
        """Predict velocities [clips, frames, channels, height, width] for one time per clip."""
        words = words.repeat_interleave(FRAMES, 0, output_size=len(words) * FRAMES)
        made = self.net(latents.transpose(1, 2), times, encoder_hidden_states=words).sample
        return made.transpose(1, 2)

    def load(self, folder: Path) -> None:
        """Load the layers that `save` wrote."""
        self.net.load_motion_modules(MotionAdapter.from_pretrained(folder).to(self.net.device))

    def save(self, layers: nn.Module, folder: Path) -> MotionAdapter:
        """Save other values of the layers, such as averages, in float16."""
        self.layers.load_state_dict(layers.state_dict())
        self.net.save_motion_modules(folder)
        adapter = MotionAdapter.from_pretrained(folder).half()
        adapter.save_pretrained(folder)
        return adapter


def painted_clips(
    composer: Composer, painter: Painter, count: int, seed: int
) -> tuple[list[Tensor], list[str]]:
    """Return uint8 [CLIPS_PER_BATCH * FRAMES, 3, side, side] for each batch, and all captions."""
    clips, rng = ClipComposer(composer), random.Random(seed)
    plans = [clips.plan(rng) for _ in range(count)]
    batches = [plans[at : at + CLIPS_PER_BATCH] for at in range(0, count, CLIPS_PER_BATCH)]
    return [painter.paint(packed(batch)) for batch in batches], [plan.caption for plan in plans]
