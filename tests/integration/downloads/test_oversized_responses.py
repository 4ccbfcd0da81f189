"""Sites that send too much, more than declared or after decompression. Case IDs: testing.md."""

from __future__ import annotations

import asyncio
import gzip
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import unquote

import polymux
import pytest
from support.faulty_downloaders import ENDLESS_LINE, LINES_BYTES, LOUD
from support.fetches import answering, showing
from support.hostile_check import SANITIZED
from support.http_server import Server
from support.media_url_server import MUSIC, OPERATIONS, Grown, MediaUrlServer, Watched
from support.supervised_engine import TESTS

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange, Script

_MIB = 1 << 20
#: The downloader's memory limit in these tests, instead of the default.
_DATA_BYTES = 300 * _MIB
#: Data in transit on a connection: at both ends and in between.
_UNDER_WAY_BYTES = 64 * _MIB
#: Resident memory of a process that is not data, such as libraries.
_LIBRARIES_BYTES = 64 * _MIB
#: The transfer limit of one download: twice its file plus its pages.
_PAGES_BYTES = 66 * _MIB
#: 64 MiB of zeros, compressed with brotli.
_BROTLI = bytes.fromhex(
    "cfffff7ff82700e2b14020f7fe9ffffffff04f00c4610180eefd3fffffffe19f0088c32200ddfb7ffeffffc33f011087"
    "0500baf7ff03"
)
PAGE = "text/html; charset=utf-8"


@pytest.fixture(autouse=True)
def _held(monkeypatch: pytest.MonkeyPatch) -> None:
    if not SANITIZED:
        monkeypatch.setattr("polymux.downloads.downloader._DATA_BYTES", _DATA_BYTES)


@pytest.fixture
def sent() -> list[int]:
    return [0]


def pouring(head: str, sent: list[int]) -> Script:
    """Sends headers and an endless page until the connection closes. `sent` counts the bytes."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n<html>".encode())
        while True:
            await exchange.send(b" " * (1 << 16))
            sent[0] += 1 << 16

    return script


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("convert_to_mp3", "video/mp4"), ("download_video", "video/mp4")],
)
def test_ten_gibibytes_are_refused_before_they_come(
    tmp_path: Path, sent: list[int], operation: str, kind: str
) -> None:
    """Case U34."""
    script = pouring(f"Content-Type: {kind}\r\nContent-Length: {10 << 30}", sent)
    with Server(script) as site, MediaUrlServer(tmp_path, site) as server:
        assert server.failure(operation, site.url("/a"))[:2] == (413, "too_large")
    assert sent[0] < _UNDER_WAY_BYTES


def test_a_page_without_end(tmp_path: Path, sent: list[int]) -> None:
    """Pages have no length limit, but all bytes of a download are counted (U33)."""
    script = pouring(f"Content-Type: {PAGE}", sent)
    with Server(script) as site, MediaUrlServer(tmp_path, site) as server, Watched() as watched:
        status, code, words = server.failure("summarize_video", site.url("/page"))
    assert (status, code) == (502, "upstream_failed"), words
    assert sent[0] < _UNDER_WAY_BYTES + _PAGES_BYTES
    assert watched.max_bytes <= _DATA_BYTES + _LIBRARIES_BYTES or SANITIZED


def packed_page() -> bytes:
    more = gzip.compress(bytes(64 * _MIB))
    return gzip.compress(b"<html>" + bytes(64 * _MIB)) + more * 15


@pytest.mark.parametrize(
    ("operation", "encoding", "packed"),
    [("convert_to_mp3", "gzip", packed_page()), ("transcribe", "br", _BROTLI)],
    ids=["gzip", "br"],
)
def test_a_bomb_is_no_file(tmp_path: Path, operation: str, encoding: str, packed: bytes) -> None:
    """Decompression stops at the file size limit (U37)."""
    fields = (f"Content-Encoding: {encoding}", f"Content-Type: {PAGE}")
    with Server(answering(200, packed, *fields)) as site, MediaUrlServer(tmp_path, site) as server:
        with Grown() as grown:
            status, code, words = server.failure(operation, site.url("/a"))
        assert (status, code) == (413, "too_large"), words
        assert "1048576" in words
        assert grown.bytes < 64 * _MIB or SANITIZED


def test_a_bomb_is_no_page(tmp_path: Path) -> None:
    """The process stays within its memory limit (U37). Brotli: `test_browser_impersonation`."""
    fields = ("Content-Encoding: gzip", f"Content-Type: {PAGE}")
    with (
        Server(answering(200, packed_page(), *fields)) as site,
        MediaUrlServer(tmp_path, site) as server,
        Watched() as watched,
    ):
        status, code, words = server.failure("download_video", site.url("/page"))
    assert (status, code) == (502, "upstream_failed"), words
    assert watched.max_bytes <= _DATA_BYTES + _LIBRARIES_BYTES or SANITIZED


LIST = """<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT100S"><Period>
<AdaptationSet mimeType="video/mp4"><SegmentTemplate {template}
<Representation id="1" bandwidth="1"/></AdaptationSet></Period></MPD>"""
_LINE = '<SegmentTimeline><S t="0" d="1" r="1000000000"/></SegmentTimeline></SegmentTemplate>'
#: Segment name templates. With a billion segments, their total cost must be limited.
TEMPLATES = {
    "a billion": 'media="$Number$.m4s" duration="1" timescale="10000000"/>',
    "a billion of a line": f'media="$Time$.m4s" timescale="1">{_LINE}',
    "a wide number": 'media="$Number%0999999999d$.m4s" duration="1"/>',
}  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
def test_lists_of_parts(tmp_path: Path, template: str) -> None:
    text = LIST.format(template=TEMPLATES[template])
    script = showing({"/list.mpd": ("application/dash+xml", text)})
    with (
        Server(script) as site,
        MediaUrlServer(tmp_path, site, total_s=60) as server,
        Watched() as watched,
    ):
        status, code, words = server.failure("download_video", site.url("/list.mpd"))
    assert (status, code) in ((502, "upstream_failed"), (404, "gone")), words
    assert len(site.requests) < 20
    assert watched.max_bytes <= _DATA_BYTES + _LIBRARIES_BYTES or SANITIZED


def half_a_file(data: bytes) -> Script:
    """``/drips``, ``/stalls`` and ``/resets`` start to send the file and ``/silent`` never
    responds. Pages below ``/page`` show these files.
    """

    async def script(exchange: Exchange) -> None:
        end = unquote(exchange.target).strip("/")  # A search query is one escaped path segment.
        if end.startswith("page"):
            page = f'<!doctype html><video src="/{end.removeprefix("page/")}"></video>'
            await exchange.answer(200, page.encode(), f"Content-Type: {PAGE}")
            return
        if end != "silent":
            head = f"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: {len(data)}"
            half = b"" if end == "drips" else data[: len(data) // 2]
            await exchange.send(f"{head}\r\n\r\n".encode() + half)
        for number in range(len(data) if end == "drips" else 0):
            await exchange.send(data[number : number + 1])
            await asyncio.sleep(1)
        if end == "resets":
            exchange.reset()
        else:
            await exchange.closed()

    return script


@pytest.mark.parametrize(
    ("total_s", "asked"),
    [
        (1.0, [("convert_to_mp3", "/drips"), ("transcribe", "/stalls"), ("transcribe", "/silent")]),
        # The downloader takes seconds to start on a busy machine.
        (8.0, [("download_video", "/drips"), ("download_video", "/silent")]),
        (40.0, [("convert_to_mp3", "/resets"), (MUSIC, "/page/resets")]),
    ],
    ids=["files", "downloads", "resets"],
)  # fmt: skip
def test_half_a_file(
    site_folder: Path, tmp_path: Path, total_s: float, asked: list[tuple[str, str]]
) -> None:
    """The deadline ends it, the error names the cause, and no file remains (U36)."""
    script = half_a_file((site_folder / "low.mp4").read_bytes())
    with (
        Server(script) as site,
        MediaUrlServer(tmp_path, site, total_s=total_s) as server,
        ThreadPoolExecutor() as pool,
    ):
        failures = list(pool.map(lambda one: server.failure(one[0], site.url(one[1])), asked))
        for (_, path), (status, code, words) in zip(asked, failures, strict=True):
            is_reset = path.endswith("resets")
            expected = (502, "upstream_failed") if is_reset else (504, "upstream_timeout")
            assert (status, code) == expected, words
            assert any(one.target == path.removeprefix("/page") for one in site.requests)


#: U32, invalid UTF-8, and invalid percent-encoding.
NO_ADDRESSES = {
    "empty": "",
    "null": "null",
    "3 MiB": "http://media.example/" + "x" * (3 << 20),
    "at signs": "http://" + "@" * 100_000,
    "dots": "http://127.0.0.1/" + "%2e" * 100_000,
    "percent": "http://media%zz.example/%",
    "no UTF-8": "http://%ff%fe/",
}


def test_what_is_no_address_costs_nothing(site: Server, tmp_path: Path) -> None:
    """Every operation rejects it. The check takes less than 50 ms of CPU time (U32)."""
    with MediaUrlServer(tmp_path, site) as server:
        for name, url in NO_ADDRESSES.items():
            for operation in OPERATIONS:
                # The longest URL may exceed the form's own limit first.
                refused = (400, 413) if name == "3 MiB" else (400,)
                assert server.fetches(operation, url).status in refused, (name, operation)
        assert server.json("/api/v1/downloadvideo", {"url": None}).status == 400
        server.has_nothing_left()
    assert site.requests == []
    for name, url in NO_ADDRESSES.items():
        began = time.process_time()
        with pytest.raises(polymux.URLRefusedError):
            polymux.fetch.fetcher.fetch(url)
        assert time.process_time() - began < 0.05, name


@pytest.mark.parametrize("family", [LOUD, ENDLESS_LINE])
def test_a_downloader_that_says_too_much(
    site: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    family: str,
) -> None:
    """Nothing blocks if the output is read slowly, and the log is limited (U54)."""
    monkeypatch.setattr("polymux.downloads.downloader._FAMILY", family)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    caplog.set_level("INFO", "polymux.engines")
    with MediaUrlServer(tmp_path, site) as server, Grown() as grown:
        assert server.fetches("convert_to_mp3", site.url("/page/low.mp4")).status == 200
        server.has_nothing_left()
    logs = [one.getMessage() for one in caplog.records if one.name == "polymux.engines"]
    assert sum(map(len, logs)) < 4 * _MIB
    assert grown.bytes < 64 * _MIB or SANITIZED
    if family == LOUD:
        left_out = [int(found[1]) for one in logs if (found := re.search(r": (\d+) [^\d:]+$", one))]
        logged = sum("www" in one for one in logs)
        # The downloader may log a warning after these lines.
        assert sum(left_out) + logged - LINES_BYTES // 64 in (0, 1)
