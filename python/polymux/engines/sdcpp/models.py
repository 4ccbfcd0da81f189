"""Files of models for stable-diffusion.cpp.

A model is one file with everything (a checkpoint), or a directory of parts. Files are GGUF or
safetensors.
"""

from __future__ import annotations

import os
import re
import struct
from typing import TYPE_CHECKING

from polymux._util.text import display_name
from polymux.engines.chat.gguf import gguf_tensors
from polymux.errors import InvalidRequestError
from polymux.models.diffusion_folders import IN_CHECKPOINT, INDEX, tensors
from polymux.models.families import Layout, is_image_gguf

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Names of files begin with these: a checkpoint, or the network that removes noise.
CHECKPOINT, NETWORK = "model", "diffusion_model"
#: Parts beside them, by the engine's option.
PARTS = (
    "high_noise_diffusion_model", "clip_l", "clip_g", "clip_vision", "t5xxl", "llm", "vae", "taesd",
)  # fmt: skip
_FILE = re.compile(
    rf"(?P<part>{'|'.join((CHECKPOINT, NETWORK, *PARTS))})([._-].*)?\.(gguf|safetensors)"
)

_SUFFIXES = (".gguf", ".safetensors")
#: Tensors that only models for videos have, as the library tells them apart: those of Wan, LTX,
#: Hunyuan Video and Stable Video Diffusion.
_OF_VIDEOS = (
    "blocks.0.cross_attn.norm_k.weight", "adaln_single.emb.timestep_embedder.linear_1.bias",
    "txt_in.individual_token_refiner.blocks.0.adaLN_modulation.1.weight",
    "input_blocks.8.0.time_mixer.mix_factor",
)  # fmt: skip
#: Tensors of text encoders begin with these.
_ENCODERS = ("cond_stage_model.", "conditioner.", "text_encoders.", "te.", "te1.")


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether the main file of a model has all parts. Others name it as only the network."""
    name = os.path.basename(path)  # noqa: PTH119 - also for names in manifests
    return not name.startswith(NETWORK)


def layout(path: Path, family: str) -> Layout | None:
    """Detect a model at `path`; None if there is none.

    Raises:
        InvalidRequestError: A directory has several files for a part, or a file has only the
            network of a model.
    """
    if path.is_file():
        return _whole(path, family)
    if any((path / one).exists() for one in (INDEX, "config.json")):
        return None  # A model for diffusers or transformers.
    found: dict[str, str] = {}
    for file in sorted(one for one in path.iterdir() if one.is_file()):
        named = _FILE.fullmatch(file.name)
        if named is None or (named["part"] == CHECKPOINT and not _encodes(file)):
            continue
        part = "model" if named["part"] == NETWORK else named["part"]
        if part in found:
            raise InvalidRequestError(
                f"{display_name(os.fspath(path))}: {found[part]} and {file.name} are the same part "
                "of a model. Move one of them away"
            )
        found[part] = file.name
    if "model" in found:
        return Layout(family, path, tuple(found.values()), found)
    files = [one for one in path.iterdir() if one.is_file() and one.suffix in _SUFFIXES]
    return _whole(files[0], family) if len(files) == 1 else None


def operations_of(path: Path) -> tuple[str, ...]:
    """Return the operation that a model can run, by the tensors in its main file."""
    is_of_videos = any(name.endswith(_OF_VIDEOS) for name in _names(path))
    return ("generate_video",) if is_of_videos else ("generate_image",)


def _whole(path: Path, family: str) -> Layout | None:
    if not _has_network(path):
        return None
    if not _encodes(path):
        raise InvalidRequestError(
            f"{display_name(os.fspath(path))} has only the network of a model. Put it into a "
            "folder as diffusion_model.gguf or diffusion_model.safetensors, with the other parts "
            "(see docs/reference/models.md)"
        )
    return Layout(family, path.parent, (path.name,), {"model": path.name})


def _has_network(path: Path) -> bool:
    if path.suffix == ".gguf":
        return is_image_gguf(path)
    return any(name.startswith(IN_CHECKPOINT) for name in _names(path))


def _encodes(path: Path) -> bool:
    """Whether a file has a text encoder, like all complete models."""
    return any(name.startswith(_ENCODERS) for name in _names(path))


def _names(path: Path) -> Iterable[str]:
    """Return the names of the tensors in a file; empty if it has another format."""
    try:
        return gguf_tensors(path) if path.suffix == ".gguf" else tensors(path)
    except (OSError, ValueError, KeyError, struct.error, InvalidRequestError):
        return ()
