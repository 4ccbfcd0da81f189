"""URLs of media files: downloaded with SSRF protection, then handled like uploads."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import Client, errors
from polymux.downloads.url_inputs import UrlFetcher
from polymux.runtime.settings import Limits
from polymux.service.model import ProgressSink, Upload
from polymux.service.store import Store
from support.commands import run
from support.conversions import wav
from support.fetches import answering, wait_until
from support.http_server import Server
from support.media_url_server import allowing
from support.polymux_server import PolymuxServer, form

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange

CONVERT = "/api/v1/convert2mp3"


def served(folder: Path, *sites: Server, **limits: Any) -> PolymuxServer:
    return PolymuxServer(folder / "s", fetch=allowing(*sites), limits=Limits(**limits))


def failure(server: PolymuxServer, url: str) -> errors.APIStatusError:
    with (
        Client(server.url, server.key, retry=0) as client,
        pytest.raises(errors.APIStatusError) as caught,
    ):
        client.convert_to_mp3(url=url)
    return caught.value


def test_it_is_what_the_same_file_is_when_it_is_sent(site: Server, tmp_path: Path) -> None:
    """Equal to an upload: HTTP API, both clients, the command, `Local`, and through redirects."""
    data = site_bytes(site, "tone.wav")
    wanted = polymux.convert_to_mp3(data, vbr_quality=0).read()
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        made = client.convert_to_mp3(url=site.url("/tone.wav"))
        assert made.read() == wanted
        assert client.convert_to_mp3(url=site.url("/to/tone.wav")).read() == wanted
        body, headers = form(("url", site.url("/tone.wav")))
        assert server.ask("POST", CONVERT, body, headers).status == 200

        async def asynchronous() -> bytes:
            async with polymux.AsyncClient(server.url, server.key) as other:
                return await (await other.convert_to_mp3(url=site.url("/tone.wav"))).aread()

        assert asyncio.run(asynchronous()) == wanted
        words = ["convert-to-mp3", "--url", site.url("/tone.wav"), "--server", server.url]
        run(*words, cwd=tmp_path, POLYMUX_API_KEY=server.key)
        assert (tmp_path / "tone.mp3").read_bytes() == wanted
        assert list((tmp_path / "s" / "drafts").iterdir()) == []
    with polymux.Local(fetch=allowing(site)) as local:
        assert local.convert_to_mp3(url=site.url("/tone.wav")).read() == wanted


def site_bytes(site: Server, name: str) -> bytes:
    return bytes(
        polymux.fetch.fetcher.fetch(site.url(f"/{name}"), policy=allowing(site)).data or b""
    )


def test_both_and_neither_are_refused(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site) as server:
        both, headers = form(("url", site.url("/tone.wav")), ("file", ("a.wav", wav(1))))
        assert server.ask("POST", CONVERT, both, headers).status == 400
        neither, headers = form(("bitrate", "64k"))
        assert server.ask("POST", CONVERT, neither, headers).status == 400
    assert site.requests == []


WRONG = {
    "/status/404": (404, "gone", "404"),
    "/status/410": (404, "gone", "410"),
    "/status/403": (502, "upstream_failed", "403"),
    "/status/500": (502, "upstream_failed", "500"),
    "/lying/tone.wav": (502, "upstream_failed", ""),
    "/captions.txt": (415, "unsupported_media", ""),
    "/leads/http%3A%2F%2F169.254.169.254%2F": (400, "url_refused", "redirect"),
    "/leads/file%3A%2F%2F%2Fetc%2Fpasswd": (400, "url_refused", "redirect"),
}


def test_what_lies_there_may_be_wrong(site: Server, site_folder: Path, tmp_path: Path) -> None:
    (site_folder / "captions.txt").write_text("just words\n" * 100)
    with served(tmp_path, site) as server:
        for path, (status, code, says) in WRONG.items():
            error = failure(server, site.url(path))
            assert (error.status, error.code) == (status, code), (path, error)
            assert error.param == "url" or code != "url_refused"
            assert says in str(error)
            assert "127.0.0.1" not in str(error)
            assert list((tmp_path / "s" / "drafts").iterdir()) == []


def test_private_addresses_are_refused(site: Server, tmp_path: Path) -> None:
    with PolymuxServer(tmp_path / "s") as server:
        for url in (site.url("/tone.wav"), "http://localhost/", "http://[::1]/"):
            error = failure(server, url)
            assert (error.status, error.code, error.param) == (400, "url_refused", "url")
    with polymux.Local() as local, pytest.raises(errors.BadRequestError) as caught:
        local.convert_to_mp3(url=site.url("/tone.wav"))
    assert (caught.value.code, caught.value.param) == ("url_refused", "url")
    assert site.requests == []


def test_too_much(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site, upload_bytes=100_000) as server:
        error = failure(server, site.url("/tone.wav"))
        assert (error.status, error.param) == (413, "url")
        error = failure(server, site.url("/endless"))
        assert error.status == 413


def test_a_caller_who_leaves_ends_the_fetch(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def stalls(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + wav(1)[:1000])
        await exchange.closed()
        gone.set()

    with Server(stalls) as slow, served(tmp_path, slow) as server:
        body, headers = form(("url", slow.url("/a.wav")))
        with socket.create_connection(server.address, 10) as connection:
            lines = [f"POST {CONVERT} HTTP/1.1", f"Host: {server.address[0]}:{server.address[1]}",
                     f"Authorization: Bearer {server.key}", f"Content-Length: {len(body)}",
                     *(f"{name}: {value}" for name, value in headers), "", ""]  # fmt: skip
            connection.sendall("\r\n".join(lines).encode() + body)
            wait_until(lambda: slow.requests)
            assert not gone.is_set()
        wait_until(gone.is_set)
        wait_until(lambda: list((tmp_path / "s" / "drafts").iterdir()) == [])


@pytest.mark.parametrize(
    ("page", "is_page"),
    [
        (b"\r\n" * 750 + b"<html>", True),
        (b"\r\n" * 30_000 + b"#EXTM3U", True),
        (b"\r\n" * 750 + b"RIFF", False),
        (b"\r\n" * 35_000 + b"<html>", False),
        (b"Warning: something is wrong\n<html><body>", True),
        (b"\xef\xbb\xbf<!-- a comment --><p>", True),
        (b"\xef\xbb\xbfHello <!DOCTYPE html>", True),
        (b"\xef\xbb\xbf#EXTM3U\n", True),
    ],
    ids=range(8),
)
def test_pages_are_seen_as_such(tmp_path: Path, page: bytes, is_page: bool) -> None:
    async def brought() -> Upload:
        url_fetcher = UrlFetcher(allowing(site), 1 << 20)
        with closing(Store(tmp_path / "store")) as store:
            sink = ProgressSink(lambda: None, store.media.draft)
            return await url_fetcher.fetch(site.url("/x.wav"), sink, [])

    with Server(answering(200, page)) as site:
        if is_page:
            with pytest.raises(errors.APIStatusError, match=r"polymux\[download\]"):
                asyncio.run(brought())
        else:
            assert asyncio.run(brought()).file_name == "x.wav"


def test_a_slow_address_holds_nobodys_place(tmp_path: Path) -> None:
    """During the download, the engine's only concurrency slot is free for other requests."""

    async def stalls(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        await exchange.closed()

    with (
        Server(stalls) as slow,
        served(tmp_path, slow) as server,
        Client(server.url, server.key) as client,
    ):
        body, headers = form(("url", slow.url("/a.wav")))
        begun = server.ask("POST", CONVERT, body, [*headers, ("Prefer", "respond-async")])
        job = begun.json()["id"]
        wait_until(lambda: slow.requests)
        assert client.predictions.get(job).status == "processing"
        assert len(client.convert_to_mp3(("a.wav", wav(1))).read()) > 1000
        assert client.predictions.cancel(job).status == "canceled"


def test_a_keys_limit_holds_for_what_was_fetched(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site) as server:
        key, _ = server.keys.add("short", max_estimate_s=0.001)
        with (
            Client(server.url, key) as client,
            pytest.raises(errors.UnprocessableEntityError) as caught,
        ):
            client.convert_to_mp3(url=site.url("/tone.wav"))
        assert caught.value.code == "estimate_over_limit"
