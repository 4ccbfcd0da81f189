"""What was chosen of a page, looked at before any of it comes: by which way, and whether it ends.

yt-dlp says of few pages that what they show is live, and takes what a list names at that moment.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.downloads.ytdlp import site_failed
from polymux.service.errors import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

_HLS = frozenset(("m3u8", "m3u8_native"))
_DASH = frozenset(("http_dash_segments", "http_dash_segments_generator"))
#: What yt-dlp fetches itself by HTTP; for others it starts programs, or follows what has no end.
#: The last two are lists of HLS with requests beside them.
_WAYS = _HLS | _DASH | {"http", "https", "data", "ism", "bunnycdn", "soopvod"}
#: Of a list of a day whose addresses are signed; yt-dlp alone would read it however long it is.
_LONGEST_LIST_BYTES = 64 << 20
#: Of a manifest, that its first element ends in.
_LOOKED_AT_BYTES = 64 << 10
_COMMENTS = re.compile(rb"(?s)<!--.*?(?:-->|\Z)")
_FIRST_TAG = re.compile(rb"""<(?:[\w.-]+:)?MPD\b(?:[^<>"']|"[^"]*"|'[^']*')*""")
_DYNAMIC = re.compile(rb"""\stype\s*=\s*["']dynamic["']""")
_VIDEO_ON_DEMAND = re.compile(r"(?m)^#EXT-X-PLAYLIST-TYPE:\s*VOD\b")


def finished(library: Any, part: dict[str, Any]) -> dict[str, Any]:
    """A format or captions that end, as they are to be fetched: with the list that was looked at.

    Args:
        library: A `yt_dlp.YoutubeDL`.
        part: What it has chosen, with all that it asks by.

    Raises:
        APIStatusError: It comes by a way that is not taken (415).
        InternalServerError: Its list is longer than any should be.
        UnprocessableEntityError: It is live, or its list names lists.
        YoutubeDLError: The site does not give the list.
    """
    from yt_dlp.utils import determine_protocol

    protocol = str(determine_protocol(part))
    if protocol not in _WAYS:
        raise refusal(
            errors.APIStatusError,
            f"what this page shows comes by {protocol[:20]!r}: HTTP, HLS and DASH are taken",
            code="unsupported_media",
            status=415,
            param="url",
        )
    if protocol in _HLS:
        return _finished_list(library, part)
    if protocol in _DASH and part.get("manifest_url"):
        _check_manifest(library, part)
    return part


def live() -> errors.UnprocessableEntityError:
    """What has no end is not begun with."""
    return refusal(
        errors.UnprocessableEntityError,
        "this is a live stream, which has no end: ask again when it is over",
        code="undecodable",
        param="url",
    )


def _finished_list(library: Any, part: dict[str, Any]) -> dict[str, Any]:
    """A list that says that it is whole: by its end, or by its kind (RFC 8216, 4.3.3)."""
    text, url = part.get("hls_media_playlist_data"), part["url"]
    if not text:
        with library.urlopen(_request(part, url)) as answer:
            data, url = answer.read(_LONGEST_LIST_BYTES + 1), answer.url
        if len(data) > _LONGEST_LIST_BYTES:
            raise site_failed("the page's list of parts is longer than any should be")
        text = data.decode("utf-8", "ignore")
    text = text.removeprefix("\ufeff")  # yt-dlp would take that line for a part.
    if "#EXT-X-STREAM-INF" in text:
        raise refusal(
            errors.UnprocessableEntityError,
            "a list of this page names a list of lists, itself or another, in the place of one of "
            "parts",
            code="undecodable",
            param="url",
        )
    # One without parts is none of media, and what comes of it is told as before.
    if "#EXTINF" in text and "#EXT-X-ENDLIST" not in text and not _VIDEO_ON_DEMAND.search(text):
        raise live()
    # What is fetched is what was looked at, and it is asked for once.
    return part | {"url": url, "hls_media_playlist_data": text}


def _check_manifest(library: Any, part: Mapping[str, Any]) -> None:
    """Refuses one that goes on; one that cannot be read again says nothing of what it named."""
    from yt_dlp.utils import YoutubeDLError

    try:
        with library.urlopen(_request(part, part["manifest_url"])) as answer:
            data = answer.read(_LOOKED_AT_BYTES)
    except YoutubeDLError:
        return
    if is_dynamic(data):
        raise live()


def is_dynamic(manifest: bytes) -> bool:
    """Whether a manifest of DASH is of what goes on, by its first tag.

    That is its ``type`` (ISO/IEC 23009-1).

    No parser of XML is asked: what strangers declare in front of it would be done.

    Example:
        >>> from polymux.downloads.formats import is_dynamic
        >>> is_dynamic(b"<?xml version='1.0'?><!-- <MPD> --><MPD id='a>b' type = 'dynamic'>")
        True
        >>> is_dynamic(b'<MPD type="static"><Period type="dynamic">')
        False
    """
    if manifest.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        manifest = manifest.decode("utf-16", "replace").encode()
    found = _FIRST_TAG.search(_COMMENTS.sub(b"", manifest))
    return found is not None and _DYNAMIC.search(found[0]) is not None


def _request(part: Mapping[str, Any], url: str) -> Any:
    """As yt-dlp's own readers of lists ask for them."""
    from yt_dlp.networking import Request

    return Request(str(url), headers=dict(part.get("http_headers") or {}))
