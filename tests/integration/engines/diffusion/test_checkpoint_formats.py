"""Pulled models: half precision, single-file checkpoints, safetensors converted from pickles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from polymux import errors
from polymux.engines.diffusion import folders
from polymux.models.diffusion_folders import CHECKPOINT
from polymux.models.families import layout_of
from polymux.models.torch_pickle import convert
from support import detail_models, diffusion_models
from support.lazy_imports import safetensors, torch

if TYPE_CHECKING:
    from pathlib import Path

PARTS = ("unet", "vae", "text_encoder")
#: Names of a decoder with four blocks: diffusers -> original.
_SHARED = [
    (r"encoder\.down_blocks\.(\d)\.resnets", r"encoder.down.\1.block"),
    (r"encoder\.down_blocks\.(\d)\.downsamplers\.0", r"encoder.down.\1.downsample"),
    (r"mid_block\.resnets\.0", "mid.block_1"),
    (r"mid_block\.resnets\.1", "mid.block_2"),
    (r"mid_block\.attentions\.0\.group_norm", "mid.attn_1.norm"),
    (r"mid_block\.attentions\.0\.to_out\.0", "mid.attn_1.proj_out"),
    (r"mid_block\.attentions\.0\.to_([qkv])", r"mid.attn_1.\1"),
    (r"conv_shortcut", "nin_shortcut"),
    (r"conv_norm_out", "norm_out"),
]


def same(found: Any, wanted: Any) -> bool:
    """Whether two modules have equal weights within half precision."""
    one, other = found.state_dict(), wanted.state_dict()
    return one.keys() == other.keys() and all(
        torch.allclose(one[name].float(), other[name].float(), atol=1e-3) for name in one
    )


def shared_decoder(vae: Any) -> dict[str, Any]:
    """A decoder's weights with the names of a single-file checkpoint."""
    weights = {}
    for name, value in vae.state_dict().items():
        for known, other in _SHARED:
            name = re.sub(known, other, name)
        # The original format numbers the upsampling blocks in reverse order.
        name = re.sub(
            r"decoder\.up_blocks\.(\d)\.(resnets|upsamplers\.0)",
            lambda found: (
                f"decoder.up.{3 - int(found[1])}."
                + {"resnets": "block", "upsamplers.0": "upsample"}[found[2]]
            ),
            name,
        )
        is_square = "attn_1" in name and value.dim() == 2
        weights[f"first_stage_model.{name}"] = value[:, :, None, None] if is_square else value
    return {name: one.contiguous().clone() for name, one in weights.items()}


@pytest.fixture
def painter(tmp_path: Path) -> Path:
    return diffusion_models.stable_diffusion(tmp_path / "sd")


def halved(path: Path, *parts: str) -> None:
    """Convert the weights of these parts to half precision only."""
    for part in parts:
        (plain,) = (path / part).glob("*.safetensors")
        numbers = {name: one.half() for name, one in safetensors.load_file(plain).items()}
        safetensors.save_file(numbers, plain.with_suffix(".fp16.safetensors"), {"format": "pt"})
        plain.unlink()


@pytest.mark.parametrize("parts", [("unet",), PARTS])
def test_half_precision(painter: Path, parts: tuple[str, ...]) -> None:
    """Some or all parts: the available weights are loaded in the engine's precision."""
    before = folders.loaded(painter, torch.float32)
    halved(painter, *parts)
    layout_of(painter, "diffusion")
    found = folders.loaded(painter, torch.float32)
    for part in PARTS:
        assert same(found[part], before[part])
        assert next(found[part].parameters()).dtype == torch.float32
    unet = folders.loaded_one(painter / "unet", "UNet2DConditionModel", torch.float32)
    assert same(unet, before["unet"])


def test_all_weights_in_one_file(painter: Path, tmp_path: Path) -> None:
    """The usual format of Stable Diffusion checkpoints, beside the configuration files."""
    before = folders.loaded(painter, torch.float32)
    file = detail_models.checkpoint(tmp_path / "one", before["unet"], before["text_encoder"])
    safetensors.save_file(
        safetensors.load_file(file) | shared_decoder(before["vae"]), painter / CHECKPOINT
    )
    for one in painter.rglob("*/*.safetensors"):
        one.unlink()
    assert CHECKPOINT in layout_of(painter, "diffusion").files
    found = folders.loaded(painter, torch.float32)
    for part in PARTS:
        assert same(found[part], before[part])
    (painter / CHECKPOINT).write_bytes(b"no weights")
    with pytest.raises(errors.NoBackendError, match=r"\bsd\b"):
        folders.loaded(painter, torch.float32)


def test_pickles_that_became_safetensors(painter: Path) -> None:
    before = folders.loaded(painter, torch.float32)
    (plain,) = (painter / "unet").glob("*.safetensors")
    pickle = plain.with_suffix(".bin")
    torch.save(safetensors.load_file(plain), pickle)
    plain.unlink()
    with pytest.raises(errors.NoBackendError, match="pickle"):
        folders.loaded(painter, torch.float32)
    convert(pickle, plain)
    assert same(folders.loaded(painter, torch.float32)["unet"], before["unet"])
