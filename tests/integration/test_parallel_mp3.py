"""Converting one long file gives the same bytes for every thread count, and ffmpeg's frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux._native import _media
from support.identity import CBR_128, V0, V2, Mode, abr, coded
from support.mp3_frames import audio_frames, check_decodable, check_xing, parse
from support.sounds import Sound

if TYPE_CHECKING:
    from support.corpus import Corpus

DATA = Path(__file__).parents[1] / "data"
SECOND = 44_100
#: Files shorter than 15 s are never split.
LONG = Sound(samples=20 * SECOND + 1)
ABR_160 = abr(160)
#: The number of threads that can run in parallel.
CORES = _media.available_cores()


@pytest.fixture
def wave(corpus: Corpus) -> Path:
    return corpus.wave(LONG)


def on_threads(source: Path, mode: Mode, *counts: int, **options: Any) -> list[polymux.MediaFile]:
    """Convert with each thread count and with the default, and check that the bytes are equal."""
    chosen: list[dict[str, Any]] = [{"threads": count} for count in counts]
    files = [polymux.convert_to_mp3(source, **mode.ours, **options, **one) for one in (*chosen, {})]
    assert {file.read() for file in files} == {files[0].read()}
    return files


def test_segments_at_a_constant_bitrate(corpus: Corpus, wave: Path) -> None:
    one, eight, _ = on_threads(wave, CBR_128, 1, 8)
    assert audio_frames(one.read()) == audio_frames(corpus.reference(wave, CBR_128.theirs))
    assert one.report.seams == 0
    # Without a segment boundary, this test would compare one encoder with itself.
    assert CORES == 1 or eight.report.seams > 0


@pytest.mark.parametrize(("name", "bitrate"), [("22050_mono", "128k"), ("44100_dual_mono", "64k")])
def test_encoders_that_agree_with_different_states(name: str, bitrate: str) -> None:
    """Each has a place where a new encoder writes equal frames before it has an equal state."""
    source = DATA / f"mp3_state_{name}.flac"
    for threads in (1, 2, 8):
        polymux.convert_to_mp3(source, bitrate=bitrate, threads=threads, verify="ffmpeg")


@pytest.mark.parametrize("mode", [V0, ABR_160], ids=str)
def test_threads_change_nothing_in_other_modes(corpus: Corpus, wave: Path, mode: Mode) -> None:
    """Segment boundaries depend only on the duration."""
    files = on_threads(wave, mode, 1, 8)
    assert {file.report.seams for file in files} == {files[0].report.seams}
    ours, theirs = parse(files[0].read()), parse(corpus.reference(wave, mode.theirs))
    check_decodable(ours)
    check_xing(ours)
    if files[0].report.identical:
        assert coded(ours) == coded(theirs)


class WriteOnly:
    """A destination without seek()."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, data: bytes | memoryview) -> int:
        self.content += data
        return len(data)


@pytest.mark.parametrize("mode", [CBR_128, V2], ids=str)
def test_a_destination_that_cannot_go_back(wave: Path, mode: Mode) -> None:
    destination = WriteOnly()
    polymux.convert_to_mp3(wave, destination, **mode.ours, threads=8)  # type: ignore[arg-type]
    expected = polymux.convert_to_mp3(wave, **mode.ours).read()
    assert audio_frames(bytes(destination.content)) == audio_frames(expected)


ENDLESS = [{"bitrate": 128_000}, {"bitrate": 112_000, "abr": True, "threads": 8}]


@pytest.mark.parametrize("options", ENDLESS, ids=str)
def test_progress_only_grows_and_what_it_raises_leaves_no_file(
    long_wave: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    positions: list[float] = []

    def on_progress(progress: polymux.Progress) -> None:
        positions.append(progress.position_s)
        if progress.position_s > 30:
            raise LookupError("seen enough")

    with pytest.raises(LookupError, match="seen enough"):
        polymux.convert_to_mp3(long_wave, tmp_path / "out.mp3", on_progress=on_progress, **options)
    assert positions == sorted(positions)
    assert list(tmp_path.iterdir()) == []
