"""yt-dlp setup and page extraction in the downloader's process."""

from __future__ import annotations

import codecs
import errno
import os
import re
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import missing_package
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import EngineSink, Token

_REDIRECTS = 5
#: Texts in the messages of yt-dlp's generic extractor.
_CHALLENGE, _UNABLE = "anti-bot challenge", "impersonation dependency"
#: The only program that yt-dlp may start: it runs the scripts of some sites.
_RUNS_SCRIPTS = "deno"
_AS_BROWSER = {"generic": {"impersonate": [""]}}


def loaded_library(options: Mapping[str, Any]) -> Any:
    """Import `yt_dlp` without plugins and with restrictions; changes global state of the process.

    Raises:
        NoBackendError: yt-dlp is not installed.
    """
    if options.get("certificates"):
        # OpenSSL's default certificates, which yt-dlp uses with `no-certifi`. curl-cffi reads these
        # variables when it is imported.
        os.environ["SSL_CERT_FILE"] = str(options["certificates"])
        os.environ["SSL_CERT_DIR"] = str(Path(options["folder"]) / "none")
    try:
        import yt_dlp
        from yt_dlp import globals as yt_dlp_globals
    except ImportError:
        raise missing_package("download", "yt-dlp", "download") from None
    yt_dlp_globals.plugin_dirs.value = []
    follow_few_redirects()
    start_no_programs()
    return yt_dlp


def follow_few_redirects() -> None:
    """Limit redirects to the limit of file downloads; changes global state of the process.

    yt-dlp has no option for it, so this sets the limits of its libraries. For curl-cffi, which
    imitates browsers, yt-dlp itself uses five.
    """
    urllib.request.HTTPRedirectHandler.max_redirections = _REDIRECTS
    with suppress(ImportError):
        from requests import sessions

        sessions.DEFAULT_REDIRECT_LIMIT = _REDIRECTS  # type: ignore[attr-defined]


def start_no_programs() -> None:
    """Prevent yt-dlp from starting programs except deno; changes global state of the process.

    Otherwise text from a page could become an argument of programs such as rtmpdump. yt-dlp
    decrypts playlists itself only without ffmpeg: if it found ffmpeg but not pycryptodomex, it
    would use ffmpeg and fail.
    """
    from yt_dlp.downloader.external import FFmpegFD
    from yt_dlp.utils import Popen

    begun = Popen.__init__

    def begin(self: Any, args: Any, *more: Any, shell: bool = False, **options: Any) -> None:
        program = args if isinstance(args, str) else str(next(iter(args), ""))
        if shell or Path(program).name != _RUNS_SCRIPTS:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
        begun(self, args, *more, **options)

    Popen.__init__ = begin
    FFmpegFD.available = classmethod(lambda *_: False)


def extracted(library: Any, url: str, sink: EngineSink, token: Token) -> Any:
    """Extract a page's metadata; retry as a browser if the site requires one.

    After that, `library` (a `yt_dlp.YoutubeDL`) requests pages like a browser. The first try does
    not, because more sites reject clients that claim to be browsers (yt-dlp, issue 11335).

    Raises:
        YoutubeDLError: yt-dlp failed.
        InternalServerError: The site requires a browser, but curl-cffi is not installed.
    """
    from yt_dlp.utils import YoutubeDLError

    try:
        return library.extract_info(url, download=False)
    except YoutubeDLError as error:
        reason = str(error)
        if _CHALLENGE not in reason:
            raise
    if _UNABLE in reason:
        raise site_failed(
            "the site accepts only browsers, and curl-cffi is not installed on this server. The "
            "server's administrator can install it with 'pip install polymux[download]'"
        )
    token.check()
    sink.log("the site requires a browser: retrying as a browser")
    library.params["extractor_args"] = _AS_BROWSER
    return library.extract_info(url, download=False)


def asks_as_browser(library: Any) -> bool:
    """Check whether this `yt_dlp.YoutubeDL` requests pages like a browser."""
    return library.params.get("extractor_args") is _AS_BROWSER


def site_failed(message: str) -> errors.InternalServerError:
    """Create the API error for a site that does not provide its media."""
    return status_error(
        errors.InternalServerError, message, code="upstream_failed", status=502, param="url"
    )


_HLS = frozenset(("m3u8", "m3u8_native"))
_DASH = frozenset(("http_dash_segments", "http_dash_segments_generator"))
#: Protocols that yt-dlp implements over HTTP itself. For any other protocol it starts a program or
#: follows a live stream. The last two are HLS with additional requests.
_WAYS = _HLS | _DASH | {"http", "https", "data", "ism", "bunnycdn", "soopvod"}
#: Enough for a playlist of a day with signed URLs; yt-dlp alone has no limit.
_MAX_LIST_BYTES = 64 << 20
#: The first tag of a DASH manifest must end within this size.
_LOOKED_AT_BYTES = 64 << 10
_COMMENTS = re.compile(rb"(?s)<!--.*?(?:-->|\Z)")
_FIRST_TAG = re.compile(rb"""<(?:[\w.-]+:)?MPD\b(?:[^<>"']|"[^"]*"|'[^']*')*""")
_DYNAMIC = re.compile(rb"""\stype\s*=\s*["']dynamic["']""")
_VIDEO_ON_DEMAND = re.compile(r"(?m)^#EXT-X-PLAYLIST-TYPE:\s*VOD\b")


def finished(library: Any, part: dict[str, Any]) -> dict[str, Any]:
    """Check that a format or captions track is not live, and add the playlist that was checked.

    Raises:
        APIStatusError: The protocol is not supported (415).
        InternalServerError: The playlist is too large.
        UnprocessableEntityError: The media is live, or the playlist contains playlists.
        YoutubeDLError: The site did not provide the playlist.
    """
    from yt_dlp.utils import determine_protocol

    protocol = str(determine_protocol(part))
    if protocol not in _WAYS:
        raise status_error(
            errors.APIStatusError,
            f"the page's media uses {protocol[:20]!r}, which is not supported (supported: HTTP, "
            "HLS, DASH)",
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
    """Create the error for a live stream, which has no end."""
    return status_error(
        errors.UnprocessableEntityError,
        "live streams are not supported. Try again after the stream has ended",
        code="undecodable",
        param="url",
    )


def _finished_list(library: Any, part: dict[str, Any]) -> dict[str, Any]:
    """Check that an HLS playlist is complete: it has an end tag or is VOD (RFC 8216, 4.3.3)."""
    text, url = part.get("hls_media_playlist_data"), part["url"]
    if not text:
        with library.urlopen(_request(part, url)) as answer:
            data, url = answer.read(_MAX_LIST_BYTES + 1), answer.url
        if len(data) > _MAX_LIST_BYTES:
            raise site_failed("the page's playlist is too large")
        text = data.decode("utf-8", "ignore")
    text = text.removeprefix("\ufeff")  # yt-dlp would treat the marked line as a segment.
    if "#EXT-X-STREAM-INF" in text:
        raise status_error(
            errors.UnprocessableEntityError,
            "the page's playlist contains other playlists instead of media segments",
            code="undecodable",
            param="url",
        )
    # A playlist without segments is not media: yt-dlp reports its own error for that.
    if "#EXTINF" in text and "#EXT-X-ENDLIST" not in text and not _VIDEO_ON_DEMAND.search(text):
        raise live()
    # yt-dlp downloads the playlist that was checked here, without requesting it again.
    return part | {"url": url, "hls_media_playlist_data": text}


def _check_manifest(library: Any, part: Mapping[str, Any]) -> None:
    """Reject a live DASH manifest; ignores a manifest that cannot be read."""
    from yt_dlp.utils import YoutubeDLError

    try:
        with library.urlopen(_request(part, part["manifest_url"])) as answer:
            data = answer.read(_LOOKED_AT_BYTES)
    except YoutubeDLError:
        return
    if is_dynamic(data):
        raise live()


def is_dynamic(manifest: bytes) -> bool:
    """Check whether a DASH manifest is live, by the ``type`` of its first tag (ISO/IEC 23009-1).

    Uses no XML parser because untrusted declarations before the tag could be harmful.

    Example:
        >>> from polymux.downloads.ytdlp import is_dynamic
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
    """Build a request like yt-dlp's own playlist readers."""
    from yt_dlp.networking import Request

    return Request(str(url), headers=dict(part.get("http_headers") or {}))
