"""A song index with a few songs, and servers that use it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import polymux
from polymux.songs.settings import SongSettings

from support import generated_songs, programs
from support.polymux_server import PolymuxServer, form

if TYPE_CHECKING:
    from pathlib import Path

    from support.polymux_server import Answer

IDENTIFY = "/api/v1/songid"
SEARCH = "/api/v1/musicsearch"
MBID = "0f5e8a4c-8f5b-4b8e-9a59-1a2b3c4d5e6f"
#: A song that is in no index here.
UNKNOWN = 77
#: A text that must not become HTML; its cover is embedded.
MARKUP = "<script>alert(1)</script> & \"more\" 'so'"


def made(folder: Path) -> Path:
    """A song index with four songs, shared by all tests of a session. Do not change it."""
    music = folder / "music"
    cover = folder / "red.png"
    programs.ffmpeg("-f", "lavfi", "-i", "color=red:s=64x64:d=1", "-frames:v", "1", cover)
    plain = generated_songs.song(folder / "plain.mp3", 0)
    music.mkdir()
    tags = {"title": MARKUP, "artist": "Band \u202e & Co", "album": "<b>Album</b>", "date": "1999"}
    words = [word for name, text in tags.items() for word in ("-metadata", f"{name}={text}")]
    both = ("-i", plain, "-i", cover, "-map", "0", "-map", "1", "-c", "copy")
    programs.ffmpeg(*both, "-disposition:v", "attached_pic", *words, music / "secret place.mp3")
    generated_songs.song(
        music / "known" / "b.flac", 1, title="Known", artist="Somebody", MUSICBRAINZ_TRACKID=MBID
    )
    shutil.copy(cover, music / "known" / "cover.png")
    generated_songs.song(music / "c.ogg", 2, title="Blue Danube", artist="Strauss")
    generated_songs.song(music / "d.wav", 3)
    with polymux.SongIndex(folder / "index") as index:
        report = index.add(music)
    assert report.added == 4, report
    return folder / "index"


def served(folder: Path, song_index: Path | None, **more: Any) -> PolymuxServer:
    songs = SongSettings(index_dir=song_index, **more.pop("songs", {}))
    return PolymuxServer(folder / "s", engines={}, songs=songs, **more)


def ask(server: PolymuxServer, data: bytes | Path, name: str = "a.wav") -> Answer:
    content = data if isinstance(data, bytes) else data.read_bytes()
    body, head = form(("file", (name, content)))
    return server.ask("POST", IDENTIFY, body, head)


def got(server: PolymuxServer, url: str, method: str = "GET", **headers: str) -> Answer:
    """The content behind a link, requested without a key."""
    assert url.startswith(server.url)
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return server.ask(method, url.removeprefix(server.url), b"", fields, key=None)
