"""Captions that a list of HLS names, which come in parts: they are read, and nothing is heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux import Client
from support.summaries import Served
from support.video_site import Site

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import Exchange

_MASTER = (
    '#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="English",LANGUAGE="en",DEFAULT=YES,'
    'URI="/captions.m3u8"\n'
    '#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=320x240,SUBTITLES="s"\n/hls/list.m3u8\n'
)
_HEAD = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n"
_PART = _HEAD + "00:0{n}.000 --> 00:0{n}.900\nSentence {n} is said.\n\n"


class Listed(Site):
    """``/master.m3u8`` names captions in `parts`; without an end they are live."""

    def __init__(self, folder: Path, parts: list[str], end: str = "#EXT-X-ENDLIST\n") -> None:
        super().__init__(folder)
        lines = "".join(f"#EXTINF:1,\n/part{n}.vtt\n" for n in range(len(parts)))
        self._texts = {f"/part{n}.vtt": one for n, one in enumerate(parts)}
        self._texts["/captions.m3u8"] = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n{lines}{end}"
        self._texts["/master.m3u8"] = _MASTER

    async def answer(self, exchange: Exchange) -> None:
        text = self._texts.get(exchange.target)
        if text is None:
            await super().answer(exchange)
            return
        is_list = exchange.target.endswith("m3u8")
        kind = "application/vnd.apple.mpegurl" if is_list else "text/vtt"
        await exchange.answer(200, text.encode(), f"Content-Type: {kind}")


@pytest.mark.parametrize("count", [1, 2, 4])
def test_they_are_read(site_folder: Path, tmp_path: Path, count: int) -> None:
    parts = [_PART.format(n=number) for number in range(count)]
    with (
        Listed(site_folder, parts).server() as web,
        Served(tmp_path, web) as server,
        Client(server.url, server.key) as client,
    ):
        assert client.summarize_video(web.url("/master.m3u8")).text == "summary 1"
        assert [one.operation for one in server.model.asked] == ["chat"]
        said = " ".join(f"Sentence {number} is said." for number in range(count))
        assert server.model.material(0) == said
        assert not any(one.target.endswith(".ts") for one in web.requests)


@pytest.mark.parametrize(
    ("parts", "end"),
    [
        (["<html>nothing</html>", "<html>here</html>"], "#EXT-X-ENDLIST\n"),
        ([_HEAD + "00:01.000 --> nothing\nx\n\n", _PART.format(n=2)], "#EXT-X-ENDLIST\n"),
        ([_PART.format(n=1)], ""),
    ],
    ids=["no captions", "broken", "live"],
)
def test_what_cannot_be_read_is_listened_to(
    site_folder: Path, tmp_path: Path, parts: list[str], end: str
) -> None:
    with (
        Listed(site_folder, parts, end).server() as web,
        Served(tmp_path, web) as server,
        Client(server.url, server.key) as client,
    ):
        assert client.summarize_video(web.url("/master.m3u8")).text == "summary 1"
        assert server.model.asked[0].operation == "transcribe"
        assert server.model.material(0) == "Somebody speaks."
