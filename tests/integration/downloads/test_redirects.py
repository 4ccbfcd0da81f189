"""Long redirect chains and protocol changes, for every download operation. Case IDs: testing.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.conversions import wav
from support.fetches import answering
from support.http_server import Server
from support.media_url_server import MediaUrlServer

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange, Script

#: The maximum number of requests per URL: five redirects are followed, also for pages.
_MAX_HOPS = 6


async def in_a_ring(exchange: Exchange) -> None:
    place = "/b" if exchange.target == "/a" else "/a"
    await exchange.answer(302, b"", f"Location: {place}")


async def in_a_chain(exchange: Exchange) -> None:
    """Fifty redirects and a file at the end."""
    number = int(re.sub(r"\D", "", exchange.target) or 0)
    if number < 50:
        await exchange.answer(302, b"", f"Location: /{number + 1}")
    else:
        await exchange.answer(200, wav(1), "Content-Type: audio/wav")


@pytest.mark.parametrize(
    ("operation", "script"),
    [("convert_to_mp3", in_a_ring), ("download_video", in_a_chain)],
)  # fmt: skip
def test_it_is_given_up(tmp_path: Path, operation: str, script: Script) -> None:
    """The limit is five redirects, for files and pages (U24)."""
    with Server(script) as site, MediaUrlServer(tmp_path, site) as server:
        status, code, words = server.failure(operation, site.url("/a"))
        assert (status, code) == (502, "upstream_failed"), words
        assert site.authority not in words
        assert "redirect" in words
        assert site.connections == _MAX_HOPS


def test_what_a_page_shows_may_lead_on_too(tmp_path: Path) -> None:
    """The page loads, but its video has too many redirects (U24)."""

    async def page(exchange: Exchange) -> None:
        if exchange.target == "/page":
            await exchange.answer(
                200, b'<html><video src="/a"></video></html>', "Content-Type: text/html"
            )
        else:
            await in_a_ring(exchange)

    with Server(page) as site, MediaUrlServer(tmp_path, site) as server:
        status, code, words = server.failure("convert_to_mp3", site.url("/page"))
        assert (status, code) == (502, "upstream_failed"), words
        # The page, requested by the fetcher and the downloader, and its video with three tries.
        assert site.connections <= 2 + 3 * _MAX_HOPS


def test_five_are_followed(tmp_path: Path) -> None:
    async def five(exchange: Exchange) -> None:
        number = int(exchange.target.strip("/") or 0)
        if number < 5:
            await exchange.answer(302, b"", f"Location: /{number + 1}")
        else:
            await exchange.answer(200, wav(1), "Content-Type: audio/wav")

    with Server(five) as site, MediaUrlServer(tmp_path, site) as server:
        assert server.fetches("convert_to_mp3", site.url("/0")).status == 200
        assert server.fetches("download_video", site.url("/0")).status == 200
        server.has_nothing_left()


def test_https_leads_to_https_alone(tmp_path: Path, certificate: Path) -> None:
    """A file requested with https is never downloaded without TLS (U26)."""
    with (
        Server(answering(200, wav(1), "Content-Type: audio/wav")) as plain,
        Server(answering(), certificate=certificate.with_name("both.pem")) as safe,
        MediaUrlServer(tmp_path, plain, safe, bundle=certificate) as server,
    ):
        safe.script = answering(302, b"", f"Location: {plain.url('/a.wav')}")
        status, code, words = server.failure("convert_to_mp3", safe.url("/a"))
        assert (status, code) == (400, "url_refused")
        assert "https" in words
        assert (safe.connections, plain.connections) == (1, 0)
        safe.script = answering(200, wav(1), "Content-Type: audio/wav")
        plain.script = answering(302, b"", f"Location: {safe.url('/a.wav')}")
        assert server.fetches("convert_to_mp3", plain.url("/a")).status == 200


def test_a_page_over_tls_may_lead_to_one_without(
    tmp_path: Path, certificate: Path, site_folder: Path
) -> None:
    """By a redirect or as the page's video. Every connection is checked (U26)."""

    def redirect(to: Server) -> Script:
        return answering(302, b"", f"Location: {to.url('/a')}")

    def shown(to: Server) -> Script:
        page = f'<html><video src="{to.url("/a")}"></video></html>'
        return answering(200, page.encode(), "Content-Type: text/html")

    video = answering(200, (site_folder / "low.mp4").read_bytes(), "Content-Type: video/mp4")
    with (
        Server(video) as plain,
        Server(answering()) as unlisted,
        Server(answering(), certificate=certificate.with_name("both.pem")) as safe,
        MediaUrlServer(tmp_path, plain, safe, bundle=certificate) as server,
    ):
        for leading in (redirect, shown):
            safe.script = leading(plain)
            before = plain.connections
            server.made("download_video", safe.url("/page"))
            assert plain.connections > before
        safe.script = shown(unlisted)
        status, code, _ = server.failure("download_video", safe.url("/page"))
        assert (status, code) == (400, "url_refused")
        assert unlisted.connections == 0


def test_nobody_is_believed_whose_certificate_is_not(tmp_path: Path, certificate: Path) -> None:
    """An untrusted certificate fails the download, which is not repeated without TLS (U26)."""
    with (
        Server(
            answering(200, b"<html></html>"), certificate=certificate.with_name("both.pem")
        ) as one,
        MediaUrlServer(tmp_path, one) as server,
    ):
        status, code, words = server.failure("summarize_video", one.url("/page"))
        assert (status, code) == (502, "upstream_failed")
        assert "certificate" in words.lower()
        assert one.requests == []
