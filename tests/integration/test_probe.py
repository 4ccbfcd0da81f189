"""`polymux.probe` says what the ffprobe program says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support import ffprobe
from support.media import MEDIA, TAGS, cover_file

if TYPE_CHECKING:
    from support.corpus import Corpus

#: Chosen so that every container, every layout name and every peculiarity is there once.
NAMES = [name for name in MEDIA if not name.startswith("rate_")]


def optional(value: str | None) -> Any:
    """ffprobe's number, or what stands for "none" in an approximate comparison."""
    return None if value is None else pytest.approx(float(value), abs=2e-6)


def of_the_file(stream_tags: dict[str, str]) -> dict[str, str]:
    """The tags of an Ogg stream without those that concern the stream."""
    hidden = {"encoder", "metadata_block_picture"}
    return {key: text for key, text in ffprobe.lower(stream_tags).items() if key not in hidden}


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
        # Some containers leave the size to the picture itself, which a probe does not decode.
        assert (ours.width, ours.height) in ((theirs["width"], theirs["height"]), (0, 0))


@pytest.mark.parametrize("name", NAMES)
def test_probe_agrees_with_ffprobe(corpus: Corpus, name: str) -> None:
    path = corpus.path(name)
    ours, theirs = polymux.probe(path), ffprobe.describe(path)
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
        # Ogg has tags on its streams alone; what describes the file belongs to the file.
        expected = of_the_file(theirs["streams"][0].get("tags", {}))
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


@pytest.mark.parametrize("name", ["tags_mp3", "tags_m4a", "tags_flac", "cover_mkv_jpeg"])
def test_tags_are_the_text_that_was_written(corpus: Corpus, name: str) -> None:
    found = ffprobe.lower(polymux.probe(corpus.path(name)).tags)
    assert {key: found.get(key) for key in TAGS} == TAGS


@pytest.mark.parametrize("kind", ["jpg", "png"])
@pytest.mark.parametrize("container", ["mp3", "flac", "m4a"])
def test_cover_is_given_bit_for_bit(corpus: Corpus, container: str, kind: str) -> None:
    name = f"cover_{container}_{'jpeg' if kind == 'jpg' else kind}"
    cover = polymux.probe(corpus.path(name)).cover
    assert cover is not None
    assert cover.data == cover_file(corpus.cache, kind).read_bytes()


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
    chosen = corpus.reference(path)
    assert (
        chosen.read_bytes()
        == corpus.reference(path, ("-b:a", "128k", "-map", f"0:{stream}")).read_bytes()
    )


def test_a_file_without_audio_is_no_error(corpus: Corpus) -> None:
    info = polymux.probe(corpus.path("video_only"))
    assert [stream.type for stream in info.streams] == ["video"]
    assert info.best_audio_stream is None
    assert info.audio_streams == ()
