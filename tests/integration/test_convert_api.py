"""`convert_to_mp3`, `probe` and `decode_audio` with real files."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.media import options
from support.mp3_frames import audio_frames

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus


@pytest.fixture
def wave(corpus: Corpus) -> Path:
    return corpus.path("wav_s16")


def test_every_destination_gets_the_same_frames(corpus: Corpus, wave: Path, tmp_path: Path) -> None:
    in_memory = polymux.convert_to_mp3(wave, bitrate="128k")
    assert in_memory.data is not None
    assert in_memory.path is None
    assert audio_frames(in_memory.data) == audio_frames(corpus.reference(wave))

    on_disk = polymux.convert_to_mp3(wave, tmp_path / "a.mp3", bitrate=128_000)
    assert (on_disk.path, on_disk.data) == (tmp_path / "a.mp3", None)
    assert on_disk.read() == in_memory.data

    memory_file = io.BytesIO(b"before")
    memory_file.seek(0, io.SEEK_END)
    given_away = polymux.convert_to_mp3(wave, memory_file, bitrate=128_000)
    assert memory_file.getvalue() == b"before" + in_memory.data
    assert given_away.size_bytes == len(in_memory.data)
    with pytest.raises(polymux.InvalidRequestError):
        given_away.read()


def test_every_source_gives_the_same_file(wave: Path) -> None:
    content = wave.read_bytes()
    wanted = polymux.convert_to_mp3(wave).read()
    with wave.open("rb") as file:
        sources = (file, str(wave), content, bytearray(content), memoryview(content))
        for source in (*sources, io.BytesIO(content)):
            assert polymux.convert_to_mp3(source).read() == wanted


def test_the_report_and_progress_tell_what_was_made(corpus: Corpus, wave: Path) -> None:
    seen: list[tuple[polymux.Progress, int]] = []
    file = polymux.convert_to_mp3(
        wave, bitrate="128k", start="0:00:00.25", end="0:01",
        on_progress=lambda progress: seen.append((progress, threading.get_ident())),
    )  # fmt: skip
    reference = corpus.reference(wave, input_arguments=("-ss", "0.25", "-to", "1.0"))
    assert audio_frames(file.read()) == audio_frames(reference)
    report, last = file.report, seen[-1][0]
    assert report.bytes == file.size_bytes == len(file.read()) == last.bytes_written
    assert (report.sample_rate_hz, report.channels, report.mode) == (44_100, 2, "cbr")
    assert (report.container, report.codec, report.audio_stream) == ("wav", "pcm_s16le", 0)
    assert report.duration_s == pytest.approx(0.75)
    assert last.position_s == pytest.approx(0.75)
    assert report.elapsed_s > 0
    assert report.encoder.startswith("LAME ")
    assert report.warnings == ()
    assert last.fraction == 1.0
    assert {thread for _, thread in seen} == {threading.get_ident()}


def test_tags_can_be_replaced(corpus: Corpus) -> None:
    source = corpus.path("tags_flac")
    replaced = polymux.convert_to_mp3(source, tags={"title": "Übung 東京", "artist": "A"})
    tags = polymux.probe(replaced.read()).tags
    assert (tags["title"], tags["artist"]) == ("Übung 東京", "A")
    assert "album" not in tags


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({"bitrate": 1}, ["bitrate"]),
        ({"bitrate": "loud"}, ["loud"]),
        ({"vbr_quality": 10}, ["vbr_quality"]),
        ({"vbr_quality": float("nan")}, ["vbr_quality"]),
        ({"sample_rate": 44_000, "channels": 3}, ["sample_rate", "channels"]),
        ({"preset": "loud"}, ["preset"]),
        ({"tags": "keep"}, ["tags"]),
        ({"cover": "keep"}, ["cover"]),
        ({"id3v2_version": 2}, ["id3v2_version"]),
        ({"start": 5, "end": 4}, ["end"]),
        ({"start": -1}, ["start"]),
        ({"threads": -1}, ["threads"]),
        ({"verify": "some"}, ["verify", "sequential"]),
        ({"verify": "\x1b[31m"}, ["verify"]),
        ({"abr": True}, ["abr"]),
        ({"tags": {"title": "\ud800"}}, ["title"]),
        ({"limits": polymux.Limits(channels=-(2**40))}, ["limits.channels"]),
    ],
)
def test_options_out_of_range(wave: Path, chosen: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(polymux.InvalidRequestError) as caught:
        polymux.convert_to_mp3(wave, **chosen)
    assert [name for name in names if name not in str(caught.value)] == []
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bitrate", 128.0), ("bitrate", True), ("vbr_quality", "2"), ("preset", None),
        ("strict", 1), ("exact", None), ("verify", True), ("overwrite", "no"),
        ("tags", {"title": 1}), ("limits", {"channels": 2}), ("start", b"1"), ("bitrat", 128),
    ],
)  # fmt: skip
def test_options_of_the_wrong_type_or_name(wave: Path, name: str, value: object) -> None:
    with pytest.raises(TypeError, match=name):
        polymux.convert_to_mp3(wave, **{name: value})  # type: ignore[arg-type]


def test_every_option_reaches_the_native_field() -> None:
    plain = {
        "abr": True, "preset": "best", "channels": 1, "audio_stream": 2, "cover": "none",
        "id3v2_version": 4, "identical_file": True, "threads": 3, "exact": True, "strict": True,
    }  # fmt: skip
    built = options.native_options(
        plain
        | {"bitrate": 96_000, "sample_rate": 44_100, "start": 1, "end": "2.5"}
        | {"tags": {"title": "x"}}
        | {"limits": polymux.Limits(streams=7, duration_s=8.5, tag_bytes=2**33)}
    )
    assert {name: getattr(built, name) for name in plain} == plain
    assert (built.bitrate_bps, built.sample_rate_hz) == (96_000, 44_100)
    assert (built.start_s, built.end_s, built.replace_tags) == (1.0, 2.5, [("title", "x")])
    limits = built.limits
    assert (limits.streams, limits.duration_s, limits.tag_bytes) == (7, 8.5, 2**33)


def test_errors_name_the_input(tmp_path: Path) -> None:
    with pytest.raises(polymux.InputNotFoundError, match=r"missing\.wav") as caught:
        polymux.convert_to_mp3(tmp_path / "missing.wav")
    assert caught.value.filename == str(tmp_path / "missing.wav")
    with pytest.raises(polymux.InputNotFoundError) as long:
        polymux.convert_to_mp3("d/" * 2000 + "x.wav")
    assert str(long.value).count("x.wav") == 1
    assert len(str(long.value)) < 450
    noise = tmp_path / "noise\x1b[31m.wav"
    noise.write_bytes(bytes(range(256)) * 100)
    with pytest.raises(polymux.MediaError, match="noise") as broken:
        polymux.convert_to_mp3(noise)
    assert not {"\x1b", "\n"} & {*str(broken.value)}
    assert str(broken.value).count(str(tmp_path)) == 1


def test_probe_and_decode_audio_have_options(corpus: Corpus, wave: Path) -> None:
    path = corpus.path("mkv_video")
    assert polymux.probe(path) == polymux.probe(path.read_bytes())
    with pytest.raises(polymux.LimitExceededError):
        polymux.probe(path, limits=polymux.Limits(streams=1))
    wrong: list[dict[str, Any]] = [{"channels": 3}, {"sample_rate": 0}, {"start": 2, "end": 1}]
    for chosen in wrong:
        with pytest.raises(polymux.InvalidRequestError):
            polymux.decode_audio(wave, **chosen)
    with pytest.raises(TypeError, match="channels"):
        polymux.decode_audio(wave, channels="2")  # type: ignore[arg-type]
