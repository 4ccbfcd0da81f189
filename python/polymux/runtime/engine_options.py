"""Which options the engines of polymux know: others would do nothing, and nobody would be told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.deprecation import with_new_keys
from polymux._util.settings import TableReader
from polymux._util.text import shown
from polymux.engines.registry import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux.runtime.settings import EngineSettings

_RENAMED = {
    "slots": "max_concurrency", "names": "aliases", "most_pixels": "max_pixels",
    "most_detail_pixels": "max_detail_pixels", "tiny_decoder": "tiny_vae",
    "enlarger": "upscaler", "enlarger_factor": "upscaler_factor",
}  # fmt: skip


def with_new_options(
    family: str, options: Mapping[str, Any], warn: Callable[[str], object], prefix: str = ""
) -> Mapping[str, Any]:
    """Options under their new names; an engine of the operator's own has names of its own."""
    if family not in ENGINES or not _RENAMED.keys() & options.keys():
        return options
    return with_new_keys(options, _RENAMED, warn, prefix)


def option_problems(family: str, options: object) -> list[str]:
    """What is wrong with an engine's options; those of an operator's own engine are not checked.

    Example:
        >>> from polymux.runtime.engine_options import option_problems
        >>> option_problems("tesseract", {"language": 5})
        ['options.language=5: must be a string']
    """
    reader = TableReader()
    if family in ENGINES:
        reader.values(ENGINES[family].options, options, "options.")
    return reader.problems


def missing_files(engines: Mapping[str, EngineSettings]) -> list[str]:
    """The files of engines that are not there; others are names of the catalogue's models."""
    found = []
    for name, engine in engines.items():
        spec = ENGINES.get(engine.family)
        for option in spec.files if spec else ():
            named = engine.options.get(option)
            if not isinstance(named, str) or "/" not in named:
                continue
            path = Path(named).expanduser()
            if not path.exists() and not path.with_suffix(".bin").exists():
                found.append(
                    f"engines.{name}.options.{option}={shown(named)}: there is no such file"
                )
    return found
