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

NOT_IMPORTED = {"polymux._native._media", "polymux.__main__"}
#: Were none collected, all of the tests would pass.
CERTAIN = {"media.conversion.convert_to_mp3", "media.conversion.convert_many", "media.probe.probe",
           "media.probe.decode_audio", "aio.convert_to_mp3", "aio.convert_many", "aio.probe",
           "aio.decode_audio"}  # fmt: skip


def examples() -> list[doctest.DocTest]:
    names = {info.name for info in pkgutil.walk_packages(polymux.__path__, "polymux.")}
    modules = [polymux, *map(importlib.import_module, sorted(names - NOT_IMPORTED))]
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for one in modules for test in finder.find(one, one.__name__) if test.examples]
    assert {test.name for test in found} >= {f"polymux.{name}" for name in CERTAIN}
    return found


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
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        results = runner.run(example, out=said.append)
    assert results.attempted > 0
    assert results.failed == 0, "".join(said)
