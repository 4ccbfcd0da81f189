"""yt-dlp as the downloader's process has it, and how it asks for a page."""

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
#: In the words of yt-dlp's extractor for pages that nobody has described.
_CHALLENGE, _UNABLE = "anti-bot challenge", "impersonation dependency"
#: The one program that is started: for the scripts of some sites.
_RUNS_SCRIPTS = "deno"
_AS_BROWSER = {"generic": {"impersonate": [""]}}


def loaded_library(options: Mapping[str, Any]) -> Any:
    """The package `yt_dlp`, without plugins, and with what bounds it here; for its process alone.

    Raises:
        NoBackendError: yt-dlp is missing.
    """
    if options.get("certificates"):
        # What OpenSSL takes for the system's, of which `no-certifi` has yt-dlp ask; curl-cffi looks
        # at it when it is imported.
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
    """Has what yt-dlp asks by follow as many redirects as a file's fetcher; for its process alone.

    yt-dlp has no option for it, so its libraries' own numbers are set. That of curl-cffi, by which
    browsers are imitated, is five in yt-dlp itself.
    """
    urllib.request.HTTPRedirectHandler.max_redirections = _REDIRECTS
    with suppress(ImportError):
        from requests import sessions

        sessions.DEFAULT_REDIRECT_LIMIT = _REDIRECTS  # type: ignore[attr-defined]


def start_no_programs() -> None:
    """Has yt-dlp find no program but deno, whatever is installed; for its process alone.

    Else a page's words would become arguments of programs such as rtmpdump. Lists of parts that
    are encrypted it decrypts itself: it leaves them to ffmpeg wherever that seems to be there and
    pycryptodomex is not, and fails.
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
    """What is known of a page's media; a site that wants a browser is asked again as by one.

    From then on `library`, a `yt_dlp.YoutubeDL`, asks for pages as a browser does. Not at once:
    sites refuse what claims to be a browser, too, and more of them (yt-dlp, issue 11335).

    Raises:
        YoutubeDLError: yt-dlp's, as it is.
        InternalServerError: The site wants a browser, and curl-cffi is not there.
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
            "the site lets nothing but browsers through, and this server cannot ask like one: "
            "that takes curl-cffi, which 'pip install polymux[download]' brings"
        )
    token.check()
    sink.log("the site wants a browser: it is asked again as by one")
    library.params["extractor_args"] = _AS_BROWSER
    return library.extract_info(url, download=False)


def asks_as_browser(library: Any) -> bool:
    """Whether a page of this `yt_dlp.YoutubeDL` was asked for as by a browser."""
    return library.params.get("extractor_args") is _AS_BROWSER


def site_failed(message: str) -> errors.InternalServerError:
    """What a site does not give, as its caller is told."""
    return status_error(
        errors.InternalServerError, message, code="upstream_failed", status=502, param="url"
    )


_HLS = frozenset(("m3u8", "m3u8_native"))
_DASH = frozenset(("http_dash_segments", "http_dash_segments_generator"))
#: What yt-dlp fetches itself by HTTP; for others it starts programs, or follows what has no end.
#: The last two are lists of HLS with requests beside them.
_WAYS = _HLS | _DASH | {"http", "https", "data", "ism", "bunnycdn", "soopvod"}
#: Of a list of a day whose addresses are signed; yt-dlp alone would read it however long it is.
_MAX_LIST_BYTES = 64 << 20
#: Of a manifest, that its first element ends in.
_LOOKED_AT_BYTES = 64 << 10
_COMMENTS = re.compile(rb"(?s)<!--.*?(?:-->|\Z)")
_FIRST_TAG = re.compile(rb"""<(?:[\w.-]+:)?MPD\b(?:[^<>"']|"[^"]*"|'[^']*')*""")
_DYNAMIC = re.compile(rb"""\stype\s*=\s*["']dynamic["']""")
_VIDEO_ON_DEMAND = re.compile(r"(?m)^#EXT-X-PLAYLIST-TYPE:\s*VOD\b")


def finished(library: Any, part: dict[str, Any]) -> dict[str, Any]:
    """A format or captions that end, as they are to be fetched: with the list that was looked at.

    Raises:
        APIStatusError: It comes by a way that is not taken (415).
        InternalServerError: Its list is longer than any should be.
        UnprocessableEntityError: It is live, or its list names lists.
        YoutubeDLError: The site does not give the list.
    """
    from yt_dlp.utils import determine_protocol

    protocol = str(determine_protocol(part))
    if protocol not in _WAYS:
        raise status_error(
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
    return status_error(
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
            data, url = answer.read(_MAX_LIST_BYTES + 1), answer.url
        if len(data) > _MAX_LIST_BYTES:
            raise site_failed("the page's list of parts is longer than any should be")
        text = data.decode("utf-8", "ignore")
    text = text.removeprefix("\ufeff")  # yt-dlp would take that line for a part.
    if "#EXT-X-STREAM-INF" in text:
        raise status_error(
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
    """As yt-dlp's own readers of lists ask for them."""
    from yt_dlp.networking import Request

    return Request(str(url), headers=dict(part.get("http_headers") or {}))
