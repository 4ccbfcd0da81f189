"""The downloader's process: yt-dlp, told what to do by data alone.

No options, configuration, plugins, cookies or credentials of anybody but the operator's reach it;
it writes into one folder, and its only way out is the proxy of `polymux.downloads.proxy`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.text import printable, shortened
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

#: What the server asks this engine for; no operation of the interface has such a name.
FETCH_PAGE = "fetch_page"
#: What is fetched of a page: `contracts.md` 11, for a height that players know.
VIDEO = "bv*+ba/b"
AUDIO = "ba/b"
_SOCKET_S = 20.0
_RETRIES = 2
_MAX_CHAPTERS = 500
#: Of a page's pictures, that are looked at; those that players show are few.
_MAX_IMAGES = 4
_MAX_IMAGE_BYTES = 5 << 20
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_GONE = re.compile(
    r"HTTP Error 4(?:04|10)|video (?:is )?unavailable|private video|has been removed|been deleted|"
    r"no longer available|does not exist",
    re.IGNORECASE,
)
#: What yt-dlp would leave to ffmpeg are lists whose parts are encrypted one sample at a time.
_LOCKED = re.compile("DRM protected|m3u8 download detected but ffmpeg")
_OF_NO_WEB = re.compile(r"file:// URLs are disabled|enable-file-urls|No connection adapters")
_NO_MEDIA = re.compile("Unsupported URL|No video formats")
#: Advice to whoever runs yt-dlp, which is none for callers.
_TO_OPERATORS = re.compile(r"ffmpeg|--\w|No connection adapters")
#: What sites say: the failure that it is, with its status, its code and its words.
_REASONS = (
    (_GONE, errors.NotFoundError, 404, "gone", "it is not there"),
    (_LOCKED, errors.UnprocessableEntityError, 422, "encrypted", "it is protected against copies"),
    (_OF_NO_WEB, errors.BadRequestError, 400, "url_refused", "it leads to what is not of the web"),
    (_NO_MEDIA, errors.APIStatusError, 415, "unsupported_media", "there is no media on this page"),
)


class DownloadEngine(Engine):
    """Fetches what a page shows into files."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Loads yt-dlp: ``proxy``, ``folder``, ``cookies``, ``max_bytes``, ``max_s``.

        ``certificates`` is a file of those that sites are trusted by; else the package's own.
        """
        self._library = loaded_library(options)
        self._options = options
        return {"version": self._library.version.__version__}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Fetches ``url``: ``kind`` ``"video"``, ``"audio"`` or ``"captions"``; best of ``height``.

        With ``cover`` also the picture that stands for it.

        Returns:
            ``files`` (names in the folder, the picture's first), ``title``, ``tags``,
            ``duration_s``, ``chapters``, ``captions`` (their language; empty where the file is none
            of those) and ``cover`` (a name in the folder; empty where there is none).
        """
        try:
            return self._fetch(request.values, sink, token)
        except self._library.utils.YoutubeDLError as error:
            token.check()
            raise _failure(error) from None
        except MemoryError:
            pass  # Not told of here: what it holds is given back when this is left.
        raise site_failed("what the site sends takes more memory than a download may")

    def _fetch(self, values: Mapping[str, Any], sink: EngineSink, token: Token) -> Output:
        watch = _Watch(sink, token, int(self._options["max_bytes"]))
        parameters = self._parameters(values, sink, watch)
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
        """Names of the files: of the picture's and the sound's, or of one with both."""
        whole = {name: value for name, value in info.items() if name != "requested_formats"}
        # All are looked at before one comes: sound may be live where the picture is not.
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
        """Their language and file; None where there are none, or none that say anything.

        A page that names captions which are not there has a video nevertheless.
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
            sink.log("the video's captions say nothing that can be read")
        except errors.RequestTooLargeError:
            raise
        except self._captions_errors as error:
            token.check()
            sink.log(f"the video's captions cannot be fetched: {_told(error)}")
        return None

    @property
    def _captions_errors(self) -> tuple[type[Exception], ...]:
        """What captions fail with that are not there, or none: yt-dlp joins their parts itself."""
        site = self._library.utils.YoutubeDLError, self._library.webvtt.ParseError
        return errors.APIStatusError, OSError, ValueError, *site

    def _looked_at(
        self, library: Any, info: dict[str, Any], part: dict[str, Any]
    ) -> dict[str, Any]:
        """A part with all that it is asked for by; see `polymux.downloads.ytdlp.finished`."""
        told = dict(part)
        told.setdefault("http_headers", info.get("http_headers") or {})
        if asks_as_browser(library):
            told["impersonate"] = True
        return finished(library, told)

    def _fetch_part(self, library: Any, part: dict[str, Any], name: str, *, subtitle: bool) -> None:
        path = Path(self._options["folder"]) / name
        succeeded, _ = library.dl(str(path), part | {"filepath": str(path)}, subtitle=subtitle)
        # Of captions that come as a list of parts yt-dlp says nothing: the file alone tells.
        if not (succeeded or subtitle) or not path.is_file():
            raise site_failed("the page's media cannot be fetched")

    def _fetch_cover(self, library: Any, info: Mapping[str, Any], token: Token) -> str:
        """The name of the best picture that players show; without one music is music still."""
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

    def _parameters(
        self, values: Mapping[str, Any], sink: EngineSink, watch: _Watch
    ) -> dict[str, Any]:
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
            "logger": _Logger(sink),
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
                f"this lasts {duration:.0f} s, and {max_s:.0f} s are taken",
                param="url",
            )


class _Watch:
    """What a download costs, and who has asked for its end."""

    def __init__(self, sink: EngineSink, token: Token, max_bytes: int) -> None:
        self._sink = sink
        self._token = token
        self._max_bytes = max_bytes
        self._bytes: dict[str, int] = {}
        self.parts = 1
        self.done_parts = 0

    def take(self, told: Mapping[str, Any]) -> None:
        """yt-dlp's progress hook."""
        if self._token.cancelled:
            raise Cancelled
        done = int(told.get("downloaded_bytes") or 0)
        self._bytes[str(told.get("filename"))] = max(done, int(told.get("total_bytes") or 0))
        if sum(self._bytes.values()) > self._max_bytes:
            raise status_error(
                errors.RequestTooLargeError,
                f"this is longer than the {self._max_bytes} bytes that are taken",
                param="url",
            )
        total = told.get("total_bytes") or told.get("total_bytes_estimate")
        if total:
            self._sink.report((self.done_parts + min(1.0, done / total)) / self.parts)


class _Logger:
    """yt-dlp's words; its warnings are the job's."""

    def __init__(self, sink: EngineSink) -> None:
        self._sink = sink

    def debug(self, message: str) -> None:
        """Told to nobody."""

    info = debug

    def warning(self, message: str) -> None:
        """A line of the job's log."""
        self._sink.log(shortened(printable(_plain(message)), 300))

    def error(self, message: str) -> None:
        """Raised as well."""


def _described(info: Mapping[str, Any]) -> dict[str, Any]:
    """What a page says of what it shows; words of strangers, made short and plain."""
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
    """What a page says of a recording, as tags; of a page without an artist its uploader.

    Example:
        >>> tags_of({"title": "Blue Danube (live)", "track": "Blue Danube", "release_year": 1867})
        {'title': 'Blue Danube', 'date': '1867'}
    """
    artists = info.get("artists") or info.get("artist") or info.get("creator")
    if isinstance(artists, (list, tuple)):
        artists = ", ".join(str(one) for one in artists)
    if not artists and info.get("extractor_key") != "Generic":
        # Of pages that nobody has described it is their site.
        artists = info.get("uploader")
    found = {
        "title": info.get("track") or info.get("title"),
        "artist": artists,
        "album": info.get("album"),
        "date": info.get("release_year"),
    }
    return {name: shortened(printable(str(value)), 200) for name, value in found.items() if value}


def _one(info: Any) -> dict[str, Any]:
    """What the page shows: of a list, the first. NotFoundError where that is nothing."""
    while isinstance(info, dict) and "entries" in info:
        info = next((one for one in info["entries"] or () if one), None)
    if not isinstance(info, dict):
        raise status_error(errors.NotFoundError, "nothing was found", code="no_result")
    return info


def _order(height: int | None) -> list[str]:
    """What makes a video's format better than another: its size, then that it plays everywhere.

    `res` is the smaller side: the best not above the height, else the least above it. Sound alone
    goes by yt-dlp's own order, as it is converted whatever it is.
    """
    return [f"res:{height}" if height else "res", "vcodec:h264", "acodec:aac"]


def _extension(part: Mapping[str, Any]) -> str:
    found = re.sub(r"[^a-z0-9]", "", str(part.get("ext") or "").lower())[:8]
    return found or "bin"


def _plain(text: str) -> str:
    return _COLOURS.sub("", text).removeprefix("ERROR: ").strip()


def _told(error: Exception) -> str:
    """A reason as people read it."""
    reason = _plain(str(error)).partition("; please report this")[0]
    return shortened(printable(reason), 300)


def _failure(error: Any) -> errors.PolymuxError:
    """A failure with the site's reason."""
    info = getattr(error, "exc_info", None)
    inner = info[1] if isinstance(info, tuple) else None
    while inner is not None:
        if isinstance(inner, errors.PolymuxError):
            return inner
        if isinstance(inner, Cancelled):
            raise inner
        inner = inner.__cause__ or inner.__context__
    reason = _told(error)
    for pattern, kind, status, code, words in _REASONS:
        if pattern.search(reason):
            told = words if _TO_OPERATORS.search(reason) else f"{words}: {reason}"
            return status_error(kind, told, code=code, status=status, param="url")
    return site_failed(f"the site does not give it: {reason}")
