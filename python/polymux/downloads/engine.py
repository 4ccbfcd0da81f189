"""The downloader's process: runs yt-dlp with fixed options.

The process gets no options, configuration, plugins, cookies or credentials except the operator's.
It writes into one folder, and its only network access is the proxy of `polymux.downloads.proxy`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.redaction import redact
from polymux._util.text import printable, shortened, shown
from polymux.downloads.ytdlp import (
    asks_as_browser,
    extracted,
    finished,
    live,
    loaded_library,
    site_failed,
)
from polymux.engines.base import Cancelled, Engine, Output
from polymux.media.options import cover_type
from polymux.service.errors import status_error
from polymux.summaries.captions import chosen_captions, says_anything

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import EngineSink, Request, Token

#: Internal operation between server and process; not part of the polymux API.
FETCH_PAGE = "fetch_page"
#: yt-dlp format selectors (`contracts.md` 11).
VIDEO = "bv*+ba/b"
AUDIO = "ba/b"
_SOCKET_S = 20.0
_RETRIES = 2
_MAX_CHAPTERS = 500
#: Maximum number of a page's images to try; few have a format that players show.
_MAX_IMAGES = 4
_MAX_IMAGE_BYTES = 5 << 20
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_GONE = re.compile(
    r"HTTP Error 4(?:04|10)|video (?:is )?unavailable|private video|has been removed|been deleted|"
    r"no longer available|does not exist",
    re.IGNORECASE,
)
#: yt-dlp passes playlists with sample encryption to ffmpeg, which is not available here.
_LOCKED = re.compile("DRM protected|m3u8 download detected but ffmpeg")
_OF_NO_WEB = re.compile(r"file:// URLs are disabled|enable-file-urls|No connection adapters")
_NO_MEDIA = re.compile("Unsupported URL|No video formats|Requested format is not available")
_LOGIN = re.compile(
    r"HTTP Error 401|--cookies|--username|\b(?:log|sign)(?:ged)?[ -]?in\b|registered users|"
    r"account is required|confirm your age|age[ -]restricted",
    re.IGNORECASE,
)
_REGION = re.compile(
    r"geo[ -]?restrict|your (?:country|location|region)|from your location", re.IGNORECASE
)
_CERTIFICATE = re.compile("certificate", re.IGNORECASE)
_REDIRECTS = re.compile(r"HTTP Error 3\d\d|redirect", re.IGNORECASE)
_STATUS = re.compile(r"HTTP Error (\d{3})")
_NO_CONNECTION = re.compile(
    r"TransportError|Unable to download|timed out|urlopen error|Connection (?:refused|reset)|"
    r"IncompleteRead|SSLError|ProxyError"
)
#: Signs that a message contains more than what the site says.
_INTERNAL = re.compile(r"--\w|yt-dlp|://|caused by|extract|ffmpeg|\w\(|[\[\]{}<>]", re.IGNORECASE)
_ASK = "Check the URL in a browser"
#: Pattern of yt-dlp's message, and the error class, status, code and message that replace it.
#: `{got}` is the status with which the site answered, if any.
_REASONS = (
    (_GONE, errors.NotFoundError, 404, "gone",
     "the media was not found: the site says that it is private, deleted or missing{got}. " + _ASK),
    (_LOCKED, errors.UnprocessableEntityError, 422, "encrypted",
     "the media is copy-protected (DRM), which is not supported. Use another source"),
    (_OF_NO_WEB, errors.BadRequestError, 400, "url_refused",
     "the page refers to a URL that is not HTTP (allowed: http, https). Use another source"),
    (_NO_MEDIA, errors.APIStatusError, 415, "unsupported_media",
     f"the page contains no supported media. {_ASK}, or use the URL of a media file"),
    (_LOGIN, errors.InternalServerError, 502, "upstream_failed",
     "the site requires a login or an age check{got}. The server's administrator can configure "
     "`cookies` in [download]"),
    (_REGION, errors.InternalServerError, 502, "upstream_failed",
     "the site does not offer the media in the country of the server. The server's administrator "
     "can configure a `proxy` in [download]"),
    (_CERTIFICATE, errors.InternalServerError, 502, "upstream_failed",
     f"the site's TLS certificate is not trusted. {_ASK}"),
    (_REDIRECTS, errors.InternalServerError, 502, "upstream_failed",
     f"the site sent too many or invalid redirects. {_ASK}, and use the one that it leads to"),
)  # fmt: skip


class DownloadEngine(Engine):
    """Downloads the media of one page into files."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Load yt-dlp with the options ``proxy``, ``folder``, ``cookies``, ``max_bytes``,
        ``max_s``.

        ``certificates`` is a file of trusted certificates. Default: those of yt-dlp.
        """
        self._library = loaded_library(options)
        self._options = options
        return {"version": self._library.version.__version__}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Download ``url``: ``kind`` ``"video"``, ``"audio"`` or ``"captions"``.

        ``height`` limits the height in lines; ``cover`` also downloads the cover image.

        Returns:
            ``files`` (names in the folder, video before audio), ``title``, ``tags``,
            ``duration_s``, ``chapters``, ``captions`` (their language, or empty for media files)
            and ``cover`` (a name in the folder, or empty).
        """
        try:
            return self._fetch(request.values, sink, token)
        except self._library.utils.YoutubeDLError as error:
            token.check()
            raise _failure(error) from None
        except MemoryError:
            pass  # Leave the handler first: it keeps the memory of the traceback in use.
        raise site_failed("the site's data is too large for the memory limit of a download")

    def _fetch(self, values: Mapping[str, Any], sink: EngineSink, token: Token) -> Output:
        watch = _Watch(sink, token, int(self._options["max_bytes"]))
        parameters = self._parameters(values, watch)
        with self._library.YoutubeDL(parameters) as library:
            info = _one(extracted(library, str(values["url"]), sink, token))
            self._check(info)
            found = None
            if values["kind"] == "captions":
                found = self._fetch_captions(library, info, sink, token)
            language, files = found or ("", self._fetch_media(library, info, watch, token))
            cover = self._fetch_cover(library, info, token) if values.get("cover") else ""
        described = _described(info) | {"files": files, "captions": language, "cover": cover}
        return Output(described, str(self._library.version.__version__))

    def _fetch_media(
        self, library: Any, info: dict[str, Any], watch: _Watch, token: Token
    ) -> list[str]:
        """Download the media; returns one file name, or video and audio file names in order."""
        whole = {name: value for name, value in info.items() if name != "requested_formats"}
        # Check all parts first: audio may be live while video is not.
        wanted = [
            self._looked_at(library, info, whole | one)
            for one in info.get("requested_formats") or [info]
        ]
        watch.parts = len(wanted)
        files = []
        for number, one in enumerate(wanted):
            token.check()
            files.append(f"{number}.{_extension(one)}")
            self._fetch_part(library, one, files[-1], subtitle=False)
            watch.done_parts += 1
        return files

    def _fetch_captions(
        self, library: Any, info: dict[str, Any], sink: EngineSink, token: Token
    ) -> tuple[str, list[str]] | None:
        """Return language and file of the captions, or None if there are no usable captions.

        Unavailable captions are not an error: the page still has a video.
        """
        found = chosen_captions(info)
        if found is None:
            return None
        language, part = found
        name = f"captions.{_extension(part)}"
        try:
            if isinstance(part.get("data"), str):
                (Path(self._options["folder"]) / name).write_text(part["data"], "utf-8")
            else:
                self._fetch_part(library, self._looked_at(library, info, part), name, subtitle=True)
            if says_anything(Path(self._options["folder"]) / name):
                return language, [name]
            sink.log("the video's captions contain no text")
        except errors.RequestTooLargeError:
            raise
        except self._captions_errors as error:
            token.check()
            sink.log(f"cannot download the video's captions: {_failure(error)}")
        return None

    @property
    def _captions_errors(self) -> tuple[type[Exception], ...]:
        """Errors of missing or invalid captions; yt-dlp joins their segments itself."""
        site = self._library.utils.YoutubeDLError, self._library.webvtt.ParseError
        return errors.APIStatusError, OSError, ValueError, *site

    def _looked_at(
        self, library: Any, info: dict[str, Any], part: dict[str, Any]
    ) -> dict[str, Any]:
        """Return a part that is ready to download; see `polymux.downloads.ytdlp.finished`."""
        prepared = dict(part)
        prepared.setdefault("http_headers", info.get("http_headers") or {})
        if asks_as_browser(library):
            prepared["impersonate"] = True
        return finished(library, prepared)

    def _fetch_part(self, library: Any, part: dict[str, Any], name: str, *, subtitle: bool) -> None:
        path = Path(self._options["folder"]) / name
        succeeded, _ = library.dl(str(path), part | {"filepath": str(path)}, subtitle=subtitle)
        # For segmented captions yt-dlp reports no success: check the file.
        if not (succeeded or subtitle) or not path.is_file():
            raise site_failed("cannot download the page's media")

    def _fetch_cover(self, library: Any, info: Mapping[str, Any], token: Token) -> str:
        """Download the best image in a format that players show; returns its name, or empty."""
        known = [one for one in info.get("thumbnails") or () if isinstance(one, dict)]
        for one in known[: -_MAX_IMAGES - 1 : -1]:
            token.check()
            try:
                with library.urlopen(str(one.get("url"))) as answer:
                    data = answer.read(_MAX_IMAGE_BYTES + 1)
            except (self._library.utils.YoutubeDLError, OSError, ValueError):
                continue
            if len(data) <= _MAX_IMAGE_BYTES and cover_type(data) is not None:
                (Path(self._options["folder"]) / "cover").write_bytes(data)
                return "cover"
        return ""

    def _parameters(self, values: Mapping[str, Any], watch: _Watch) -> dict[str, Any]:
        is_video = values["kind"] == "video"
        return {
            "format": VIDEO if is_video else AUDIO,
            "format_sort": _order(values.get("height")) if is_video else [],
            "allow_multiple_audio_streams": False,
            "outtmpl": {"default": str(Path(self._options["folder"]) / "%(format_id)s.%(ext)s")},
            "proxy": self._options["proxy"],
            "cookiefile": self._options.get("cookies"),
            "compat_opts": ["no-certifi"] if self._options.get("certificates") else [],
            "cachedir": False,
            "usenetrc": False,
            "enable_file_urls": False,
            "noplaylist": True,
            "playlist_items": "1",
            "lazy_playlist": True,
            "nopart": True,
            "continuedl": False,
            "overwrites": True,
            "updatetime": False,
            "socket_timeout": _SOCKET_S,
            "retries": _RETRIES,
            "fragment_retries": _RETRIES,
            "extractor_retries": 1,
            "skip_unavailable_fragments": False,
            "hls_prefer_native": True,
            "fixup": "never",
            "postprocessors": [],
            "ffmpeg_location": str(Path(self._options["folder"]) / "none"),
            "quiet": True,
            "noprogress": True,
            "color": "no_color",
            "logger": _Logger(),
            "progress_hooks": [watch.take],
        }

    def _check(self, info: Mapping[str, Any]) -> None:
        if info.get("is_live") or info.get("live_status") in ("is_live", "is_upcoming"):
            raise live()
        max_s = float(self._options["max_s"])
        duration = info.get("duration")
        if isinstance(duration, (int, float)) and duration > max_s:
            raise status_error(
                errors.RequestTooLargeError,
                f"the media is too long (got {duration:.0f} s, allowed {max_s:.0f} s)",
                param="url",
            )


class _Watch:
    """Enforces the size limit and cancellation during a download, and reports progress."""

    def __init__(self, sink: EngineSink, token: Token, max_bytes: int) -> None:
        self._sink = sink
        self._token = token
        self._max_bytes = max_bytes
        self._bytes: dict[str, int] = {}
        self.parts = 1
        self.done_parts = 0

    def take(self, update: Mapping[str, Any]) -> None:
        """Handle yt-dlp's progress hook."""
        if self._token.cancelled:
            raise Cancelled
        done = int(update.get("downloaded_bytes") or 0)
        self._bytes[str(update.get("filename"))] = max(done, int(update.get("total_bytes") or 0))
        if sum(self._bytes.values()) > self._max_bytes:
            raise status_error(
                errors.RequestTooLargeError,
                f"the download is too large (allowed: {self._max_bytes} bytes)",
                param="url",
            )
        total = update.get("total_bytes") or update.get("total_bytes_estimate")
        if total:
            self._sink.report((self.done_parts + min(1.0, done / total)) / self.parts)


class _Logger:
    """Adds yt-dlp's warnings to the server's log: they are for people who run yt-dlp."""

    def debug(self, message: str) -> None:
        """Ignore debug messages."""

    info = debug

    def warning(self, message: str) -> None:
        _tell_operator(message)

    def error(self, message: str) -> None:
        """Ignore: yt-dlp also raises the error."""


def _described(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page's metadata: untrusted text, shortened and without control characters."""
    chapters = [
        (
            float(one.get("start_time") or 0.0),
            shortened(printable(str(one.get("title") or "")), 200),
        )
        for one in (info.get("chapters") or ())[:_MAX_CHAPTERS]
        if isinstance(one, dict)
    ]
    return {
        "title": shortened(printable(str(info.get("title") or "")), 200),
        "tags": tags_of(info),
        "duration_s": info.get("duration"),
        "chapters": chapters,
    }


def tags_of(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata of a recording as tags. Without an artist, uses the uploader.

    Example:
        >>> tags_of({"title": "Blue Danube (live)", "track": "Blue Danube", "release_year": 1867})
        {'title': 'Blue Danube', 'date': '1867'}
    """
    artists = info.get("artists") or info.get("artist") or info.get("creator")
    if isinstance(artists, (list, tuple)):
        artists = ", ".join(str(one) for one in artists)
    if not artists and info.get("extractor_key") != "Generic":
        # For sites without their own extractor the uploader is the site.
        artists = info.get("uploader")
    found = {
        "title": info.get("track") or info.get("title"),
        "artist": artists,
        "album": info.get("album"),
        "date": info.get("release_year"),
    }
    return {name: shortened(printable(str(value)), 200) for name, value in found.items() if value}


def _one(info: Any) -> dict[str, Any]:
    """Return the page's media: of a playlist the first. Raises NotFoundError without media."""
    while isinstance(info, dict) and "entries" in info:
        info = next((one for one in info["entries"] or () if one), None)
    if not isinstance(info, dict):
        raise status_error(errors.NotFoundError, "no media found", code="no_result")
    return info


def _order(height: int | None) -> list[str]:
    """Return yt-dlp's sort order for video formats: size first, then compatibility.

    `res` is the smaller side: prefers the best up to the height, else the smallest above it. Audio
    alone uses yt-dlp's order because it is converted anyway.
    """
    return [f"res:{height}" if height else "res", "vcodec:h264", "acodec:aac"]


def _extension(part: Mapping[str, Any]) -> str:
    found = re.sub(r"[^a-z0-9]", "", str(part.get("ext") or "").lower())[:8]
    return found or "bin"


def _tell_operator(text: str) -> None:
    """Add a message of yt-dlp to the server's log, which contains this process's standard error."""
    print("yt-dlp:", redact(shortened(printable(text), 300)), file=sys.stderr)  # noqa: T201


def _words_of_site(error: Any) -> str:
    """Return the message of an error if it has no words of yt-dlp, or an empty string."""
    words = str(error.orig_msg) if getattr(error, "expected", False) else ""
    return "" if _INTERNAL.search(words) else words


def _failure(error: Any) -> errors.PolymuxError:
    """Convert a yt-dlp error to an API error.

    Clients do not see yt-dlp's message, which contains names of its modules and advice for people
    who run it themselves.
    """
    if isinstance(error, errors.PolymuxError):
        return error
    if isinstance(error, OSError):  # Such as a full disk.
        return site_failed(f"a downloaded file could not be written: {error.strerror or 'failed'}")
    info = getattr(error, "exc_info", None)
    first = inner = info[1] if isinstance(info, tuple) else None
    while inner is not None:
        if isinstance(inner, errors.PolymuxError):
            return inner
        if isinstance(inner, Cancelled):
            raise inner
        inner = inner.__cause__ or inner.__context__
    text = _COLOURS.sub("", str(error))
    _tell_operator(text)
    # The client chooses the URL, of which yt-dlp's message has a part before the reason.
    text = text.replace(f" {getattr(first, 'video_id', None)}: ", " ", 1)
    refused = _STATUS.search(text)
    got = f" (got status {refused[1]})" if refused else ""
    for pattern, kind, status, code, message in _REASONS:
        if pattern.search(text):
            message = message.format(got=got)
            return status_error(kind, message, code=code, status=status, param="url")
    if refused:
        return site_failed(
            f"the site refused the download{got}. Try again later, or use another source"
        )
    if _NO_CONNECTION.search(text):
        return site_failed(f"cannot connect to the site, or the connection timed out. {_ASK}")
    words = _words_of_site(first)
    if words:
        return site_failed(f"the site did not provide the media (it says {shown(words)}). {_ASK}")
    return site_failed(
        f"the site's page cannot be read: it may have changed. {_ASK}. If it plays there, the "
        "server's administrator can update yt-dlp"
    )
