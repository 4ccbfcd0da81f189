"""Which options the engines of polymux know: others would do nothing, and nobody would be told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.deprecation import with_new_keys
from polymux._util.text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux.runtime.settings import EngineSettings

_TEXT, _TEXTS = "a text", "an array of texts"
_FLAG, _TABLE = "true or false", "a table"
_COUNT, _WHOLE = "a whole number, 1 or more", "a whole number"

#: Family to its options: each as `load` of its engine reads it, or `models.selection`.
_KNOWN: Mapping[str, Mapping[str, str]] = {
    "media": {"max_concurrency": _COUNT, "limits": _TABLE, "max_pixels": _COUNT},
    "chat": {
        "model": _TEXT, "mmproj": _TEXT, "aliases": _TEXTS, "context": _COUNT, "batch": _COUNT,
        "max_concurrency": _COUNT, "device": _TEXT, "gpu_layers": _WHOLE,
    },
    "speech": {
        "model": _TEXT, "device": _TEXT, "compute": _TEXT, "beam": _COUNT, "batch": _COUNT,
    },
    "rapidocr": {},
    "tesseract": {"program": _TEXT, "language": _TEXT},
    "diffusion": {
        "models": _TABLE, "loras": _TABLE, "max_concurrency": _COUNT, "device": _TEXT,
        "dtype": _TEXT, "offload": _TEXT, "attention": _TEXT, "max_pixels": _COUNT,
        "untiled_pixels": _COUNT,
        "non_commercial": _FLAG, "tiny_vae": _FLAG, "previews": _FLAG, "upscaler": _TEXT,
        "upscaler_factor": _COUNT, "max_detail_pixels": _COUNT,
    },
    "upscale": {
        "model": _TEXT, "factor": _COUNT, "input": _TEXT, "output": _TEXT, "tile": _COUNT,
        "max_pixels": _COUNT,
    },
}  # fmt: skip
_RENAMED = {
    "slots": "max_concurrency", "names": "aliases", "most_pixels": "max_pixels",
    "most_detail_pixels": "max_detail_pixels", "tiny_decoder": "tiny_vae",
    "enlarger": "upscaler", "enlarger_factor": "upscaler_factor",
}  # fmt: skip
#: Options that name files, or folders of them.
_FILES = {"chat": ("model", "mmproj"), "speech": ("model",), "upscale": ("model",)}


def with_new_options(
    family: str, options: Mapping[str, Any], warn: Callable[[str], object], prefix: str = ""
) -> Mapping[str, Any]:
    """Options under their new names; an engine of the operator's own has names of its own."""
    if family not in _KNOWN or not _RENAMED.keys() & options.keys():
        return options
    return with_new_keys(options, _RENAMED, warn, prefix)


def option_problems(family: str, options: Mapping[str, Any]) -> list[str]:
    """What is wrong with an engine's options; nothing of an engine of one's own, nobody knows it.

    Example:
        >>> from polymux.runtime.engine_options import option_problems
        >>> option_problems("tesseract", {"language": 5})
        ['language=5: must be a text']
        >>> option_problems("tesseract", {"lang": "deu"})
        ['lang is not known: there is program, language']
    """
    known = _KNOWN.get(family)
    if known is None:
        return []
    problems = []
    for name, value in options.items():
        if name not in known:
            there = f"there is {', '.join(known)}" if known else f"{family} has none"
            problems.append(f"{shown(name)[1:-1]} is not known: {there}")
        elif not _is_right(known[name], value):
            problems.append(f"{name}={shown(value)}: must be {known[name]}")
    return problems


def missing_files(engines: Mapping[str, EngineSettings]) -> list[str]:
    """The files of engines that are not there; others are names of the catalogue's models."""
    found = []
    for name, engine in engines.items():
        for option in _FILES.get(engine.family, ()):
            named = engine.options.get(option)
            if not isinstance(named, str) or "/" not in named:
                continue
            path = Path(named).expanduser()
            if not path.exists() and not path.with_suffix(".bin").exists():
                found.append(
                    f"engines.{name}.options.{option}={shown(named)}: there is no such file"
                )
    return found


def _is_right(kind: str, value: object) -> bool:
    if kind == _TEXTS:
        return isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
    if kind == _COUNT:
        return type(value) is int and value >= 1
    plain = {_TEXT: str, _FLAG: bool, _TABLE: dict, _WHOLE: int}
    return type(value) is plain[kind]
