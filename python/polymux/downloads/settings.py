"""What an operator says of downloads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - settings are made by their fields' types

from polymux.downloads.onward import OnwardProxy
from polymux.errors import InvalidRequestError

#: yt-dlp's own search; another is the address of a page that shows what was found.
YOUTUBE_SEARCH = "ytsearch1:{query}"


@dataclass(frozen=True, slots=True)
class DownloadSettings:
    """Downloads from pages, by yt-dlp.

    Attributes:
        enabled: Whether pages are read at all. Default: where yt-dlp is installed.
        slots: How many at once. Default: 2.
        most_bytes: Longest of one. Default: 2 GiB.
        total_s: Longest time for one, in seconds. Default: 1800.
        music_search: What is opened for a song's ``{query}``: one of yt-dlp's searches, or the
            address of a page that shows what was found. Default: ``"ytsearch1:{query}"``.
        cookies: File of cookies in Netscape's format, the operator's own, sent to the sites that
            they are of. Default: none.
        proxy: The operator's own proxy, such as ``"http://proxy.example:3128"``: judged addresses
            are reached by way of it. Default: none.
        proxy_environment: The variable that its address is in, where that has a password. Default:
            none.

    Raises:
        InvalidRequestError: `music_search` has no ``{query}``; a proxy is none, or has a password
            here.
    """

    enabled: bool | None = None
    slots: int = 2
    most_bytes: int = 2 << 30
    total_s: float = 1800.0
    music_search: str = YOUTUBE_SEARCH
    cookies: Path | None = None
    proxy: str | None = None
    proxy_environment: str | None = None

    def __post_init__(self) -> None:
        """Checks what has a rule."""
        if self.music_search.count("{query}") != 1:
            raise InvalidRequestError("music_search: must have {query} in it, once")
        if self.proxy is not None and self.proxy_environment is not None:
            raise InvalidRequestError("proxy and proxy_environment: give one of them")
        if self.proxy is not None and _proxy("proxy", self.proxy).login:
            raise InvalidRequestError(
                "proxy: a password is not kept in this file: put the address into a variable, and "
                "name that as proxy_environment"
            )

    def onward(self) -> OnwardProxy | None:
        """The operator's proxy; None where there is none.

        Raises:
            InvalidRequestError: The variable that it should be in has none; the error does not tell
                what is there.
        """
        if self.proxy_environment is not None:
            found = os.environ.get(self.proxy_environment, "")
            return _proxy("proxy_environment", found)
        return None if self.proxy is None else _proxy("proxy", self.proxy)


def _proxy(name: str, url: str) -> OnwardProxy:
    try:
        return OnwardProxy.of(url)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{name}: {error}") from None
