"""Folders as diffusers' `save_pretrained` writes them: which files of one are the model.

https://huggingface.co/docs/diffusers/using-diffusers/other-formats: ``model_index.json`` names the
parts, each in a folder of its own; a part alone has its ``config.json`` at the top. The weights of
all parts may lie in one file at the top, ``checkpoint.safetensors``. Weights are
safetensors (https://huggingface.co/docs/safetensors): other forms are pickles, and those run
whatever they contain. Nothing here imports diffusers.
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
#: All weights of a pipeline in one file, as people share them, beside what `INDEX` names.
CHECKPOINT = "checkpoint.safetensors"
#: Parts that are never loaded with a model: they are roles of their own, or not needed.
APART = ("safety_checker", "feature_extractor", "image_encoder", "watermark")
#: Pictures of sound that music begins with, beside the parts.
SEEDS = "seed_images"
#: Of a repository in which both are, the half as large one is taken.
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
_LORA_MARKS = ("lora_", ".lora", "lora.", ".alpha")


class Weights(NamedTuple):
    """What a name says of a file of weights, or of the list of its pieces.

    Attributes:
        variant: Such as ``"fp16"``; empty for the plain ones.
        is_list: Whether it is the list.
    """

    variant: str
    is_list: bool


def weights_of(name: str) -> Weights | None:
    """What a file's name says; None where it names no weights in safetensors.

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
    """Of the files of one folder those that its part is loaded from: small ones, and one variant.

    `prefer` has variants, the best first. Pickles, ONNX, Flax and other variants are left out.
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
    """Whether weights in safetensors are among them."""
    return any(one is not None and not one.is_list for one in map(weights_of, names))


def has_pickles(names: Iterable[str]) -> bool:
    """Whether files that run what they contain are among them."""
    return any(name.endswith(_PICKLED) for name in names)


def convertible(names: Iterable[str]) -> tuple[str, str] | None:
    """Of the files of one folder the pickle that a part is loaded from, and its name as
    safetensors; None where there is none in one piece.
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
    """The files of the model in a folder, or None where it is none in diffusers' form.

    Raises:
        InvalidRequestError: It is one, and lacks a part, or has pickles in the place of weights.
        PermissionError: It may not be read.
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
    """The variant that a loader of a pipeline or part has to be told; None for plain weights."""
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
            raise InvalidRequestError(f"the model in {_shown(folder)} lacks {display_name(part)}")
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
    """As the engine loads them: the plain weights where there are some, else a variant."""
    return needed_names(_files(folder), ("", HALF))


def _files(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if one.is_file()]


def _check_weights(folder: Path, part: Path) -> None:
    names = _files(part)
    if has_weights(names):
        return
    what = f"the model in {_shown(folder)}" if part == folder else part.name
    if has_pickles(names):
        raise InvalidRequestError(pickles(f"the weights of {what} in {_shown(folder)}"))
    raise InvalidRequestError(f"the model in {_shown(folder)} lacks the weights of {part.name}")


def check_lora(path: Path) -> None:
    """Checks that a file holds a LoRA: small additions to a model's weights.

    Raises:
        InvalidRequestError: It is no safetensors, or holds something else.
        OSError: It cannot be read.
    """
    names = tensors(path)
    if any(mark in name for name in names for mark in _LORA_MARKS):
        return
    if any(name.startswith("model.diffusion_model.") for name in names):
        raise InvalidRequestError(
            f"{_shown(path)} is a whole model in one file: make a folder of it "
            "(docs/reference/models.md says how), and give that"
        )
    raise InvalidRequestError(f"{_shown(path)} is no LoRA: none of its tensors is one's")


def tensors(path: Path) -> dict[str, Any]:
    """The names of the tensors in a safetensors file, with their ``dtype``, ``shape`` and place.

    Raises:
        InvalidRequestError: It is no such file.
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
        raise InvalidRequestError(f"{_shown(path)} is no file of safetensors")
    return {name: one for name, one in plain.items() if name != "__metadata__"}


def weight_bytes(path: Path, number_bytes: int) -> int:
    """What the weights of a model take once they are loaded.

    Args:
        path: A folder in diffusers' form; of several variants, the one that is loaded counts.
        number_bytes: Of each number in memory, whatever it is in the file.

    Raises:
        InvalidRequestError: A file is no safetensors.
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
    """Whether it is of the variant that is loaded, or plain where that is not beside it."""
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
