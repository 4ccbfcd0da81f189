"""`identify_song` and `search_music` on a server with its own song index. Case IDs: testing.md."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from polymux.errors import NoMatchError
from polymux.server.routes.songs import SONGS
from support import generated_songs, programs
from support.commands import run
from support.served_songs import SEARCH, UNKNOWN, ask, got, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import PolymuxServer

NAME = "Blue Danube - Strauss"
RATE = generated_songs.RATE


@pytest.fixture(scope="module")
def piece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds of the song `NAME`."""
    return generated_songs.snippet(tmp_path_factory.mktemp("piece"), 2)


@pytest.fixture(scope="module")
def server(song_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with served(tmp_path_factory.mktemp("server"), song_index) as running:
        yield running


def test_every_way_gives_the_same(server: PolymuxServer, piece: Path, tmp_path: Path) -> None:
    async def asynchronously() -> Any:
        async with polymux.AsyncClient(server.url, server.key) as client:
            song = await client.identify_song(piece)
            return song.name, [one.name for one in await client.search_music("blue danube")]

    answer = ask(server, piece)
    assert (answer.status, answer.json()["song_name"]) == (200, NAME)
    assert set(answer.json()) == {"song_name", "songid_url", "song_image"}
    assert all(answer.json().values())
    with polymux.Client(server.url, server.key) as client:
        song = client.identify_song(piece.read_bytes())
        assert song.name == NAME
        assert [one.name for one in client.search_music("blue danube")] == [NAME]
    assert asyncio.run(asynchronously()) == (NAME, [NAME])
    words = ("--server", server.url, "--json")
    shown = run("identify-song", str(piece), *words, cwd=tmp_path, POLYMUX_API_KEY=server.key)
    assert json.loads(shown.stdout)["song_name"] == NAME
    shown = run("search-music", "danube", *words, cwd=tmp_path, POLYMUX_API_KEY=server.key)
    assert [one["song_name"] for one in json.loads(shown.stdout)] == [NAME]


def test_what_no_song_is_like(server: PolymuxServer, tmp_path: Path) -> None:
    answer = ask(server, generated_songs.snippet(tmp_path, UNKNOWN))
    assert (answer.status, answer.json()["code"]) == (404, "no_match")
    with polymux.Client(server.url, server.key) as client, pytest.raises(NoMatchError):
        client.identify_song(generated_songs.snippet(tmp_path, UNKNOWN))


def test_what_nobody_can_know(server: PolymuxServer, tmp_path: Path) -> None:
    """Silence, noise and half a second of audio (V30)."""
    noise = numpy.random.default_rng(1).normal(0, 0.2, 8 * RATE).clip(-1, 1)
    half = generated_songs.sound(2)[RATE : RATE + RATE // 2]
    for sound in (numpy.zeros(5 * RATE), noise, half):
        answer = ask(server, generated_songs.write(tmp_path / "a.wav", sound))
        assert (answer.status, answer.json()["code"]) == (404, "no_match")


def test_an_hour(server: PolymuxServer, tmp_path: Path, piece: Path) -> None:
    """Long audio is identified by the loudest section of its beginning (V30)."""
    hour = tmp_path / "hour.flac"
    quiet = ("-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono:d=3600")
    joined = ("-filter_complex", "[0]aresample=8000[a];[a][1]concat=v=0:a=1")
    programs.ffmpeg("-i", piece, *quiet, *joined, hour)
    answer = ask(server, hour)
    assert (answer.status, answer.json()["song_name"]) == (200, NAME)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("video.mp4", "-f lavfi -i color=red:s=64x64:r=10 -shortest -c:v mpeg4 -c:a aac"),
        ("antiphase.wav", "-af pan=stereo|c0=c0|c1=-1*c0"),
        ("called otherwise.jpg", "-f mp3"),
    ],
)
def test_recordings_of_all_kinds(
    server: PolymuxServer, piece: Path, tmp_path: Path, name: str, words: str
) -> None:
    programs.ffmpeg("-i", piece, *words.split(), tmp_path / name)
    answer = ask(server, tmp_path / name, name)
    assert (answer.status, answer.json().get("song_name")) == (200, NAME)


@pytest.mark.parametrize(
    ("name", "data", "status", "code"),
    [
        ("list.m3u8", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", 415, "unsupported_media"),
        ("zeros.wav", b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0" + b"\0" * 400, 422, "undecodable"),
    ],
)
def test_what_is_no_recording(
    server: PolymuxServer, name: str, data: bytes, status: int, code: str
) -> None:
    answer = ask(server, data, name)
    assert (answer.status, answer.json()["code"]) == (status, code)
    assert "Traceback" not in answer.json()["error"]


@pytest.mark.parametrize(("limit", "status"), [("5", 200), (50, 200), ("", 200), (51, 400)])
def test_how_many_songs_at_most(server: PolymuxServer, limit: object, status: int) -> None:
    answer = server.json(SEARCH, {"song": "blue danube", "limit": limit})
    assert answer.status == status
    if status == 200:
        assert [one["song_name"] for one in answer.json()] == [NAME]
    else:
        assert "limit" in answer.json()["error"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (" \t\n", 400),
        ("\0", 400),
        ("x" * (1 << 19), 400),
        ("' OR 1=1 --", 200),
        ('"', 200),
        ("NEAR(", 200),
        ("blue\0danube", 200),
    ],
)
def test_texts_that_mean_something_to_databases(
    server: PolymuxServer, text: str, status: int
) -> None:
    """Includes SQL and full-text search syntax (O02)."""
    answer = server.json(SEARCH, {"song": text, "limit": 50})
    assert answer.status == status, answer.body
    assert "SQL" not in answer.body.decode()
    assert [one["song_name"] for one in server.json(SEARCH, {"song": "danube"}).json()] == [NAME]


def test_songs_that_another_process_adds_meanwhile(tmp_path: Path, piece: Path) -> None:
    place, music = tmp_path / "index", tmp_path / "music"
    for seed in (2, 12, 13):
        generated_songs.song(music / f"{seed}.flac", seed, title=f"Number {seed}")
    with polymux.SongIndex(place) as index:
        index.add(music / "2.flac")
    words = ("songs", "add", os.fspath(music), "--song-index", os.fspath(place), "--workers", "1")
    with served(tmp_path, place) as server:
        assert ask(server, piece).json()["song_name"] == "Number 2"
        adding = subprocess.Popen([sys.executable, "-m", "polymux", *words, "--quiet"])
        while adding.poll() is None:
            assert ask(server, piece).json()["song_name"] == "Number 2"
            assert server.json(SEARCH, {"song": "number"}).status == 200
        assert adding.returncode == 0
        fresh = ask(server, generated_songs.snippet(tmp_path, 13))
        assert (fresh.status, fresh.json()["song_name"]) == (200, "Number 13")
        assert len(server.json(SEARCH, {"song": "number", "limit": 50}).json()) == 3
        ready = server.ask("GET", "/readyz").json()["backends"]["songs"]
        assert ready == {"state": "ready", "detail": "3 songs"}


def test_a_damaged_index_is_the_operators_affair(
    tmp_path: Path, piece: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "place-7"
    place.mkdir()
    (place / "songs.sqlite3").write_bytes(b"this is no database, and long enough" * 200)
    with served(tmp_path, place) as server:
        for answer in (ask(server, piece), server.json(SEARCH, {"song": "x"})):
            assert (answer.status, answer.json()["code"]) == (500, "engine_failed")
            assert "place-7" not in answer.json()["error"]
    assert any("place-7" in one.message for one in caplog.records if one.name == "polymux.songs")


def test_the_library_is_listed_and_played(server: PolymuxServer, song_index: Path) -> None:
    """The links need no key, send a part if asked, and no answer contains a path."""
    answer = server.ask("GET", SONGS)
    found = answer.json()
    songs = {one["title"]: one for one in found["results"]}
    assert (found["count"], found["next"], len(songs)) == (4, None, 4)
    assert [one["id"] for one in found["results"]] == sorted(one["id"] for one in songs.values())
    assert str(song_index.parent) not in answer.body.decode()
    danube = songs["Blue Danube"]
    assert (danube["artist"], danube["duration_s"] > 1) == ("Strauss", True)
    file = (song_index.parent / "music" / "c.ogg").read_bytes()
    whole = got(server, danube["audio_url"])
    assert (whole.status, whole.body) == (200, file)
    assert whole.headers["content-type"] == "audio/ogg"
    part = got(server, danube["audio_url"], range="bytes=10-19")
    assert (part.status, part.body) == (206, file[10:20])
    known = got(server, danube["audio_url"], if_none_match=whole.headers["etag"])
    assert known.status == 304
    for other in (songs["Known"]["id"], 999):
        url = danube["audio_url"].replace(f"/songs/{danube['id']}/", f"/songs/{other}/")
        assert got(server, url).status == 404
    # The link of a cover does not open the file.
    assert got(server, danube["cover_url"].replace("/cover", "/audio")).status == 404
    text, _ = server.keys.add("narrow", scopes=("search_music",))
    assert server.ask("GET", SONGS, key=text).status == 403
    assert server.ask("GET", f"{SONGS}?cursor=nothing").status == 400


def test_a_song_whose_file_is_gone(tmp_path: Path) -> None:
    """Only audio files are sent, whatever has replaced a song."""
    music = tmp_path / "music"
    names = ("a.wav", "b.wav", "c.wav")
    for number, name in enumerate(names):
        generated_songs.song(music / name, number)
    with polymux.SongIndex(tmp_path / "index") as index:
        index.add(music)
        first, *_ = index.songs()
        assert [one.id for one in index.songs(after=first.id)] == [
            one.id for one in index.songs() if one.id != first.id
        ]
    with served(tmp_path / "server", tmp_path / "index") as server:
        links = [one["audio_url"] for one in server.ask("GET", SONGS).json()["results"]]
        for name in names:
            (music / name).unlink()
        (music / names[1]).mkdir()
        os.mkfifo(music / names[2])
        assert [got(server, one).status for one in links] == [404] * 3


def test_a_server_without_a_library_lists_nothing(tmp_path: Path) -> None:
    with served(tmp_path, tmp_path / "none") as server:
        found = server.ask("GET", SONGS).json()
        assert (found["count"], found["results"], found["next"]) == (0, [], None)
