"""Texts that a careless reader would follow: playlists, manifests, images, terminal art.

Each names a file with the canary and a local listener. Neither may be opened, whatever the ending
of the file's name is. polymux accepts none of these formats, so a few examples of each are enough.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from support import hostile_mkv
from support.hostile import OK, UNSUPPORTED, Case, Site, group
from support.hostile_wav import Wave, chunk, list_chunk

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.hostile import Content


def _hls(*lines: str) -> bytes:
    return "\n".join(["#EXTM3U", "#EXT-X-TARGETDURATION:10", *lines, "#EXT-X-ENDLIST", ""]).encode()


def _segment(address: str) -> bytes:
    return _hls(f"#EXTINF:10,\n{address}")


def _http(site: Site) -> bytes:
    return _segment(site.decoy_url)


def _concat(address: str) -> bytes:
    return f"ffconcat version 1.0\nfile '{address}'\n".encode()


def _dash(address: str) -> bytes:
    """A DASH manifest with one audio representation."""
    return f"""<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT10S"
  profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><AdaptationSet mimeType="audio/mp4">
<Representation id="1" bandwidth="128000"><BaseURL>{address}</BaseURL>
<SegmentBase indexRange="0-1"/></Representation></AdaptationSet></Period></MPD>
""".encode()


def _avi_with_subtitles(inside: bytes) -> bytes:
    """An AVI with PCM sound and a GAB2 subtitle stream, whose first packet holds `inside`."""

    def stream(kind: bytes, rate: int, form: bytes, sample_bytes: int = 0) -> bytes:
        numbers = 0, 0, 0, 0, 0, 1, rate, 0, rate, 0, 0, sample_bytes, 0, 0, 0, 0
        header = struct.pack("<4sIIHHIIIIIIIIhhhh", kind, *numbers)
        return list_chunk(b"strl", chunk(b"strh", header), chunk(b"strf", form))

    headers = list_chunk(
        b"hdrl",
        chunk(b"avih", struct.pack("<14I", 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0)),
        stream(b"auds", 8000, struct.pack("<HHIIHH", 1, 1, 8000, 16_000, 2, 16), 2),
        stream(b"txts", 1, b""),
    )
    name = "s.m3u8\0".encode("utf-16-le")
    packet = b"GAB2\0" + struct.pack("<HI", 2, len(name)) + name
    packet += struct.pack("<HI", 4, len(inside)) + inside
    movie = list_chunk(b"movi", chunk(b"01tx", packet), chunk(b"00wb", bytes(16_000)))
    return chunk(b"RIFF", b"AVI " + headers + movie)


def _written(text: str) -> Callable[[Site], bytes]:
    """A text in which CANARY is the canary's path, and DECOY the listener's address."""

    def build(site: Site) -> bytes:
        known = text.replace("CANARY", str(site.canary)).replace("DECOY", site.decoy_url)
        return known.replace("PORT", str(site.decoy_port)).encode()

    return build


_KEY = '#EXT-X-KEY:METHOD=AES-128,URI="file://CANARY",IV=0x00000000000000000000000000000001'
_PLAYLISTS: dict[str, Content] = {
    "hls-file": lambda site: _segment(f"file://{site.canary}"),
    "hls-relative": lambda site: _segment(site.canary.name),
    "hls-http": _http,
    "hls-concat": lambda site: _segment(f"concat:{site.canary}|{site.decoy_url}"),
    "hls-subfile": lambda site: _segment(f"subfile,,start,0,end,9,,:{site.canary}"),
    "hls-crypto": lambda site: _segment(f"crypto+file://{site.canary}"),
    "hls-key": _written(_hls(_KEY, "#EXTINF:10,\nDECOY").decode()),
    "hls-itself": lambda site: _segment(str(site.folder / "song.mp3")),
}
_SCRIPTS: dict[str, Content] = {
    "concat-absolute": lambda site: _concat(str(site.canary)),
    "concat-relative": lambda site: _concat(site.canary.name),
    "concat-http": lambda site: _concat(site.decoy_url),
}
_MANIFESTS: dict[str, Content] = {
    "dash-http": lambda site: _dash(site.decoy_url),
    "sdp": _written(
        "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
        "m=audio PORT RTP/AVP 0\r\n"
    ),
    "asx": _written('<asx version="3.0"><entry><ref href="DECOY"/></entry></asx>'),
    "pls": _written("[playlist]\nNumberOfEntries=1\nFile1=DECOY\n"),
    "xspf": _written(
        '<?xml version="1.0"?><playlist version="1"><trackList><track><location>DECOY</location>'
        "</track></trackList></playlist>"
    ),
    "m3u-with-mark": lambda site: b"\xef\xbb\xbf" + _http(site),
    "m3u-after-padding": lambda site: bytes(1024 * 1024) + _http(site),
    "m3u-after-newlines": lambda site: b"\n" * 1024 * 1024 + _http(site),
    "rtsp-redirect": _written("RTSPtext\nrtsp://127.0.0.1:PORT/a\n"),
}
#: Playlists inside real containers: the sound is converted, the playlist is ignored.
_CARRIED: dict[str, Content] = {
    "hls-in-avi": lambda site: _avi_with_subtitles(_http(site)),
    "concat-in-avi": lambda site: _avi_with_subtitles(_concat(str(site.canary))),
    "hls-in-matroska": lambda site: hostile_mkv.file(
        hostile_mkv.attachment(
            "list.m3u8", "application/x-mpegurl", hostile_mkv.element(0x465C, _http(site))
        )
    ),
    "hls-in-wav": lambda site: Wave(extra=chunk(b"list", _http(site))).to_bytes(),
}
_VECTORS = _written(
    '<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file://CANARY">]>\n'
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xi="http://www.w3.org/2001/XInclude">'
    '<text>&x;</text>\n<image href="DECOY"/><xi:include href="file://CANARY" parse="text"/></svg>\n'
)
_PICTURES: dict[str, Content] = {
    "svg": _VECTORS,
    "terminal-text": b"\x1b[2J\x1b[31mred\x1b[0m\r\n" * 100,
    "binary-text": b"XBIN\x1a" + struct.pack("<HHBB", 80, 25, 16, 0) + b"A\x07" * 2000,
    "filter-graph": b"sine=frequency=440:duration=5",
    "subtitles": b"1\n00:00:00,000 --> 00:00:01,000\nline\n\n",
}
#: Texts with endings that could select another reader.
_NAMED = {
    "list.m3u8": _http,
    "list.m3u": _written("CANARY\nDECOY\n"),
    "manifest.mpd": lambda site: _dash(f"file://{site.canary}"),
    "cover.svg": _VECTORS,
    "art.ans": _PICTURES["terminal-text"],
    "graph.lavfi": _PICTURES["filter-graph"],
}


def _numbered_pictures(site: Site) -> bytes:
    bitmap = b"P5 1 1 255\n\0"
    for number in range(3):
        site.file(f"frame-{number}.pgm", bitmap)
    return bitmap


def cases() -> list[Case]:
    """The cases V17 to V20."""
    named = [
        case
        for name, content in _NAMED.items()
        for case in group("V19", UNSUPPORTED, {name: content}, file_name=name)
    ]
    numbered: dict[str, Content] = {"image-pattern": _numbered_pictures}
    return [
        *group("V17", UNSUPPORTED, _PLAYLISTS, file_name="song.mp3"),
        *group("V18", UNSUPPORTED, _SCRIPTS, file_name="list.mp3"),
        *group("V19", UNSUPPORTED, _MANIFESTS, file_name="song.mp3"),
        *group("V19", OK, _CARRIED, duration_s=1.0),
        *named,
        *group("V20", UNSUPPORTED, _PICTURES | numbered, file_name="song.mp3"),
    ]
