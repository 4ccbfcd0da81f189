"""`polymux.probe` agrees with the ffprobe program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support import ffprobe
from support.media import CONTAINERS, PECULIAR, SILENT

if TYPE_CHECKING:
    from support.corpus import Corpus

#: Contains every container, every special case and several channel layouts.
NAMES = [*CONTAINERS, *PECULIAR, *SILENT, "layout_mono", "layout_5.1", "layout_7.1", "aac_5.1",
         "ac3_5.1side", "dts_5.1"]  # fmt: skip


def optional(value: str | None) -> Any:
    """ffprobe's number for an approximate comparison, or None."""
    return None if value is None else pytest.approx(float(value), abs=2e-6)


def compare_stream(ours: polymux.StreamInfo, theirs: dict[str, Any]) -> None:
    assert ours.index == theirs["index"]
    assert ours.type == theirs["codec_type"]
    assert ours.codec == theirs.get("codec_name", "unknown")
    assert ours.is_default == bool(theirs["disposition"]["default"])
    assert ours.is_cover == bool(theirs["disposition"]["attached_pic"])
    tags = ffprobe.lower(theirs.get("tags", {}))
    assert ours.language == tags.get("language", "")
    if ours.type == "audio":
        assert ours.sample_rate_hz == int(theirs["sample_rate"])
        assert ours.channels == theirs["channels"]
        assert ours.channel_layout == theirs.get("channel_layout", ours.channel_layout)
        assert ours.duration_s == optional(theirs.get("duration"))
    else:
        assert (ours.sample_rate_hz, ours.channels) == (0, 0)
    if ours.type == "video":
        # In some containers only the frames contain the size, and a probe does not decode them.
        assert (ours.width, ours.height) in ((theirs["width"], theirs["height"]), (0, 0))


@pytest.mark.parametrize("name", NAMES)
def test_probe_agrees_with_ffprobe(corpus: Corpus, name: str) -> None:
    path = corpus.path(name)
    ours, theirs = polymux.probe(path), ffprobe.describe(path, corpus.cache)
    shape = theirs["format"]
    assert ours.container == shape["format_name"]
    assert ours.container_long_name == shape["format_long_name"]
    assert ours.duration_s == optional(shape.get("duration"))
    assert ours.start_s == optional(shape.get("start_time"))
    assert ours.size_bytes == path.stat().st_size
    assert len(ours.streams) == len(theirs["streams"])
    for mine, other in zip(ours.streams, theirs["streams"], strict=True):
        compare_stream(mine, other)
    expected = ffprobe.lower(shape.get("tags", {}))
    if shape["format_name"] == "ogg":
        # Ogg stores tags on its streams. polymux reports those that describe the file as file tags.
        expected = ffprobe.lower(theirs["streams"][0].get("tags", {}))
        for one in ("encoder", "metadata_block_picture"):
            expected.pop(one, None)
    assert ffprobe.lower(ours.tags) == expected
    assert [(mark.start_ms, mark.end_ms, mark.title) for mark in ours.chapters] == [
        (
            round(float(mark["start_time"]) * 1000),
            round(float(mark["end_time"]) * 1000),
            mark.get("tags", {}).get("title", ""),
        )
        for mark in theirs["chapters"]
    ]


@pytest.mark.parametrize("name", ["mkv_video", "webm_opus", "avi_pcm", "nut"])
def test_size_of_pictures_where_the_container_says_it(corpus: Corpus, name: str) -> None:
    [video] = [item for item in polymux.probe(corpus.path(name)).streams if item.type == "video"]
    assert (video.width, video.height) == (96, 64)


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("streams_default_second", 1),
        ("streams_more_channels_second", 1),
        ("streams_mp4", 0),
        ("mp4_video", 1),
        ("cover_flac_jpeg", 0),
    ],
)
def test_best_audio_stream_is_ffmpegs(corpus: Corpus, name: str, stream: int) -> None:
    path = corpus.path(name)
    assert polymux.probe(path).best_audio_stream == stream
    same = corpus.reference(path, ("-b:a", "128k", "-map", f"0:{stream}"))
    assert corpus.reference(path).read_bytes() == same.read_bytes()


def test_a_file_without_audio_is_no_error(corpus: Corpus) -> None:
    info = polymux.probe(corpus.path("video_only"))
    assert [stream.type for stream in info.streams] == ["video"]
    assert info.best_audio_stream is None
    assert info.audio_streams == ()
