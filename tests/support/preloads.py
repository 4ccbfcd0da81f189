"""Libraries that stand between a program and the system's, made by the C compiler."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from support import programs

if TYPE_CHECKING:
    from pathlib import Path


def compiled(source: str | Path, folder: Path, name: str) -> Path:
    """The library NAME.so in a folder, of a file or of a text in C."""
    made = folder / f"{name}.so"
    if isinstance(source, str):
        text, source = source, folder / f"{name}.c"
        source.write_text(text)
    programs.run("gcc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl")
    return made


def preloaded(library: Path) -> dict[str, str]:
    """The variable by which a program loads it, behind what is loaded for tests anyway."""
    return {"LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {library}".strip()}
