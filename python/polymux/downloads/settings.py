"""Settings of downloads."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import check, rule
from polymux.downloads.upstream_proxy import UpstreamProxy
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: yt-dlp's search; the alternative is the URL of a page with search results.
YOUTUBE_SEARCH = "ytsearch1:{query}"
#: Prefixes of yt-dlp searches, and URLs whose host a query cannot change.
_SEARCH = re.compile(r"(?:[a-z]*search[a-z]*|prxstories|prxseries)(?:[0-9]+|all)?:")
_ADDRESS = re.compile(r"https?://[^/?#{}\\\s]+[/?]", re.IGNORECASE)


@renamed_arguments(most_bytes="max_bytes", slots="max_concurrency")
@dataclass(frozen=True, slots=True)
class DownloadSettings:
    """Downloads from web pages with yt-dlp.

    Attributes:
        enabled: Whether downloads are on. Default: if yt-dlp is installed.
        max_concurrency: Maximum number of downloads at the same time. Default: 2.
        max_bytes: Maximum size of one download. Default: 2 GiB.
        total_s: Maximum time of one download. Default: 1800.
        music_search: Search for a song: a yt-dlp search, or the URL of a page with results. It
            contains ``{query}`` once. Default: ``"ytsearch1:{query}"``.
        cookies: File of cookies in Netscape format. Default: none.
        proxy: URL of a proxy without a password, such as ``"http://proxy.example:3128"``. Default:
            none.
        proxy_environment: Environment variable that contains the proxy's URL, for a URL with a
            password. Default: none.

    Raises:
        InvalidRequestError: A value is invalid.
    """

    enabled: bool | None = None
    max_concurrency: int = field(default=2, metadata=rule(min=1))
    max_bytes: int = field(default=2 << 30, metadata=rule(min=1))
    total_s: float = 1800.0
    music_search: str = YOUTUBE_SEARCH
    cookies: Path | None = None
    proxy: str | None = None
    proxy_environment: str | None = None

    def __post_init__(self) -> None:
        check(self)

    def problems(self) -> Iterator[str]:
        before, *rest = self.music_search.split("{query}")
        if len(rest) != 1:
            yield "music_search: must contain {query} exactly once"
        elif not (_SEARCH.match(before) or _ADDRESS.match(before)):
            yield (
                "music_search: must be a yt-dlp search, such as ytsearch1:{query}, or the URL of a "
                "page with {query} after its host"
            )
        if self.proxy is not None and self.proxy_environment is not None:
            yield "proxy and proxy_environment must not be used together"
        elif self.proxy is not None and _proxy("proxy", self.proxy).login:
            yield (
                "proxy: passwords are not allowed in this file. Set an environment variable to the "
                "URL, and proxy_environment to the name of the variable"
            )

    def search(self, query: str) -> tuple[str, bool]:
        """Return the URL or yt-dlp search for a query, and whether it is a URL.

        In a URL the query is percent-encoded. In a yt-dlp search the query stays as entered: the
        prefix marks it as a search even if the query looks like a URL.

        Example:
            >>> from polymux.downloads.settings import DownloadSettings
            >>> DownloadSettings().search("//page.example/")
            ('ytsearch1://page.example/', False)
        """
        is_address = _ADDRESS.match(self.music_search) is not None
        text = quote(query, safe="") if is_address else query
        return self.music_search.replace("{query}", text), is_address

    def upstream_proxy(self) -> UpstreamProxy | None:
        """Return the operator's proxy, or None if not configured.

        Raises:
            InvalidRequestError: The environment variable is missing or not a valid proxy URL; the
                error does not contain its value.
        """
        if self.proxy_environment is not None:
            found = os.environ.get(self.proxy_environment)
            if found is None:
                raise InvalidRequestError(
                    f"proxy_environment: the environment variable {self.proxy_environment} is not "
                    "set"
                )
            return _proxy("proxy_environment", found)
        return None if self.proxy is None else _proxy("proxy", self.proxy)


def _proxy(name: str, url: str) -> UpstreamProxy:
    try:
        return UpstreamProxy.of(url)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{name}: {error}") from None
