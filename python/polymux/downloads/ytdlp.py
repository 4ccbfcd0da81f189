"""yt-dlp as the downloader's process has it, and how it asks for a page."""

from __future__ import annotations

import errno
import os
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.models import missing_package
from polymux.service.errors import refusal

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

    Args:
        options: `polymux.downloads.engine.DownloadEngine.load`'s.

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

    Not at once: sites refuse what claims to be a browser, too, and more of them
    (yt-dlp, issue 11335).

    Args:
        library: A `yt_dlp.YoutubeDL`; from then on it asks for pages as a browser does.
        url: The page's.
        sink: For a line of the job's log.
        token: Cancels between both.

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
    return refusal(
        errors.InternalServerError, message, code="upstream_failed", status=502, param="url"
    )
