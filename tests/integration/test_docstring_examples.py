"""Run every docstring example of the package in a folder with talk.mp4 and song.flac."""

from __future__ import annotations

import doctest
import importlib
import warnings
from pathlib import Path

import polymux
import pytest
from support import programs

PACKAGE = Path(polymux.__file__).parent
#: Only the tests import these modules: importing all takes seconds in every process that collects
#: tests.
MODULES = [
    ".".join(("polymux", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in path.read_text()
]
#: Without these names, the tests would pass even if no examples were found.
CERTAIN = {"media.conversion.convert_to_mp3", "media.conversion.convert_many", "media.probe.probe",
           "media.probe.decode_audio", "aio.convert_to_mp3", "aio.convert_many", "aio.probe",
           "aio.decode_audio"}  # fmt: skip


def examples(module: str) -> list[doctest.DocTest]:
    module = module.removesuffix(".__init__")
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = finder.find(importlib.import_module(module), module)
    return [test for test in found if test.examples]


def test_examples_are_found() -> None:
    modules = {f"polymux.{name.rpartition('.')[0]}" for name in CERTAIN}
    found = {test.name for module in modules for test in examples(module)}
    assert found >= {f"polymux.{name}" for name in CERTAIN}


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    sine = ("-f", "lavfi", "-i", "sine=frequency=330:duration=2")
    picture = ("-f", "lavfi", "-i", "testsrc2=size=160x120:rate=10:duration=2")
    programs.ffmpeg(*picture, *sine, "-c:v", "mpeg4", "-c:a", "aac", folder / "talk.mp4")
    programs.ffmpeg(*sine, "-metadata", "title=Song", folder / "song.flac")
    return folder


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module: str, media: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(media)
    output: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for example in examples(module):
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            results = runner.run(example, out=output.append)
            assert results.attempted > 0
            assert results.failed == 0, "".join(output)
