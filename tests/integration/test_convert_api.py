"""`convert_to_mp3`, `probe` and `decode_audio` with real files, as a programmer meets them."""

from __future__ import annotations

import io
import threading
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux._native import _media
from polymux.media import options
from support.media import Medium
from support.mp3_frames import audio_frames, check_decodable, parse

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus


@pytest.fixture
def wave(corpus: Corpus) -> Path:
    return corpus.path("wav_s16")


def expected(corpus: Corpus, source: Path, *arguments: str) -> list[bytes]:
    """The audio frames that the ffmpeg program makes."""
    return audio_frames(corpus.reference(source, arguments))


def test_every_destination_gets_the_same_frames(corpus: Corpus, wave: Path, tmp_path: Path) -> None:
    frames = expected(corpus, wave, "-b:a", "128k")
    in_memory = polymux.convert_to_mp3(wave, bitrate="128k")
    assert in_memory.data is not None
    assert in_memory.path is None
    assert audio_frames(in_memory.data) == frames

    on_disk = polymux.convert_to_mp3(wave, tmp_path / "a.mp3", bitrate=128_000)
    assert on_disk.path == tmp_path / "a.mp3"
    assert on_disk.data is None
    assert on_disk.read() == in_memory.data

    memory_file = io.BytesIO(b"before")
    memory_file.seek(0, io.SEEK_END)
    given_away = polymux.convert_to_mp3(wave, memory_file, bitrate=128_000)
    assert memory_file.getvalue() == b"before" + in_memory.data
    assert given_away.size_bytes == len(in_memory.data)
    with pytest.raises(polymux.InvalidRequestError, match="file object"):
        given_away.read()


def test_every_source_gives_the_same_file(wave: Path) -> None:
    content = wave.read_bytes()
    wanted = polymux.convert_to_mp3(wave).read()
    with wave.open("rb") as file:
        assert polymux.convert_to_mp3(file).read() == wanted
    for source in (str(wave), content, bytearray(content), memoryview(content)):
        assert polymux.convert_to_mp3(source).read() == wanted
    assert polymux.convert_to_mp3(io.BytesIO(content)).read() == wanted


def test_the_default_is_the_best_variable_bitrate(corpus: Corpus, wave: Path) -> None:
    file = polymux.convert_to_mp3(wave)
    assert audio_frames(file.read()) == expected(corpus, wave, "-q:a", "0")
    assert file.report.mode == "vbr"


@pytest.mark.parametrize(
    ("chosen", "arguments"),
    [
        ({"bitrate": "96k"}, ("-b:a", "96k")),
        ({"bitrate": 96_000, "abr": True}, ("-b:a", "96k", "-abr", "1")),
        ({"vbr_quality": 4.0}, ("-q:a", "4")),
        ({"bitrate": "64k", "sample_rate": 22_050}, ("-b:a", "64k", "-ar", "22050")),
        ({"bitrate": "64k", "channels": 1}, ("-b:a", "64k", "-ac", "1")),
        ({"bitrate": "64k", "preset": "fast"}, ("-b:a", "64k", "-compression_level", "7")),
        ({"bitrate": "64k", "threads": 1}, ("-b:a", "64k")),
    ],
)
def test_options_reach_the_encoder(
    corpus: Corpus, wave: Path, chosen: dict[str, Any], arguments: tuple[str, ...]
) -> None:
    file = polymux.convert_to_mp3(wave, **chosen)
    assert audio_frames(file.read()) == expected(corpus, wave, *arguments)


def test_start_and_end(corpus: Corpus, wave: Path) -> None:
    reference = corpus.reference(
        wave, ("-b:a", "128k"), input_arguments=("-ss", "0.25", "-to", "1.0")
    )
    for start, end in ((0.25, 1), ("0.25", "0:01"), ("0:00:00.25", "1.000")):
        file = polymux.convert_to_mp3(wave, bitrate="128k", start=start, end=end)
        assert audio_frames(file.read()) == audio_frames(reference)
        assert file.report.duration_s == pytest.approx(0.75)


def test_the_report_tells_what_was_made(wave: Path) -> None:
    file = polymux.convert_to_mp3(wave, bitrate="128k")
    mp3, report = parse(file.read()), file.report
    check_decodable(mp3)
    assert report.frames == len(mp3.audio)
    assert report.audio_bytes == sum(map(len, mp3.audio))
    assert report.bytes == file.size_bytes == len(file.read())
    assert (report.sample_rate_hz, report.channels, report.mode) == (44_100, 2, "cbr")
    assert (report.container, report.codec, report.audio_stream) == ("wav", "pcm_s16le", 0)
    assert report.samples == 66_150
    assert report.duration_s == 1.5
    assert report.elapsed_s > 0
    assert report.encoder.startswith("LAME ")
    assert report.warnings == ()


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
        ({"verify": "some"}, ["verify", "'first-seam', 'all'"]),
        ({"verify": "none"}, ["verify"]),
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
    "chosen",
    [
        {"bitrate": 128.0},
        {"bitrate": True},
        {"vbr_quality": "2"},
        {"preset": None},
        {"strict": 1},
        {"exact": 1},
        {"exact": None},
        {"verify": True},
        {"overwrite": "no"},
        {"tags": {"title": 1}},
        {"limits": {"channels": 2}},
        {"start": b"1"},
    ],
)
def test_options_of_the_wrong_type(wave: Path, chosen: dict[str, Any]) -> None:
    (name,) = chosen
    with pytest.raises(TypeError, match=name):
        polymux.convert_to_mp3(wave, **chosen)


def test_every_option_reaches_the_native_field() -> None:
    built = options.native_options(
        {
            "bitrate": 96_000, "abr": True, "preset": "best", "sample_rate": 44_100, "channels": 1,
            "audio_stream": 2, "start": 1, "end": "2.5", "tags": {"title": "x"}, "cover": "none",
            "id3v2_version": 4, "identical_file": True, "threads": 3, "exact": True,
            "verify": "all", "strict": True,
            "limits": polymux.Limits(streams=7, duration_s=8.5, tag_bytes=2**33),
        }
    )  # fmt: skip
    native = (
        built.bitrate_bps, built.abr, built.preset, built.sample_rate_hz, built.channels,
        built.audio_stream, built.start_s, built.end_s, built.replace_tags, built.cover,
        built.id3v2_version, built.identical_file, built.threads, built.exact, built.verify,
        built.strict,
    )  # fmt: skip
    assert native == (
        96_000, True, "best", 44_100, 1, 2, 1.0, 2.5, [("title", "x")], "none", 4, True, 3, True,
        "all", True,
    )  # fmt: skip
    limits = built.limits
    assert (limits.streams, limits.duration_s, limits.tag_bytes) == (7, 8.5, 2**33)


def test_defaults_are_those_of_the_core() -> None:
    native = _media.Limits()
    for item in fields(polymux.Limits):
        assert getattr(native, item.name) == item.default, item.name
    ours, theirs = options.native_options({}), _media.ConvertOptions()
    names = [name for name in dir(theirs) if not name.startswith("_") and name != "limits"]
    assert len(names) > 10
    for name in names:
        assert getattr(ours, name) == getattr(theirs, name), name


def test_an_option_that_does_not_exist(wave: Path) -> None:
    with pytest.raises(TypeError, match="bitrat"):
        polymux.convert_to_mp3(wave, bitrat=128)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="bitrat"):
        polymux.convert_many([wave], bitrat=128)  # type: ignore[call-arg]


def test_progress_comes_in_this_thread_and_ends_complete(wave: Path) -> None:
    seen: list[tuple[polymux.Progress, int]] = []
    file = polymux.convert_to_mp3(
        wave, on_progress=lambda progress: seen.append((progress, threading.get_ident()))
    )
    last = seen[-1][0]
    assert last.fraction == 1.0
    assert last.position_s == pytest.approx(file.report.duration_s)
    assert last.bytes_written == file.size_bytes
    assert {thread for _, thread in seen} == {threading.get_ident()}
    positions = [progress.position_s for progress, _ in seen]
    assert positions == sorted(positions)


def test_an_exception_of_the_callback_ends_the_conversion(wave: Path, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(_: polymux.Progress) -> None:
        raise StopError

    with pytest.raises(StopError):
        polymux.convert_to_mp3(wave, tmp_path / "a.mp3", on_progress=stop)
    assert list(tmp_path.glob(".*")) == []


def test_overwriting_is_a_choice(wave: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.mp3"
    target.write_bytes(b"old")
    with pytest.raises(polymux.OutputExistsError, match=r"a\.mp3"):
        polymux.convert_to_mp3(wave, target, overwrite=False)
    assert target.read_bytes() == b"old"
    polymux.convert_to_mp3(wave, target)
    check_decodable(parse(target))


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
    with pytest.raises(polymux.MediaError, match="noise") as told:
        polymux.convert_to_mp3(noise)
    assert "\x1b" not in str(told.value)
    assert "\n" not in str(told.value)
    assert str(told.value).count(str(tmp_path)) == 1


def test_no_audio(corpus: Corpus) -> None:
    silent = corpus.build(
        "video_only", Medium(".mp4", ("lavfi:testsrc2=s=96x64:r=12:d=1",), ("-c:v", "mpeg4"))
    )
    with pytest.raises(polymux.NoAudioError):
        polymux.convert_to_mp3(silent)
    info = polymux.probe(silent)
    assert info.best_audio_stream is None
    assert info.audio_streams == ()


def test_probe(corpus: Corpus) -> None:
    path = corpus.path("mkv_video")
    info = polymux.probe(path)
    assert "matroska" in info.container
    assert [stream.type for stream in info.streams] == ["video", "audio"]
    assert info.best_audio_stream == 1
    assert info.streams[0].width == 96
    assert info.streams[1].channel_layout == "stereo"
    assert info.size_bytes == path.stat().st_size
    assert info == polymux.probe(path.read_bytes())
    with pytest.raises(polymux.LimitExceededError):
        polymux.probe(path, limits=polymux.Limits(streams=1))


def test_decode_audio_checks_its_options(wave: Path) -> None:
    wrong: list[dict[str, Any]] = [{"channels": 3}, {"sample_rate": 0}, {"start": 2, "end": 1}]
    for chosen in wrong:
        with pytest.raises(polymux.InvalidRequestError):
            polymux.decode_audio(wave, **chosen)
    with pytest.raises(TypeError, match="channels"):
        polymux.decode_audio(wave, channels="2")  # type: ignore[arg-type]
