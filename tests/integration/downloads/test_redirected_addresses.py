"""Addresses that lead on, and on: every operation that fetches gives up, and says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.addressed_server import AddressedServer
from support.conversions import wav
from support.fetches import answering
from support.web import Server

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import Exchange, Script

#: Requests that one address costs at most: five redirects are followed, in pages too.
_MAX_HOPS = 6


async def in_a_ring(exchange: Exchange) -> None:
    place = "/b" if exchange.target == "/a" else "/a"
    await exchange.answer(302, b"", f"Location: {place}")


async def in_a_chain(exchange: Exchange) -> None:
    """Fifty hops, and something worth having behind the last."""
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
    """U24: after five redirects, of a file and of a page."""
    with Server(script) as site, AddressedServer(tmp_path, site) as server:
        status, code, words = server.failure(operation, site.url("/a"))
        assert (status, code) == (502, "upstream_failed"), words
        assert site.authority not in words
        assert "redirect" in words
        assert site.connections == _MAX_HOPS


def test_what_a_page_shows_may_lead_on_too(tmp_path: Path) -> None:
    """U24: the page is there, and its video is behind the redirects."""

    async def page(exchange: Exchange) -> None:
        if exchange.target == "/page":
            await exchange.answer(
                200, b'<html><video src="/a"></video></html>', "Content-Type: text/html"
            )
        else:
            await in_a_ring(exchange)

    with Server(page) as site, AddressedServer(tmp_path, site) as server:
        status, code, words = server.failure("convert_to_mp3", site.url("/page"))
        assert (status, code) == (502, "upstream_failed"), words
        # The page, by the fetcher and by the downloader, and its video, three times tried.
        assert site.connections <= 2 + 3 * _MAX_HOPS


def test_five_are_followed(tmp_path: Path) -> None:
    async def five(exchange: Exchange) -> None:
        number = int(exchange.target.strip("/") or 0)
        if number < 5:
            await exchange.answer(302, b"", f"Location: /{number + 1}")
        else:
            await exchange.answer(200, wav(1), "Content-Type: audio/wav")

    with Server(five) as site, AddressedServer(tmp_path, site) as server:
        assert server.fetches("convert_to_mp3", site.url("/0")).status == 200
        assert server.fetches("download_video", site.url("/0")).status == 200
        server.has_nothing_left()


def test_https_leads_to_https_alone(tmp_path: Path, certificate: Path) -> None:
    """U26: a file that was asked for over TLS does not come without."""
    with (
        Server(answering(200, wav(1), "Content-Type: audio/wav")) as plain,
        Server(answering(), certificate=certificate.with_name("both.pem")) as safe,
        AddressedServer(tmp_path, plain, safe, bundle=certificate) as server,
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
    """U26: by a redirect, and by what it shows; each connection is judged like any other."""

    def redirect(to: Server) -> Script:
        return answering(302, b"", f"Location: {to.url('/a')}")

    def shown(to: Server) -> Script:
        page = f'<html><video src="{to.url("/a")}"></video></html>'
        return answering(200, page.encode(), "Content-Type: text/html")

    video = answering(200, (site_folder / "low.mp4").read_bytes(), "Content-Type: video/mp4")
    with (
        Server(video) as plain,
        Server(answering()) as stranger,
        Server(answering(), certificate=certificate.with_name("both.pem")) as safe,
        AddressedServer(tmp_path, plain, safe, bundle=certificate) as server,
    ):
        for leading in (redirect, shown):
            safe.script = leading(plain)
            before = plain.connections
            server.made("download_video", safe.url("/page"))
            assert plain.connections > before
        safe.script = shown(stranger)
        status, code, _ = server.failure("download_video", safe.url("/page"))
        assert (status, code) == (400, "url_refused")
        assert stranger.connections == 0


def test_nobody_is_believed_whose_certificate_is_not(tmp_path: Path, certificate: Path) -> None:
    """U26: where the certificate is a stranger's no page is asked for, over TLS or without."""
    with (
        Server(
            answering(200, b"<html></html>"), certificate=certificate.with_name("both.pem")
        ) as one,
        AddressedServer(tmp_path, one) as server,
    ):
        status, code, words = server.failure("summarize_video", one.url("/page"))
        assert (status, code) == (502, "upstream_failed")
        assert "certificate" in words.lower()
        assert one.requests == []
