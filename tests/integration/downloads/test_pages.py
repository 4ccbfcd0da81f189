"""Pages with media: yt-dlp in a process that has one way out, and the guard at its end."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import Client, errors
from polymux.downloads.settings import DownloadSettings
from polymux.fetch.fetcher import FetchPolicy
from support.fetches import answering, wait_until
from support.polymux_server import CONVERT, PolymuxServer, form
from support.programs import run
from support.web import Server

if TYPE_CHECKING:
    from support.web import Exchange


def policy(*servers: Server) -> FetchPolicy:
    return FetchPolicy(allowed_hosts=tuple(one.authority for one in servers))


def served(folder: Path, *sites: Server, **download: Any) -> PolymuxServer:
    settings = DownloadSettings(**download)
    return PolymuxServer(folder / "s", fetch=policy(*sites), download=settings)


@pytest.mark.parametrize("path", ["/page/high.mp4", "/hls/list.m3u8", "/dash/list.mpd"])
def test_the_sound_of_a_page(site: Server, tmp_path: Path, path: str) -> None:
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        made = client.convert_to_mp3(url=site.url(path)).save(tmp_path / "a.mp3")
        assert polymux.probe(made).duration_s == pytest.approx(3, abs=0.3)
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


@pytest.mark.parametrize(
    "written",
    [
        "<!-- saved -->\n{}",
        "<title>A talk</title>{}",
        "\r\n\t <!--[if IE]>x<![endif]-->{}",
        "\ufeff{}",
    ],
    ids=["comment", "title", "condition", "UTF-16"],
)
def test_pages_begin_as_they_like(site_folder: Path, tmp_path: Path, written: str) -> None:
    """What is no page's usual beginning was taken for a file of media that is none."""
    page = written.format('<video src="/high.mp4"></video>')
    encoding = "utf-16-le" if page.startswith("\ufeff") else "utf-8"

    async def script(exchange: Exchange) -> None:
        if exchange.target == "/page":
            await exchange.answer(200, page.encode(encoding), "Content-Type: text/html")
        else:
            data = (site_folder / "high.mp4").read_bytes()
            await exchange.answer(200, data, "Content-Type: video/mp4")

    with (
        Server(script) as web,
        served(tmp_path, web) as server,
        Client(server.url, server.key) as client,
    ):
        made = client.convert_to_mp3(url=web.url("/page")).save(tmp_path / "a.mp3")
        assert polymux.probe(made).duration_s == pytest.approx(3, abs=0.3)


@pytest.mark.parametrize(
    ("operation", "streams"),
    [("convert_to_mp3", {"audio"}), ("download_video", {"audio", "video"})],
)
def test_a_video_that_its_site_calls_a_page(
    site_folder: Path, tmp_path: Path, operation: str, streams: set[str]
) -> None:
    """U45: what it is counts, and not what it is called."""
    data = (site_folder / "low.mp4").read_bytes()
    with (
        Server(answering(200, data, "Content-Type: text/html; charset=utf-8")) as site,
        served(tmp_path, site) as server,
        Client(server.url, server.key) as client,
    ):
        kept = getattr(client, operation)(url=site.url("/page")).save(tmp_path / "kept")
        assert list((tmp_path / "s" / "drafts").iterdir()) == []
    found = polymux.probe(kept)
    assert {one.type for one in found.streams} == streams
    assert found.duration_s == pytest.approx(3, abs=0.3)


def test_the_first_that_a_search_finds(site: Server, tmp_path: Path) -> None:
    search = site.url("/find/{query}")
    with served(tmp_path, site, music_search=search) as server:
        with Client(server.url, server.key) as client:
            made = client.download_music("Blue / Danube?").save(tmp_path / "a.mp3")
        assert polymux.probe(made).duration_s == pytest.approx(3, abs=0.3)
    assert site.requests[0].target == "/find/Blue%20%2F%20Danube%3F"


@pytest.mark.parametrize(
    ("path", "codecs"),
    [
        ("/page/high.mp4", {"mpeg4", "aac"}),
        ("/high.mp4", {"mpeg4", "aac"}),
        ("/hls/list.m3u8", {"mpeg2video", "aac"}),
        ("/dash/list.mpd", {"mpeg4", "aac"}),
    ],
)
def test_a_video_is_one_file_that_plays(
    site: Server, tmp_path: Path, path: str, codecs: set[str]
) -> None:
    """Picture and sound that came apart are joined, parts that came as a list are one."""
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        made = client.download_video(site.url(path))
        kept = made.save(tmp_path / "video.bin")
        assert made.content_type in ("video/mp4", "video/matroska", "video/x-matroska")
        words = ("-v", "error", "-show_entries", "stream=codec_name:format=duration", "-of", "json")
        found = json.loads(run("ffprobe", *words, kept).stdout)
        assert {one["codec_name"] for one in found["streams"]} == codecs
        assert float(found["format"]["duration"]) == pytest.approx(3, abs=0.4)
        run("ffmpeg", "-v", "error", "-xerror", "-i", kept, "-f", "null", "-")
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


@pytest.mark.parametrize(
    ("resolution", "height"), [("144p", 144), ("200", 144), ("best", 240), ("", 240)]
)
def test_the_best_at_or_below_what_was_asked_for(
    site: Server, site_folder: Path, tmp_path: Path, resolution: str, height: int
) -> None:
    (site_folder / "both.m3u8").write_text(
        "#EXTM3U\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=192x144\nlow.m3u8\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=320x240\nhls/list.m3u8\n"
    )
    low = site_folder / "low.m3u8"
    if not low.exists():
        run("ffmpeg", "-v", "error", "-i", site_folder / "low.mp4", "-c:v", "mpeg2video",
            "-f", "hls", "-hls_playlist_type", "vod", low)  # fmt: skip
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        made = client.download_video(site.url("/both.m3u8"), resolution=resolution)
        kept = made.save(tmp_path / "video.bin")
    words = ("-v", "error", "-select_streams", "v", "-show_entries", "stream=height", "-of", "json")
    (stream,) = json.loads(run("ffprobe", *words, kept).stdout)["streams"]
    assert stream["height"] == height


def test_the_smallest_above_where_none_is_below(
    site: Server, site_folder: Path, tmp_path: Path
) -> None:
    """Not the other, which is said to be larger, and is nowhere."""
    (site_folder / "large.m3u8").write_text(
        "#EXTM3U\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=640x480\nabsent.m3u8\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=320x240\nhls/list.m3u8\n"
    )
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        made = client.download_video(site.url("/large.m3u8"), resolution="180p")
        kept = made.save(tmp_path / "video.bin")
    words = ("-v", "error", "-select_streams", "v", "-show_entries", "stream=height", "-of", "json")
    (stream,) = json.loads(run("ffprobe", *words, kept).stdout)["streams"]
    assert stream["height"] == 240


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/page/missing.mp4", 404, "gone"),
        ("/frame/http%3A%2F%2F127.0.0.1%3A9%2Fa.mp4", 400, "url_refused"),
        ("/frame/file%3A%2F%2F%2Fetc%2Fpasswd", 415, "unsupported_media"),
        ("/find/nothing-at-all", 404, "gone"),
    ],
)
def test_pages_that_lead_nowhere(
    site: Server, site_folder: Path, tmp_path: Path, path: str, status: int, code: str
) -> None:
    with served(tmp_path, site) as server, Client(server.url, server.key, retry=0) as client:
        if path.startswith("/find"):
            site.script.__self__.found = "missing.mp4"  # type: ignore[attr-defined]
        with pytest.raises(errors.APIStatusError) as caught:
            client.convert_to_mp3(url=site.url(path))
        error = caught.value
        assert (error.status, error.code) == (status, code), error
        assert "root:" not in str(error)
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


def test_pages_are_refused_where_nothing_reads_them(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site, enabled=False) as server, Client(server.url, server.key) as client:
        with pytest.raises(errors.APIStatusError, match=r"polymux\[download\]") as caught:
            client.convert_to_mp3(url=site.url("/page/high.mp4"))
        assert caught.value.status == 415
        with pytest.raises(errors.NoBackendError):
            client.download_music("song")


def test_limits_of_bytes_and_time(site: Server, tmp_path: Path) -> None:
    error = failure(served(tmp_path, site, max_bytes=20_000), site.url("/page/high.mp4"))
    assert (error.status, error.param) == (413, "url")
    began = time.monotonic()
    error = failure(served(tmp_path / "b", site, total_s=6), site.url("/page/slow/high.mp4"))
    assert error.status == 504
    assert time.monotonic() - began < 20


def failure(server: PolymuxServer, url: str) -> errors.APIStatusError:
    with (
        server,
        Client(server.url, server.key, retry=0) as client,
        pytest.raises(errors.APIStatusError) as caught,
    ):
        client.convert_to_mp3(url=url)
    return caught.value


def processes() -> list[str]:
    """Command lines of downloaders."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if "polymux.downloads.engine" in line and str(os.getpid()) in line:
                found.append(line)
    return found


def test_cancelled_its_processes_are_gone(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        body, headers = form(("url", site.url("/page/slow/high.mp4")))
        begun = server.ask("POST", CONVERT, body, [*headers, ("Prefer", "respond-async")])
        wait_until(lambda: any(one.target == "/slow/high.mp4" for one in site.requests))
        assert len(processes()) == 2  # The downloader, and its way out.
        began = time.monotonic()
        assert client.predictions.cancel(begun.json()["id"]).status == "canceled"
        assert time.monotonic() - began < 4
        wait_until(lambda: processes() == [])
        wait_until(lambda: list((tmp_path / "s" / "drafts").iterdir()) == [])


@pytest.mark.parametrize("then", ["stalls", "drips"])
def test_cancelled_while_the_page_is_read(tmp_path: Path, then: str) -> None:
    """yt-dlp hears of nothing while it waits for a site: its process is ended."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>")
        while then == "drips":
            await exchange.send(b" ")
            await asyncio.sleep(0.1)
        await exchange.closed()

    with (
        Server(script) as web,
        served(tmp_path, web) as server,
        Client(server.url, server.key) as client,
    ):
        body = {"url": web.url("/page")}
        begun = server.json("/api/v1/downloadvideo", body, [("Prefer", "respond-async")])
        wait_until(lambda: web.requests)
        time.sleep(0.3)
        assert len(processes()) == 2
        began = time.monotonic()
        assert client.predictions.cancel(begun.json()["id"]).status == "canceled"
        assert time.monotonic() - began < 4
        wait_until(lambda: processes() == [])
        wait_until(lambda: list((tmp_path / "s" / "drafts").iterdir()) == [])
        assert len(web.requests) == 1
