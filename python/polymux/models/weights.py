"""How much memory a model's weights take, by the heads of their files."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from polymux.models.diffusion_folders import APART, CHECKPOINT, tensors, variant_of, weights_of

if TYPE_CHECKING:
    from pathlib import Path


def weight_bytes(path: Path, number_bytes: int) -> int:
    """What the weights of a model take once they are loaded.

    Args:
        path: A folder in diffusers' form; of several variants, the one that is loaded counts.
        number_bytes: Of each number in memory, whatever it is in the file.

    Raises:
        InvalidRequestError: A file is no safetensors.
        OSError: A file cannot be read.

    Example:
        >>> from pathlib import Path
        >>> from polymux.models.weights import weight_bytes
        >>> weight_bytes(Path("/nonexistent"), 2)
        0
    """
    if not path.is_dir():
        return 0
    if (path / CHECKPOINT).is_file():
        return _numbers(path / CHECKPOINT) * number_bytes
    variant = variant_of(path) or ""
    count = 0
    for file in path.rglob("*.safetensors"):
        found = weights_of(file.name)
        if (
            found is None
            or file.parent.name in APART
            or not _is_loaded(file, found.variant, variant)
        ):
            continue
        count += _numbers(file)
    return count * number_bytes


def _numbers(file: Path) -> int:
    return sum(prod(one["shape"]) for one in tensors(file).values())


def _is_loaded(file: Path, own: str, variant: str) -> bool:
    """Whether it is of the variant that is loaded, or plain where that is not beside it."""
    if own == variant:
        return True
    beside = (weights_of(one.name) for one in file.parent.iterdir())
    return own == "" and all(one is None or one.variant != variant for one in beside)
