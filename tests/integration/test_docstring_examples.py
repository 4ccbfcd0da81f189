"""Every example in a docstring of the package runs, in a folder with talk.mp4 and song.flac."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings
from typing import TYPE_CHECKING

import polymux
import pytest
from support import programs

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

NOT_IMPORTED = {"polymux._native._media", "polymux.__main__"}


def modules() -> list[ModuleType]:
    """The pure Python modules of the package."""
    names = [info.name for info in pkgutil.walk_packages(polymux.__path__, "polymux.")]
    return [polymux, *map(importlib.import_module, sorted({*names} - NOT_IMPORTED))]


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [
        test
        for module in modules()
        for test in finder.find(module, module.__name__)
        if test.examples
    ]


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    sine = ("-f", "lavfi", "-i", "sine=frequency=330:duration=2")
    picture = ("-f", "lavfi", "-i", "testsrc2=size=160x120:rate=10:duration=2")
    programs.ffmpeg(*picture, *sine, "-c:v", "mpeg4", "-c:a", "aac", folder / "talk.mp4")
    programs.ffmpeg(*sine, "-metadata", "title=Song", folder / "song.flac")
    return folder


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_example_runs(
    example: doctest.DocTest, media: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(media)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
            example, out=said.append
        )
    assert results.attempted > 0
    assert results.failed == 0, "".join(said)


def test_every_operation_has_examples() -> None:
    """Were none collected, all of the above would pass."""
    names = {example.name for example in examples()}
    for operation in ("convert_to_mp3", "convert_many"):
        assert {f"polymux.media.conversion.{operation}", f"polymux.aio.{operation}"} <= names
    for operation in ("probe", "decode_audio"):
        assert {f"polymux.media.probe.{operation}", f"polymux.aio.{operation}"} <= names
