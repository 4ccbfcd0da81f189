"""Writing frames to MP4 and reading frames of videos with `polymux.media.video`."""

from __future__ import annotations

import os
import signal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from polymux import errors
from polymux.engines.base import Cancelled, Request, Token
from polymux.engines.media.engine import LOAD_FRAMES, MediaEngine
from polymux.media.video import read_frames, write_video
from polymux.service.model import Upload
from support import programs
from support.video_files import drawn, facts_of, likeness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

WIDTH, HEIGHT = 96, 64
SIZE = {"width": WIDTH, "height": HEIGHT}


def frames(count: int) -> list[NDArray[numpy.uint8]]:
    return [drawn(WIDTH, HEIGHT, number) for number in range(count)]


@pytest.mark.parametrize("codec", ["auto", "vp9"])
def test_frames_go_into_a_file_and_come_back(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "a.mp4"
    rate = Fraction(30_000, 1001)
    written = write_video(path, [one.data for one in frames(12)], **SIZE, fps=rate, codec=codec)
    assert (written.frames, written.fps, written.bytes) == (12, rate, path.stat().st_size)
    assert written.duration_s == pytest.approx(12 * 1001 / 30_000)
    assert facts_of(path) == (written.codec, WIDTH, HEIGHT, rate, 12)
    raw = tmp_path / "a.rgb"
    read = read_frames(path, raw, **SIZE, fps=rate, max_frames=100)
    assert (read.frames, read.codec, read.input_width) == (12, written.codec, WIDTH)
    samples = numpy.fromfile(raw, numpy.uint8).reshape(12, HEIGHT, WIDTH, 3)
    for found, expected in zip(samples, frames(12), strict=True):
        assert likeness(found, expected) > 30
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.mp4", "a.rgb"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"fps": 0}, r"fps\b.*\b0\b"),
        ({"fps": 9.5}, r"fps\b.*9\.5"),
        ({"fps": Fraction(1, 100_001)}, "fps.*1/100001"),
        ({"width": 0}, "0x64"),
        ({"codec": "av1"}, "'av1'"),
        ({"quality": 0}, r"quality\b.*\b0\b"),
        ({"threads": -1}, r"threads\b.*-1"),
        ({"width": 95}, "bytes"),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, wrong: dict[str, object], words: str
) -> None:
    arguments = {**SIZE, "fps": 8, **wrong}
    with pytest.raises(errors.InvalidRequestError, match=words):
        write_video(tmp_path / "a.mp4", frames(2), **arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        write_video(tmp_path / "a.mp4", ["text"], **SIZE, fps=8)  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []


def test_frames_that_fail_and_a_token_end_the_writing(tmp_path: Path) -> None:
    token = Token()
    given = []

    def counted(cancels: bool) -> Iterator[memoryview]:
        for number, frame in enumerate(frames(9)):
            given.append(number)
            if number == 3:
                if not cancels:
                    raise LookupError("no more")
                token.cancel()
            yield frame.data

    with pytest.raises(LookupError, match="no more"):
        write_video(tmp_path / "a.mp4", counted(False), **SIZE, fps=8)
    with pytest.raises(errors.OperationCancelledError):
        write_video(tmp_path / "a.mp4", counted(True), **SIZE, fps=8, cancel=token)
    assert given == [0, 1, 2, 3] * 2
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_there_are_left_where_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"mine")
    with pytest.raises(errors.OutputExistsError):
        write_video(path, [one.data for one in frames(2)], **SIZE, fps=8, overwrite=False)
    assert path.read_bytes() == b"mine"
    with pytest.raises(errors.OutputFailedError):
        write_video(tmp_path / "none" / "a.mp4", [], **SIZE, fps=8)


def test_ctrl_c_ends_the_reading_of_a_long_film(tmp_path: Path) -> None:
    path, short = tmp_path / "a.mp4", tmp_path / "short.mp4"
    programs.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=640x360:r=60:d=1", "-c:v", "mpeg4", short)
    programs.ffmpeg("-stream_loop", "19", "-i", short, "-c", "copy", path)
    short.unlink()

    class Interrupting:
        asked = 0

        @property
        def cancelled(self) -> bool:
            self.asked += 1
            if self.asked == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return False

    wanted = {"width": 1024, "height": 576, "fps": 60, "max_frames": 1200}
    with pytest.raises(KeyboardInterrupt):
        read_frames(path, tmp_path / "a.rgb", **wanted, cancel=Interrupting())
    assert [one.name for one in tmp_path.iterdir()] == ["a.mp4"]


class _Sink:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def draft(self, expected_bytes: int = 0) -> Path:
        assert expected_bytes == WIDTH * HEIGHT * 3 * 5
        return self.folder / "draft"


def test_the_media_engine_gives_frames_to_models(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    write_video(path, [one.data for one in frames(8)], **SIZE, fps=8)
    file = Upload(path, "film.mp4", "video/mp4", path.stat().st_size)
    asked = Request(LOAD_FRAMES, "", "", {"file": file, **SIZE, "frames": 5, "fps": 4}, frozenset())
    sink: Any = _Sink(tmp_path)
    engine = MediaEngine()
    engine.load({"max_pixels": WIDTH * HEIGHT})
    made = engine.run(asked, sink, Token())
    samples = made.value.pop("samples")
    assert made.value == {"frames": 4, "width": WIDTH, "height": HEIGHT, "fps": 4}
    assert samples.path.stat().st_size == 4 * WIDTH * HEIGHT * 3
    (tmp_path / "draft").unlink()
    engine.load({"max_pixels": WIDTH * HEIGHT - 1})
    with pytest.raises(errors.LimitExceededError):
        engine.run(asked, sink, Token())
    token = Token()
    token.cancel()
    with pytest.raises(Cancelled):
        engine.run(asked, sink, token)
    assert not (tmp_path / "draft").exists()
