"""Text tags, comments, chapters and covers of the input arrive in the MP3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support import ffprobe, programs
from support.media import CHAPTERS, TAGS, cover_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus

TAGGED = ["tags_mp3", "tags_mp3_v24", "tags_m4a", "tags_flac", "tags_ogg", "cover_mkv_jpeg"]
COVERS = ["cover_mp3_jpeg", "cover_mp3_png", "cover_flac_jpeg", "cover_flac_png", "cover_m4a_jpeg",
          "cover_m4a_png", "cover_ogg_jpeg", "cover_mkv_jpeg"]  # fmt: skip
CHAPTERED = ["chapters_m4a", "chapters_mkv", "chapters_mp3"]
MIME = {"jpg": "image/jpeg", "png": "image/png"}


def convert(source: Path, folder: Path, **options: Any) -> Path:
    result = folder / "result.mp3"
    polymux.convert_to_mp3(source, result, bitrate="64k", **options)
    return result


def tags_of(corpus: Corpus, path: Path) -> dict[str, str]:
    return ffprobe.lower(ffprobe.describe(path, corpus.cache)["format"].get("tags", {}))


def cover_of(path: Path) -> polymux.Cover:
    cover = polymux.probe(path).cover
    assert cover is not None
    return cover


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("name", TAGGED)
def test_text(corpus: Corpus, tmp_path: Path, name: str, version: int) -> None:
    result = convert(corpus.path(name), tmp_path, id3v2_version=version)
    assert result.read_bytes()[:4] == b"ID3" + bytes([version])
    found = tags_of(corpus, result)
    assert {key: found.get(key) for key in TAGS} == TAGS


def test_facts_about_the_input_are_not_copied(corpus: Corpus, tmp_path: Path) -> None:
    source = tmp_path / "source.mp3"
    programs.ffmpeg("-i", corpus.path("tags_mp3"), "-c", "copy", "-metadata", "TLEN=1500", source)
    assert tags_of(corpus, source)["tlen"] == "1500"
    found = tags_of(corpus, convert(source, tmp_path, start=0.5))
    assert "tlen" not in found
    assert found["title"] == TAGS["title"]


def test_nothing_on_request(corpus: Corpus, tmp_path: Path) -> None:
    result = convert(corpus.path("cover_flac_jpeg"), tmp_path, tags="none")
    assert not set(tags_of(corpus, result)) & set(TAGS)
    result = convert(corpus.path("cover_flac_jpeg"), tmp_path, cover="none")
    assert [
        stream["codec_type"] for stream in ffprobe.describe(result, corpus.cache)["streams"]
    ] == ["audio"]


@pytest.mark.parametrize("name", COVERS)
def test_cover_bit_for_bit(corpus: Corpus, tmp_path: Path, name: str) -> None:
    kind = "png" if name.endswith("png") else "jpg"
    original = cover_file(corpus.cache, kind).read_bytes()
    result = convert(corpus.path(name), tmp_path)
    assert ffprobe.picture(result, corpus.cache) == original
    cover, given = cover_of(result), cover_of(corpus.path(name))
    assert cover.data == given.data == original
    assert (cover.picture_type, cover.description) == (given.picture_type, given.description)
    assert cover.mime_type == MIME[kind]


@pytest.mark.parametrize(
    ("name", "kind", "version"),
    [("cover_flac_jpeg", "png", 3), ("tags_flac", "jpg", 3), ("tags_flac", "png", 4)],
)
def test_a_cover_of_ones_own(
    corpus: Corpus, tmp_path: Path, name: str, kind: str, version: int
) -> None:
    """A `cover` argument replaces the input's cover, if any. Text tags remain."""
    wanted = cover_file(corpus.cache, kind).read_bytes() + b"and more"
    given = memoryview(wanted) if kind == "png" else wanted
    result = convert(corpus.path(name), tmp_path, cover=given, id3v2_version=version)
    cover = cover_of(result)
    assert (cover.data, cover.picture_type, cover.mime_type) == (wanted, 3, MIME[kind])
    assert ffprobe.picture(result, corpus.cache) == wanted
    assert tags_of(corpus, result)["title"] == TAGS["title"]


@pytest.mark.parametrize("cover", [b"", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ", b"\xff\xd8"])
def test_what_is_no_cover(corpus: Corpus, tmp_path: Path, cover: bytes) -> None:
    with pytest.raises(polymux.InvalidRequestError, match="cover"):
        convert(corpus.path("tags_flac"), tmp_path, cover=cover)
    assert not (tmp_path / "result.mp3").exists()


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("name", CHAPTERED)
def test_chapters(corpus: Corpus, tmp_path: Path, name: str, version: int) -> None:
    result = convert(corpus.path(name), tmp_path, id3v2_version=version)
    # As in ffmpeg, positions count from the first sample. The clock of an MP3 starts slightly
    # earlier.
    begin_ms = round(1000 * (polymux.probe(corpus.path(name)).start_s or 0))
    starts = [max(0, start - begin_ms) for start in (0, 500, 1100)]
    titles = [line[6:] for line in CHAPTERS.splitlines() if line.startswith("title=")][1:]
    found = [
        (round(float(mark["start_time"]) * 1000), mark["tags"]["title"])
        for mark in ffprobe.describe(result, corpus.cache)["chapters"]
    ]
    assert found == list(zip(starts, titles, strict=True))
