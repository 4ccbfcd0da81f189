"""Model directories as written by diffusers' `save_pretrained`, and the files of a model.

See https://huggingface.co/docs/diffusers/using-diffusers/other-formats. ``model_index.json`` names
the components of a pipeline, each in a subdirectory. A single component has its ``config.json`` at
the top level. All weights of a pipeline can also be in one file, ``checkpoint.safetensors``, at the
top level. Weights are safetensors (https://huggingface.co/docs/safetensors); other formats are
pickles, which can run any code when they are loaded. This module does not import diffusers.
"""

from __future__ import annotations

import json
import os
import re
import struct
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import display_name
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

INDEX = "model_index.json"
#: All weights of a pipeline in one file, in addition to the components named by `INDEX`.
CHECKPOINT = "checkpoint.safetensors"
#: Components that are never loaded with a model: they have their own roles or are not needed.
APART = ("safety_checker", "feature_extractor", "image_encoder", "watermark")
#: Spectrogram images from which music generation starts.
SEEDS = "seed_images"
#: Preferred variant if a repository has several: half precision.
HALF = "fp16"
_LARGEST_JSON_BYTES = 1 << 20
_LARGEST_HEADER_BYTES = 32 << 20
_LENGTH = struct.Struct("<Q")
_CHECKER = "StableDiffusionSafetyChecker"
_WEIGHTS = re.compile(
    r"(?P<stem>diffusion_pytorch_model|model|pytorch_lora_weights)(\.(?P<variant>[a-z0-9_]+))?"
    r"(-\d{5}-of-\d{5})?\.safetensors"
)
_SHARDS = re.compile(
    r"(?P<stem>diffusion_pytorch_model|model)\.safetensors\.index(\.(?P<variant>[a-z0-9_]+))?\.json"
)
_PICKLE = re.compile(
    r"(?P<stem>diffusion_pytorch_model|pytorch_model)(\.(?P<variant>[a-z0-9_]+))?\.bin"
)
_PICKLED = (".bin", ".ckpt", ".pt", ".pth", ".pkl")
_SMALL = (".json", ".txt", ".model")
_CONFIG = "config.json"
#: In a model with all its parts in one file, names of the network's tensors begin with this.
IN_CHECKPOINT = "model.diffusion_model."
_LORA_MARKS = ("lora_", ".lora", "lora.", ".alpha")


class Weights(NamedTuple):
    """Information from the name of a weights file, or of the index of a sharded one.

    Attributes:
        variant: Such as ``"fp16"``; empty for the default variant.
        is_list: Whether it is the index of a sharded file.
    """

    variant: str
    is_list: bool


def pipeline_class(folder: Path) -> str:
    """Return the class of a directory's pipeline; empty if its index is missing or invalid."""
    try:
        found = _json(folder / INDEX).get("_class_name")
    except PermissionError:
        return ""
    return found if isinstance(found, str) else ""


def weights_of(name: str) -> Weights | None:
    """Parse the name of a file; None unless it names safetensors weights.

    Example:
        >>> from polymux.models.diffusion_folders import weights_of
        >>> weights_of("diffusion_pytorch_model.fp16.safetensors")
        Weights(variant='fp16', is_list=False)
    """
    for form, is_list in ((_WEIGHTS, False), (_SHARDS, True)):
        found = form.fullmatch(name)
        if found is not None:
            return Weights(found["variant"] or "", is_list)
    return None


def needed_names(names: Iterable[str], prefer: tuple[str, ...]) -> list[str]:
    """Return the files of a directory from which its component is loaded.

    These are the small files and the weights of one variant. `prefer` lists variants, best first.
    Pickles, ONNX, Flax and other variants are left out.
    """
    known = {name: weights_of(name) for name in names}
    variants = {one.variant for one in known.values() if one is not None and not one.is_list}
    chosen = next((one for one in (*prefer, *sorted(variants)) if one in variants), None)
    return sorted(
        name
        for name, one in known.items()
        if (one is not None and one.variant == chosen)
        or (one is None and name.endswith(_SMALL) and not name.startswith("."))
    )


def has_weights(names: Iterable[str]) -> bool:
    """Whether the files include safetensors weights."""
    return any(one is not None and not one.is_list for one in map(weights_of, names))


def has_pickles(names: Iterable[str]) -> bool:
    """Whether the files include pickles, which can run any code when they are loaded."""
    return any(name.endswith(_PICKLED) for name in names)


def convertible(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the pickle with a component's weights and its name as safetensors.

    None if there is no unsharded pickle.
    """
    found = {one["variant"] or "": one for one in map(_PICKLE.fullmatch, names) if one is not None}
    chosen = found.get(HALF) or found.get("")
    if chosen is None:
        return None
    variant = f".{HALF}" if chosen["variant"] else ""
    return chosen[0], f"{chosen['stem'].removeprefix('pytorch_')}{variant}.safetensors"


def pickles(what: str) -> str:
    """The error for weights that exist only as pickles."""
    return (
        f"{what} are pickles, which are not supported because loading one can run any code. "
        "Convert them to safetensors (see docs/reference/models.md), then run "
        "'polymux models add NAME PATH'"
    )


def files_of(folder: Path) -> tuple[str, ...] | None:
    """Return the files of the model in a directory, or None if it is not in diffusers format.

    Raises:
        InvalidRequestError: A component is missing, or the weights are pickles.
        PermissionError: The directory is not readable.
    """
    index = _json(folder / INDEX)
    if isinstance(index.get("_class_name"), str):
        return _of_pipeline(folder, index)
    about = _json(folder / _CONFIG)
    if isinstance(about.get("_class_name"), str) or about.get("architectures") == [_CHECKER]:
        _check_weights(folder, folder)
        kept = (_CONFIG, "preprocessor_config.json")
        names = [one for one in _chosen(folder) if one in kept or weights_of(one) is not None]
        return tuple(names)
    return None


def variant_of(folder: Path) -> str | None:
    """Return the variant to pass to a loader, or None if the default weights exist."""
    for place in (folder, *sorted(one for one in folder.iterdir() if one.is_dir())):
        if place.name in APART:
            continue
        found = {one.variant for one in map(weights_of, _files(place)) if one is not None}
        if found and "" not in found:
            return HALF if HALF in found else min(found)
    return None


def _of_pipeline(folder: Path, index: dict[str, Any]) -> tuple[str, ...]:
    in_one_file = (folder / CHECKPOINT).is_file()
    names = [INDEX, CHECKPOINT] if in_one_file else [INDEX]
    for part, one in sorted(index.items()):
        if not isinstance(one, list) or not one or one[0] is None or part in APART:
            continue
        place = folder / part
        if "/" in part or part.startswith(".") or not place.is_dir():
            raise InvalidRequestError(
                f"{_shown(folder)}: incomplete model: missing directory {display_name(part)}"
            )
        chosen = _chosen(place)
        if in_one_file:
            chosen = [name for name in chosen if weights_of(name) is None]
        elif (place / _CONFIG).is_file():
            _check_weights(folder, place)
        names += [f"{part}/{name}" for name in chosen]
    seeds = folder / SEEDS
    if seeds.is_dir():
        names += [f"{SEEDS}/{one}" for one in sorted(_files(seeds)) if one.endswith(".png")]
    return tuple(names)


def _chosen(folder: Path) -> list[str]:
    """Select as the engine does: the default weights if they exist, else a variant."""
    return needed_names(_files(folder), ("", HALF))


def _files(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if one.is_file()]


def _check_weights(folder: Path, part: Path) -> None:
    names = _files(part)
    if has_weights(names):
        return
    of = "" if part == folder else f" of {part.name}"
    if has_pickles(names):
        raise InvalidRequestError(pickles(f"the weights{of} in {_shown(folder)}"))
    raise InvalidRequestError(f"{_shown(folder)}: incomplete model: missing weights{of}")


def is_lora(path: Path) -> bool:
    """Whether a file is a LoRA; False for a model with all its parts.

    Raises:
        InvalidRequestError: It is not a safetensors file, or neither.
        OSError: It cannot be read.
    """
    names = tensors(path)
    if any(mark in name for name in names for mark in _LORA_MARKS):
        return True
    if any(name.startswith(IN_CHECKPOINT) for name in names):
        return False
    marks = ", ".join(map(repr, _LORA_MARKS))
    raise InvalidRequestError(f"{_shown(path)} is not a LoRA: no tensor name contains {marks}")


def tensors(path: Path) -> dict[str, Any]:
    """Return the tensors of a safetensors file by name, with ``dtype``, ``shape`` and offsets.

    Raises:
        InvalidRequestError: It is not a safetensors file.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(_LENGTH.size)
        length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
        data = file.read(length) if 2 <= length <= _LARGEST_HEADER_BYTES else b""
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        plain = None
    if not isinstance(plain, dict):
        raise InvalidRequestError(f"{_shown(path)} is not a safetensors file")
    return {name: one for name, one in plain.items() if name != "__metadata__"}


def weight_bytes(path: Path, number_bytes: int) -> int:
    """Return the memory in bytes that a model's weights need after loading.

    Args:
        path: A directory in diffusers format. Only the variant that would be loaded counts.
        number_bytes: Bytes per number in memory, independent of the format in the file.

    Raises:
        InvalidRequestError: A file is not a safetensors file.
        OSError: A file cannot be read.
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
    """Whether a file has the selected variant, or is the default if that variant is missing."""
    if own == variant:
        return True
    beside = (weights_of(one.name) for one in file.parent.iterdir())
    return own == "" and all(one is None or one.variant != variant for one in beside)


def _json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            plain = json.loads(file.read(_LARGEST_JSON_BYTES))
    except PermissionError:
        raise
    except (OSError, ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _shown(path: Path) -> str:
    return display_name(os.fspath(path))
