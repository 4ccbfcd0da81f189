"""The engines that need a model, and detection of models on disk."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polymux._util.text import display_name, shown
from polymux.engines.registry import ENGINES, loaded
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError
from polymux.models.diffusion_folders import has_pickles, pickles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


#: Engines that need a model, by name.
FAMILIES = {name: one for name, one in ENGINES.items() if one.model_form}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_SPEECH_NEEDS = ("config.json", "model.bin", "tokenizer.json")
_SPEECH_MAY_HAVE = ("preprocessor_config.json", "vocabulary.json", "vocabulary.txt")
_GGUF_MAGIC = b"GGUF"
#: Large models are split into files. The engine gets the path of the first.
_PIECE = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Layout:
    """A model on disk.

    Attributes:
        family: The engine that uses it.
        folder: Directory of its files.
        files: File names relative to the directory, with ``/`` for subdirectories.
        paths: Options of the engine and the files that they name; ``"."`` is the directory.
    """

    family: str
    folder: Path
    files: tuple[str, ...]
    paths: Mapping[str, str]


def is_name(text: object) -> bool:
    """Whether a text is a valid model name: letters, digits and ``._+-``, but not a path."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def checked_name(name: str) -> str:
    """Return the name, or raise `InvalidRequestError` if it is invalid."""
    if not is_name(name):
        raise InvalidRequestError(
            f"invalid model name {shown(name)}. Use at most 100 letters, digits and . _ + -, "
            "starting with a letter or digit"
        )
    return name


def layout_of(path: Path, family: str | None = None) -> Layout:
    """Detect the model at `path`, a file or a directory.

    Args:
        path: The file or directory.
        family: Accept only models of this family. Default: any family.

    Raises:
        InputNotFoundError: The path does not exist.
        InputUnreadableError: Permission was denied.
        InvalidRequestError: It is not a model, not of this family, or incomplete.
    """
    if family is not None and family not in FAMILIES:
        raise InvalidRequestError(
            f"family: unknown family {shown(family)} (known: {', '.join(FAMILIES)})"
        )
    name = display_name(os.fspath(path))
    try:
        if not path.exists():
            raise InputNotFoundError(f"file or directory not found: {name}", input_name=str(path))
        found = _recognized(path.absolute(), family)
    except PermissionError as error:
        raise InputUnreadableError(
            f"cannot read {name}: {error.strerror}", errno=error.errno
        ) from error
    if found is not None:
        return found
    if path.is_file() and _is_pickle(path):
        raise InvalidRequestError(pickles(f"the weights in {name}"))
    if family is None:
        forms = "; ".join(f"{one}: {about.model_form}" for one, about in FAMILIES.items())
        raise InvalidRequestError(f"{name} is not a supported model (supported: {forms})")
    raise InvalidRequestError(
        f"{name} is not a {family} model (expected {FAMILIES[family].model_form})"
    )


def _is_pickle(path: Path) -> bool:
    # The .bin files of ncnn are weights, not pickles.
    return has_pickles([path.name]) and not path.with_suffix(".param").exists()


def _recognized(path: Path, family: str | None) -> Layout | None:
    for one, spec in FAMILIES.items():
        found: Layout | None = (
            loaded(spec.model_layout)(path, one) if family in (None, one) else None
        )
        if found is not None:
            return found
    return None


def gguf_layout(path: Path, family: str) -> Layout | None:
    if path.is_dir():
        if _has_network(path):
            return None  # The parts of a model for images may include a language model.
        found = [one for one in _named(path, ".gguf") if _is_first(one.name)]
        eyes = [one for one in found if "mmproj" in one.name.lower()]
        models = [one for one in found if one not in eyes]
        if len(models) != 1 or len(eyes) > 1:
            return None
        model = models[0]
    else:
        model, eyes = path, []
    if model.suffix.lower() != ".gguf" or not all(map(_is_gguf, [model, *eyes])):
        return None
    if is_image_gguf(model):
        return None
    paths = {"model": model.name}
    if eyes:
        paths["mmproj"] = eyes[0].name
    files = [*_pieces(model), *(one.name for one in eyes)]
    return Layout(family, model.parent, tuple(files), paths)


def _is_first(name: str) -> bool:
    piece = _PIECE.fullmatch(name)
    return piece is None or int(piece["number"]) == 1


def _is_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_GGUF_MAGIC)) == _GGUF_MAGIC
    except OSError:
        return False


def is_image_gguf(path: Path) -> bool:
    """Whether a GGUF file has weights of a model for images or videos."""
    from polymux.engines.chat.gguf import gguf_facts, holds_images

    try:
        return _is_gguf(path) and holds_images(gguf_facts(path))
    except (OSError, ValueError, KeyError, struct.error):
        return False


def _pieces(model: Path) -> list[str]:
    """Return the file itself, or all files of a split model."""
    piece = _PIECE.fullmatch(model.name)
    if piece is None:
        return [model.name]
    names = [
        f"{piece['stem']}-{number:05}-of-{piece['count']}.gguf"
        for number in range(1, int(piece["count"]) + 1)
    ]
    _all_there(model.parent, names)
    return names


def ctranslate2_layout(path: Path, family: str) -> Layout | None:
    if not path.is_dir() or not (path / "model.bin").is_file():
        return None
    _all_there(path, _SPEECH_NEEDS)
    names = [name for name in (*_SPEECH_NEEDS, *_SPEECH_MAY_HAVE) if (path / name).is_file()]
    return Layout(family, path, tuple(names), {"model": "."})


def ncnn_layout(path: Path, family: str) -> Layout | None:
    found = _named(path, ".param") if path.is_dir() else [path]
    if len(found) != 1 or found[0].suffix != ".param":
        return None
    param = found[0]
    weights = param.with_suffix(".bin").name
    _all_there(param.parent, [weights])
    # The engine determines the upscaling factor from the network, because names are unreliable.
    return Layout(family, param.parent, (param.name, weights), {"model": param.name})


def diffusers_layout(path: Path, family: str) -> Layout | None:
    from polymux.models import diffusion_folders

    if path.is_file():
        if path.suffix != ".safetensors":
            return None
        if not diffusion_folders.is_lora(path):
            return None
        return Layout(family, path.parent, (path.name,), {"model": path.name})
    names = diffusion_folders.files_of(path)
    if names is not None:
        return Layout(family, path, names, {"model": "."})
    found = _named(path, ".safetensors")
    if len(found) != 1 or _has_network(path) or _named(path, ".gguf"):
        return None  # Nothing, or a part of a model for stable-diffusion.cpp.
    return diffusers_layout(found[0], family)


def _has_network(folder: Path) -> bool:
    return any(one.name.startswith("diffusion_model") for one in folder.iterdir())


def _named(folder: Path, suffix: str) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.suffix.lower() == suffix and one.is_file())


def _all_there(folder: Path, names: Sequence[str]) -> None:
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise InvalidRequestError(
            f"{display_name(os.fspath(folder))}: incomplete model: missing {', '.join(missing[:5])}"
        )
