"""Captions that a page names and that are none: then its speech is written down, as without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux import Client
from support.fetches import answering
from support.summaries import Served
from support.video_site import CAPTIONS, PAGE, Site
from support.web import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.web import Exchange

CUE = "00:01.000 --> 00:02.000\n"


class Captioned(Site):
    """``/shows/ADDRESS`` is a page whose video's captions are there; ``/given.vtt`` is `given`.

    So is ``/given?id=5``.
    """

    given: tuple[int, bytes] = 200, b""

    async def answer(self, exchange: Exchange) -> None:
        if exchange.target in ("/given.vtt", "/given?id=5"):
            status, data = self.given
            await exchange.answer(status, data, "Content-Type: text/vtt")
        elif exchange.target.startswith("/shows/"):
            address = exchange.target.removeprefix("/shows/")
            more = f'<track kind="captions" src="{address}" srclang="en">'
            page = PAGE.format(title="A talk", source="/high.mp4", more=more)
            await exchange.answer(200, page.encode(), "Content-Type: text/html; charset=utf-8")
        else:
            await super().answer(exchange)


@pytest.fixture
def captioned(site_folder: Path) -> Iterator[tuple[Captioned, Server]]:
    site = Captioned(site_folder)
    with site.server() as running:
        yield site, running


@pytest.mark.parametrize(
    ("status", "data"),
    [
        (404, b"<html>nothing here</html>"),
        (200, b"<!doctype html><html>nothing here</html>"),
        (200, b""),
        (200, b"WEBVTT\n\n" + CUE.encode() + "Река несёт камни".encode("cp1251")),
        (200, b"WEBVTT\n\nNOTE nothing is said\n\n" + CUE.encode() + b"<c> </c>\n"),
    ],
    ids=["not there", "a page", "empty", "in another encoding", "without words"],
)
def test_captions_that_say_nothing(
    captioned: tuple[Captioned, Server], tmp_path: Path, status: int, data: bytes
) -> None:
    site, web = captioned
    site.given = status, data
    with Served(tmp_path, web) as server, Client(server.url, server.key) as client:
        assert client.summarize_video(web.url("/shows//given.vtt")).text == "summary 1"
        assert [one.operation for one in server.model.asked] == ["transcribe", "chat"]
        assert server.model.material(0) == "Somebody speaks."
    assert [one.target for one in web.requests].count("/given.vtt") == 1


def test_captions_of_old_programs(captioned: tuple[Captioned, Server], tmp_path: Path) -> None:
    site, web = captioned
    site.given = 200, CAPTIONS.replace("\n", "\r\n").encode("utf-16")
    with Served(tmp_path, web) as server, Client(server.url, server.key) as client:
        assert client.summarize_video(web.url("/shows//given.vtt")).text == "summary 1"
        assert server.model.material(0).startswith("The river carries stones. They become round.")


@pytest.mark.parametrize("form", ["WebVTT", "SubRip", "a page"])
def test_captions_whose_address_tells_no_form(
    captioned: tuple[Captioned, Server], tmp_path: Path, form: str
) -> None:
    """What the file holds does; what is no captions is nothing to read."""
    site, web = captioned
    cues = CAPTIONS.removeprefix("WEBVTT").lstrip()
    data = {"WebVTT": CAPTIONS, "SubRip": f"1\n{cues}", "a page": "<html>none</html>"}[form]
    site.given = 200, data.encode()
    with Served(tmp_path, web) as server, Client(server.url, server.key) as client:
        assert client.summarize_video(web.url("/shows//given?id=5")).text == "summary 1"
        said = "Somebody speaks." if form == "a page" else "The river carries stones. They"
        assert server.model.material(0).startswith(said)


@pytest.mark.parametrize("redirected", [False, True], ids=["named", "redirected"])
def test_captions_that_lead_within(
    captioned: tuple[Captioned, Server], tmp_path: Path, redirected: bool
) -> None:
    """U38: nobody within is reached; the video is told of without them."""
    _, web = captioned
    with Server(answering(200, CAPTIONS.encode())) as decoy:
        place = decoy.url("/captions.vtt")
        place = web.url(f"/leads/{place.replace('/', '%2F')}") if redirected else place
        with Served(tmp_path, web) as server, Client(server.url, server.key) as client:
            assert client.summarize_video(web.url(f"/shows/{place}")).text == "summary 1"
            assert server.model.material(0) == "Somebody speaks."
        assert decoy.connections == 0
