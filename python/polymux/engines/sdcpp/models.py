"""Files of models for stable-diffusion.cpp.

A model is one file with everything (a checkpoint), or a directory of parts. Files are GGUF or
safetensors.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from polymux._util.text import display_name
from polymux.errors import InvalidRequestError
from polymux.models.diffusion_folders import IN_CHECKPOINT, tensors
from polymux.models.families import Layout, is_image_gguf

if TYPE_CHECKING:
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


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether the main file of a model has all parts. Others name it as only the network."""
    name = os.path.basename(path)  # noqa: PTH119 - also for names in manifests
    return not name.startswith(NETWORK)


def layout(path: Path, family: str) -> Layout | None:
    """Detect a model at `path`; None if there is none.

    Raises:
        InvalidRequestError: A directory has several files for a part.
    """
    if path.is_file():
        if not _is_whole(path):
            return None
        return Layout(family, path.parent, (path.name,), {"model": path.name})
    found: dict[str, str] = {}
    for file in sorted(one for one in path.iterdir() if one.is_file()):
        named = _FILE.fullmatch(file.name)
        if named is None:
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
    files = [one for one in path.iterdir() if one.is_file() and _is_whole(one)]
    return layout(files[0], family) if len(files) == 1 else None


def _is_whole(path: Path) -> bool:
    if path.suffix == ".gguf":
        return is_image_gguf(path)
    try:
        return path.suffix == ".safetensors" and any(
            name.startswith(IN_CHECKPOINT) for name in tensors(path)
        )
    except InvalidRequestError:
        return False
