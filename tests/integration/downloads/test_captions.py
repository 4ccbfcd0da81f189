"""Captions of a page or list are used if they are readable, otherwise the speech is transcribed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux import Client
from support.fetches import answering
from support.http_server import Server
from support.summaries import Served
from support.video_site import CAPTIONS, Site

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange
    from support.summaries import ToldSite

READ = "The river carries stones. They become round."
HEARD = "Somebody speaks."
#: This site's captions as SubRip.
SUBRIP = f"1\n{CAPTIONS.removeprefix('WEBVTT').lstrip()}"


@pytest.mark.parametrize(
    ("status", "data", "path", "read"),
    [
        (404, b"<html>nothing here</html>", "/captions.vtt", HEARD),
        # If the URL does not give the format, the content does.
        (200, SUBRIP.encode(), "/given?id=5", READ),
    ],
    ids=["not there", "SubRip"],
)
def test_captions_of_pages(
    captioned_site: tuple[ToldSite, Server],
    tmp_path: Path,
    status: int,
    data: bytes,
    path: str,
    read: str,
) -> None:
    """`tests/unit/summaries/test_transcripts.py` tests other invalid captions."""
    site, web = captioned_site
    site.captions = status, data
    with Served(tmp_path, web) as server, Client(server.url, server.key) as client:
        assert client.summarize_video(web.url(f"/shows/{path}")).text == "summary 1"
        operations = ["transcribe", "chat"] if read == HEARD else ["chat"]
        assert [one.operation for one in server.model.asked] == operations
        assert server.model.material(0).startswith(read)
    assert [one.target for one in web.requests].count(path) == 1


@pytest.mark.parametrize("redirected", [False, True], ids=["named", "redirected"])
def test_captions_that_lead_within(
    captioned_site: tuple[ToldSite, Server], tmp_path: Path, redirected: bool
) -> None:
    """No private host is reached, and the summary is made without captions (U38)."""
    _, web = captioned_site
    with Server(answering(200, CAPTIONS.encode())) as decoy:
        place = decoy.url("/captions.vtt")
        place = web.url(f"/leads/{place.replace('/', '%2F')}") if redirected else place
        with Served(tmp_path, web) as server, Client(server.url, server.key) as client:
            assert client.summarize_video(web.url(f"/shows/{place}")).text == "summary 1"
            assert server.model.material(0) == HEARD
        assert decoy.connections == 0


MASTER = (
    '#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="English",LANGUAGE="en",DEFAULT=YES,'
    'URI="/captions.m3u8"\n'
    '#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=320x240,SUBTITLES="s"\n/hls/list.m3u8\n'
)
HEAD = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n"
PART = HEAD + "00:0{n}.000 --> 00:0{n}.900\nSentence {n} is said.\n\n"
PARTS = [PART.format(n=number) for number in range(3)]
END = "#EXT-X-ENDLIST\n"


class Listed(Site):
    """``/master.m3u8`` lists captions in segments. A list without an end is live."""

    def __init__(self, folder: Path, parts: list[str], end: str) -> None:
        super().__init__(folder)
        lines = "".join(f"#EXTINF:1,\n/part{n}.vtt\n" for n in range(len(parts)))
        self._texts = {f"/part{n}.vtt": one for n, one in enumerate(parts)}
        self._texts["/captions.m3u8"] = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n{lines}{end}"
        self._texts["/master.m3u8"] = MASTER

    async def answer(self, exchange: Exchange) -> None:
        text = self._texts.get(exchange.target)
        if text is None:
            await super().answer(exchange)
            return
        is_list = exchange.target.endswith("m3u8")
        kind = "application/vnd.apple.mpegurl" if is_list else "text/vtt"
        await exchange.answer(200, text.encode(), f"Content-Type: {kind}")


@pytest.mark.parametrize(
    ("parts", "end", "read"),
    [
        (PARTS, END, "Sentence 0 is said. Sentence 1 is said. Sentence 2 is said."),
        (PARTS[:1], "", HEARD),
    ],
    ids=["three", "live"],
)
def test_captions_in_parts(
    site_folder: Path, tmp_path: Path, parts: list[str], end: str, read: str
) -> None:
    with (
        Listed(site_folder, parts, end).server() as web,
        Served(tmp_path, web) as server,
        Client(server.url, server.key) as client,
    ):
        assert client.summarize_video(web.url("/master.m3u8")).text == "summary 1"
        assert server.model.asked[0].operation == ("transcribe" if read == HEARD else "chat")
        assert server.model.material(0) == read
        if read != HEARD:
            assert not any(one.target.endswith(".ts") for one in web.requests)
