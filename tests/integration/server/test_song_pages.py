"""Pages and covers of songs need a signed link and run no scripts."""

from __future__ import annotations

import os
import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urljoin, urlsplit

import polymux
import pytest
from support import generated_songs
from support.served_songs import MARKUP, MBID, SEARCH, got, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import PolymuxServer


@pytest.fixture(scope="module")
def server(song_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with served(tmp_path_factory.mktemp("server"), song_index) as running:
        yield running


def song_of(server: PolymuxServer, text: str) -> dict[str, str]:
    found: dict[str, str] = server.json(SEARCH, {"song": text, "limit": "1"}).json()[0]
    return found


class Page(HTMLParser):
    """Parses a page like a browser."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.pictures: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.pictures += [value or "" for name, value in attrs if name == "src"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_tells_of_the_song(server: PolymuxServer) -> None:
    song = song_of(server, "more so alert")
    answer = got(server, song["songid_url"])
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; img-src 'self'; style-src 'sha256-")
    assert "unsafe" not in policy
    text = answer.body.decode()
    page = Page(text)
    for word in (MARKUP, "<b>Album</b>", "1999", "0:12"):
        assert word in page.text
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert "secret place" not in text
    assert "\u202e" not in text
    (picture,) = page.pictures
    assert got(server, urljoin(song["songid_url"], picture)).body.startswith(b"\x89PNG")


def test_covers_are_what_they_are(server: PolymuxServer) -> None:
    embedded = got(server, song_of(server, "more so alert")["song_image"])
    assert embedded.headers["content-type"] == "image/png"
    assert embedded.body.startswith(b"\x89PNG\r\n\x1a\n")
    assert embedded.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in embedded.headers["content-security-policy"]
    known = song_of(server, "known somebody")
    assert known["songid_url"] == f"https://musicbrainz.org/recording/{MBID}"
    beside = got(server, known["song_image"])
    assert beside.headers["content-type"] == "image/png"
    tag = beside.headers["etag"]
    for tags in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = got(server, known["song_image"], If_None_Match=tags)
        assert (again.status, again.body) == (304, b""), tags
    drawn = got(server, song_of(server, "danube")["song_image"])
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert b">S</text>" in drawn.body
    head = got(server, known["song_image"], "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(beside.body))


def test_only_by_the_link(server: PolymuxServer) -> None:
    song = song_of(server, "danube")
    parts = urlsplit(song["songid_url"])
    number = parts.path.rpartition("/")[2]
    query = parse_qs(parts.query)
    expires, signature = query["exp"][0], query["sig"][0]
    cover = urlsplit(song["song_image"]).query
    wrong = [
        parts.path,
        f"{parts.path}?exp={expires}",
        f"{parts.path}?exp={int(expires) + 1}&sig={signature}",
        f"{parts.path}?exp={expires}&sig={signature[:-1]}",
        f"{parts.path}?{cover}",
        f"{parts.path}/cover?{parts.query}",
        f"/songs/{int(number) + 1}?{parts.query}",
        f"/songs/0{number}?{parts.query}",
        f"/media/{number}?{parts.query}",
    ]
    for path in wrong:
        for key in (None, server.key):
            answer = server.ask("GET", path, key=key)
            assert answer.status == 404, path
            assert b"Danube" not in answer.body
    assert server.ask("POST", f"{parts.path}?{parts.query}", b"x", key=None).status == 405
    assert got(server, song["songid_url"]).status == 200


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[tuple[PolymuxServer, Path]]:
    music = tmp_path / "music"
    generated_songs.song(music / "a.mp3", 5, title="Alone", artist="The Band")
    (music / "cover.jpg").write_bytes(b"\xff\xd8\xff\xe0 a picture")
    with polymux.SongIndex(tmp_path / "index") as index:
        index.add(music)
    with served(tmp_path, tmp_path / "index") as server:
        yield server, music / "cover.jpg"


def test_what_has_become_no_picture_is_not_sent(
    changing: tuple[PolymuxServer, Path], tmp_path: Path
) -> None:
    server, cover = changing
    link = song_of(server, "alone")["song_image"]
    assert got(server, link).headers["content-type"] == "image/jpeg"
    cover.write_bytes(b"\xff\xd8\xff" + bytes(10 << 20))
    assert got(server, link).headers["content-type"] == "image/svg+xml"
    cover.write_text("<svg onload='alert(1)'>")
    assert b"onload" not in got(server, link).body
    cover.unlink()
    secret = tmp_path / "secret"
    secret.write_text("a secret of this machine")
    cover.symlink_to(secret)
    assert b"secret" not in got(server, link).body
    cover.unlink()
    os.mkfifo(cover)
    assert got(server, link).headers["content-type"] == "image/svg+xml"
    cover.unlink()
    assert b">TB</text>" in got(server, link).body


def test_a_song_that_is_removed_has_no_page(
    changing: tuple[PolymuxServer, Path], tmp_path: Path
) -> None:
    server, cover = changing
    song = song_of(server, "alone")
    shutil.rmtree(cover.parent)
    assert got(server, song["songid_url"]).status == 200
    assert got(server, song["song_image"]).status == 200
    with polymux.SongIndex(tmp_path / "index") as index:
        index.remove(cover.parent)
    assert got(server, song["songid_url"]).status == 404
    assert got(server, song["song_image"]).status == 404
