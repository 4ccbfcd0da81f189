"""Preloaded libraries between a program and the C library, compiled for the tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from support import programs

if TYPE_CHECKING:
    from pathlib import Path


def compiled(source: str | Path, folder: Path, name: str) -> Path:
    """Compile NAME.so in a folder, from a file or from C text."""
    made = folder / f"{name}.so"
    if isinstance(source, str):
        text, source = source, folder / f"{name}.c"
        source.write_text(text)
    programs.run("gcc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl")
    return made


def preloaded(library: Path) -> dict[str, str]:
    """The LD_PRELOAD variable with this library, after those that the tests already load."""
    return {"LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {library}".strip()}
