"""Live streams that a page does not declare as live: no part of one is returned as a video."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from support.fetches import showing
from support.http_server import Server
from support.media_url_server import MediaUrlServer

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Script

PARTS = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n{more}#EXTINF:3,\n/part.ts\n"
MASTER = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=192x144\n/live.m3u8\n"
APART = (
    '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="/live.m3u8"\n'
    '#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=192x144,CODECS="avc1.42e00a,mp4a.40.2",'
    'AUDIO="a"\n/whole.m3u8\n'
)
MANIFEST = (
    '<?xml version="1.0"?><!-- <MPD> --><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"\n type="{kind}" '
    'availabilityStartTime="2026-01-01T00:00:00Z" mediaPresentationDuration="PT3S"><Period>'
    '<AdaptationSet mimeType="audio/mp4"><Representation id="1" bandwidth="1"><SegmentList '
    'duration="3"><SegmentURL media="/part.m4s"/></SegmentList></Representation></AdaptationSet>'
    "</Period></MPD>"
)
SOURCE = '<html><video><source src="{}"></video></html>'
#: Case -> (page, operation).
LIVE = {
    "master": (SOURCE.format("/master.m3u8"), "download_video"),
    "sound apart": (SOURCE.format("/apart.m3u8"), "download_video"),
    "event": (SOURCE.format("/event.m3u8"), "summarize_video"),
    "manifest": (SOURCE.format("/dynamic.mpd"), "download_video"),
}


def site(page: str, part: bytes = b"") -> Script:
    lists = {
        "/live": PARTS.format(more=""),
        "/event": PARTS.format(more="#EXT-X-PLAYLIST-TYPE:EVENT\n"),
        "/whole": PARTS.format(more="#EXT-X-PLAYLIST-TYPE:VOD\n") + "#EXT-X-ENDLIST\n",
        "/master": MASTER,
        "/itself": MASTER.replace("live", "itself"),
        "/apart": APART,
    }
    return showing(
        {
            "/page": ("text/html", page),
            "/part.ts": ("video/mp2t", part),
            "/part.m4s": ("video/mp2t", part),
        }
        | {f"{name}.m3u8": ("application/vnd.apple.mpegurl", one) for name, one in lists.items()}
        | {
            f"/{kind}.mpd": ("application/dash+xml", MANIFEST.format(kind=kind))
            for kind in ("dynamic", "static")
        }
    )


@pytest.mark.parametrize("name", LIVE)
def test_no_piece_of_it_is_fetched(tmp_path: Path, name: str) -> None:
    page, operation = LIVE[name]
    with Server(site(page)) as web, MediaUrlServer(tmp_path, web) as server:
        status, code, words = server.failure(operation, web.url("/page"))
        assert (status, code) == (422, "undecodable"), words
        assert "live" in words
        assert [one.target for one in web.requests if one.target.startswith("/part")] == []


def test_a_list_of_lists_in_the_place_of_parts(tmp_path: Path) -> None:
    page = SOURCE.format("/itself.m3u8")
    with Server(site(page)) as web, MediaUrlServer(tmp_path, web) as server:
        status, code, words = server.failure("convert_to_mp3", web.url("/page"))
        assert (status, code) == (422, "undecodable"), words


def test_what_ends_is_fetched(site_folder: Path, tmp_path: Path) -> None:
    """A recording is downloaded without additional list requests. `test_media_pages` tests HLS."""
    path = "/static.mpd"
    part = (site_folder / "hls" / "list0.ts").read_bytes()
    with Server(site(SOURCE.format(path), part)) as web, MediaUrlServer(tmp_path, web) as server:
        assert polymux.probe(server.made("convert_to_mp3", web.url("/page"))).duration_s > 0.5
        assert [one.target for one in web.requests].count(path) <= 2
