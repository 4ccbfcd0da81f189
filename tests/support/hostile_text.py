"""Texts that a careless reader would follow: playlists, manifests, pictures, terminal art.

Each points at a file that holds the canary and at a listener on this machine. None may be opened,
whatever the file's name says.
"""

from __future__ import annotations

import struct

from support.hostile import OK, UNSUPPORTED, Case, Site, case
from support.hostile_mkv import element, file, information, sound, text, track, tracks
from support.hostile_wav import Wave, chunk, list_chunk

ONLY = frozenset({UNSUPPORTED})


def hls(*lines: str) -> bytes:
    """An HTTP Live Streaming playlist."""
    return "\n".join(["#EXTM3U", "#EXT-X-TARGETDURATION:10", *lines, "#EXT-X-ENDLIST", ""]).encode()


def segment(address: str) -> str:
    """One entry of a playlist."""
    return f"#EXTINF:10,\n{address}"


def concat(*addresses: str) -> bytes:
    """An ffconcat script."""
    return "\n".join(["ffconcat version 1.0", *(f"file '{a}'" for a in addresses), ""]).encode()


def dash(address: str) -> bytes:
    """A DASH manifest with one audio representation."""
    return f"""<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT10S"
  profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><AdaptationSet mimeType="audio/mp4">
<Representation id="1" bandwidth="128000"><BaseURL>{address}</BaseURL>
<SegmentBase indexRange="0-1"/></Representation></AdaptationSet></Period></MPD>
""".encode()


def avi_with_subtitles(inside: bytes) -> bytes:
    """An AVI with PCM sound and a GAB2 subtitle stream, whose first packet holds `inside`."""
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16_000, 2, 16)
    sound_header = struct.pack(
        "<4sIIHHIIIIIIIIhhhh", b"auds", 0, 0, 0, 0, 0, 1, 8000, 0, 8000, 0, 0, 2, 0, 0, 0, 0
    )
    text_header = struct.pack(
        "<4sIIHHIIIIIIIIhhhh", b"txts", 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0
    )
    main = struct.pack("<14I", 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0)
    headers = list_chunk(
        b"hdrl",
        chunk(b"avih", main),
        list_chunk(b"strl", chunk(b"strh", sound_header), chunk(b"strf", form)),
        list_chunk(b"strl", chunk(b"strh", text_header), chunk(b"strf", b"")),
    )
    name = "s.m3u8\0".encode("utf-16-le")
    packet = (
        b"GAB2\0"
        + struct.pack("<HI", 2, len(name))
        + name
        + struct.pack("<HI", 4, len(inside))
        + inside
    )
    movie = list_chunk(b"movi", chunk(b"01tx", packet), chunk(b"00wb", bytes(16_000)))
    return chunk(b"RIFF", b"AVI " + headers + movie)


def _hls_cases() -> list[Case]:
    def one(address: str) -> bytes:
        return hls(segment(address))

    key = '#EXT-X-KEY:METHOD=AES-128,URI="{0}",IV=0x00000000000000000000000000000001'

    def build(name: str, make: object) -> Case:
        return case("V17", name, make, ONLY, file_name="song.mp3")  # type: ignore[arg-type]

    return [
        build("hls-file", lambda site: one(f"file://{site.canary}")),
        build("hls-path", lambda site: one(str(site.canary))),
        build("hls-relative", lambda site: one(site.canary.name)),
        build("hls-http", lambda site: one(site.decoy_url)),
        build("hls-tcp", lambda site: one(f"tcp://127.0.0.1:{site.decoy_port}")),
        build("hls-concat", lambda site: one(f"concat:{site.canary}|{site.decoy_url}")),
        build("hls-subfile", lambda site: one(f"subfile,,start,0,end,9,,:{site.canary}")),
        build("hls-crypto", lambda site: one(f"crypto+file://{site.canary}")),
        build("hls-data", lambda site: one("data:audio/wav;base64,UklGRg==")),
        build(
            "hls-key",
            lambda site: hls(key.format(f"file://{site.canary}"), segment(site.decoy_url)),
        ),
        build(
            "hls-map",
            lambda site: hls(f'#EXT-X-MAP:URI="file://{site.canary}"', segment(site.decoy_url)),
        ),
        build("hls-itself", lambda site: hls(segment(str(site.folder / "song.mp3")))),
        build("hls-master", lambda site: hls("#EXT-X-STREAM-INF:BANDWIDTH=1", site.decoy_url)),
        build("hls-cr-lf", lambda site: one(site.decoy_url).replace(b"\n", b"\r\n")),
    ]


def _concat_cases() -> list[Case]:
    def build(name: str, make: object) -> Case:
        return case("V18", name, make, ONLY, file_name="list.mp3")  # type: ignore[arg-type]

    return [
        build("concat-absolute", lambda site: concat(str(site.canary))),
        build("concat-relative", lambda site: concat(site.canary.name)),
        build("concat-http", lambda site: concat(site.decoy_url)),
        build("concat-file-url", lambda site: concat(f"file:{site.canary}")),
        build("concat-without-mark", lambda site: f"file '{site.canary}'\n".encode()),
    ]


def _manifest_cases() -> list[Case]:
    def build(name: str, make: object, file_name: str = "song.mp3") -> Case:
        return case("V19", name, make, ONLY, file_name=file_name)  # type: ignore[arg-type]

    def padded(site: Site) -> bytes:
        return bytes(1024 * 1024) + hls(segment(site.decoy_url))

    return [
        build("dash-http", lambda site: dash(site.decoy_url)),
        build("dash-file", lambda site: dash(f"file://{site.canary}"), "manifest.mpd"),
        build("sdp", _session_description),
        build(
            "asx",
            lambda site: (
                f'<asx version="3.0"><entry><ref href="{site.decoy_url}"/></entry></asx>'.encode()
            ),
        ),
        build(
            "pls", lambda site: f"[playlist]\nNumberOfEntries=1\nFile1={site.decoy_url}\n".encode()
        ),
        build("xspf", _shareable_playlist),
        build(
            "m3u-with-mark",
            lambda site: b"\xef\xbb\xbf" + hls(segment(site.decoy_url)),
            "song.m3u8",
        ),
        build("m3u-plain", lambda site: f"{site.canary}\n{site.decoy_url}\n".encode(), "song.m3u"),
        build("m3u-after-padding", padded),
        build(
            "m3u-after-newlines", lambda site: b"\n" * 1024 * 1024 + hls(segment(site.decoy_url))
        ),
        build(
            "rtsp-redirect",
            lambda site: f"RTSPtext\nrtsp://127.0.0.1:{site.decoy_port}/a\n".encode(),
            "a.mov",
        ),
        build(
            "smil",
            lambda site: f'<smil><body><audio src="{site.decoy_url}"/></body></smil>'.encode(),
        ),
    ]


def _session_description(site: Site) -> bytes:
    lines = ["v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=x", "c=IN IP4 127.0.0.1", "t=0 0"]
    return "\r\n".join([*lines, f"m=audio {site.decoy_port} RTP/AVP 0", ""]).encode()


def _shareable_playlist(site: Site) -> bytes:
    track_list = f"<trackList><track><location>{site.decoy_url}</location></track></trackList>"
    return f'<?xml version="1.0"?><playlist version="1">{track_list}</playlist>'.encode()


def _carried_cases() -> list[Case]:
    """Playlists inside real containers: the sound is converted, the playlist never read."""

    def in_matroska(site: Site) -> bytes:
        attached = element(
            0x61A7,
            text(0x466E, "list.m3u8"),
            text(0x4660, "application/x-mpegurl"),
            element(0x465C, hls(segment(site.decoy_url))),
        )
        return file(information(), tracks(track()), element(0x1941A469, attached), sound())

    def in_wave(site: Site) -> bytes:
        return Wave(extra=chunk(b"list", hls(segment(site.decoy_url)))).to_bytes()

    return [
        case(
            "V19",
            "hls-in-avi",
            lambda site: avi_with_subtitles(hls(segment(site.decoy_url))),
            OK,
            duration_s=1.0,
        ),
        case(
            "V19",
            "concat-in-avi",
            lambda site: avi_with_subtitles(concat(str(site.canary))),
            OK,
            duration_s=1.0,
        ),
        case("V19", "hls-in-matroska", in_matroska, OK, duration_s=1.0),
        case("V19", "hls-in-wav", in_wave, OK, duration_s=1.0),
    ]


def _picture_cases() -> list[Case]:
    def build(name: str, make: object, file_name: str = "song.mp3") -> Case:
        return case("V20", name, make, ONLY, file_name=file_name)  # type: ignore[arg-type]

    return [
        build("svg", _vector_picture, "cover.svg"),
        build("svg-named-mp3", _vector_picture),
        build("terminal-text", lambda: b"\x1b[2J\x1b[31mred\x1b[0m\r\n" * 100, "art.ans"),
        build("terminal-text-named-mp3", lambda: b"\x1b[1;33mtext\x1b[0m\r\n" * 100),
        build("binary-text", _binary_text, "art.xb"),
        build("binary-text-named-mp3", _binary_text),
        build("filter-graph", lambda: b"sine=frequency=440:duration=5", "graph.lavfi"),
        build("image-pattern", _numbered_pictures),
        build("subtitles", lambda: b"1\n00:00:00,000 --> 00:00:01,000\nline\n\n", "lines.srt"),
    ]


def _vector_picture(site: Site) -> bytes:
    return f"""<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file://{site.canary}">]>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xi="http://www.w3.org/2001/XInclude"><text>&x;</text>
<image href="{site.decoy_url}"/><xi:include href="file://{site.canary}" parse="text"/></svg>
""".encode()


def _binary_text() -> bytes:
    return b"XBIN\x1a" + struct.pack("<HHBB", 80, 25, 16, 0) + b"A\x07" * 2000


def _numbered_pictures(site: Site) -> bytes:
    bitmap = b"P5 1 1 255\n\0"
    for number in range(3):
        site.file(f"frame-{number}.pgm", bitmap)
    return bitmap


def cases() -> list[Case]:
    """V17 to V20."""
    return [
        *_hls_cases(),
        *_concat_cases(),
        *_manifest_cases(),
        *_carried_cases(),
        *_picture_cases(),
    ]
