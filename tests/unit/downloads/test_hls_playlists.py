from __future__ import annotations

import io
from typing import Any

import pytest
from polymux import errors
from polymux.downloads.ytdlp import finished

pytest.importorskip("yt_dlp")

URL = "http://a.example/list.m3u8"
PARTS = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\npart.ts\n#EXT-X-ENDLIST\n"


class Library:
    def __init__(self, text: str) -> None:
        self._text = text

    def urlopen(self, request: Any) -> Any:
        assert request.url == URL
        return Answer(self._text.encode())


class Answer(io.BytesIO):
    url = URL


@pytest.mark.parametrize("known", [False, True])
def test_a_mark_before_the_first_line(known: bool) -> None:
    """Otherwise the first line would be fetched as a part."""
    part: dict[str, Any] = {"url": URL, "protocol": "m3u8_native"}
    text = f"\ufeff{PARTS}"
    if known:
        part["hls_media_playlist_data"] = text
    assert finished(Library(text), part)["hls_media_playlist_data"] == PARTS


def test_a_list_of_lists() -> None:
    text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n#EXTINF:3,\nlist.m3u8\n"
    with pytest.raises(errors.UnprocessableEntityError):
        finished(Library(text), {"url": URL, "protocol": "m3u8_native"})
