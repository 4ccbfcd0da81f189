"""The table ``[song_search]`` of a server's settings."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from polymux._util.settings import check, rule
from polymux.config import checked_url

if TYPE_CHECKING:
    from collections.abc import Iterator

PROVIDERS = ("itunes", "musicbrainz", "shazam")
COUNTRY = rule(pattern="[A-Za-z]{2}", must="two letters, such as US")
URL = rule(parse=checked_url)
#: A mail address or page URL, without characters that a comment in User-Agent cannot contain.
_CONTACT = r"(?:https?://[!-'*-\[\]-~]{3,200}|[!-'*-?A-\[\]-~]{1,64}@[A-Za-z0-9.-]{3,200})?"
#: URL parsers may disagree about the host of a proxy URL with one of these characters.
_AMBIGUOUS = re.compile(r"[^!-\[\]-~]")
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


def proxy_place(proxy: str) -> str | None:
    """Return a proxy's scheme, host and port without user name and password.

    Returns None if a part is missing, or if other parsers could find another host.

    Example:
        >>> from polymux.upstreams.song_search.settings import proxy_place
        >>> proxy_place("http://me:secret@Proxy.example:3128")
        'http://proxy.example:3128'
    """
    if _AMBIGUOUS.search(proxy):
        return None
    try:
        parts = urlsplit(proxy)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _PROXY_SCHEMES or not host or not port:
        return None
    if parts.path.strip("/") or parts.query or parts.fragment:
        return None
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _proxy(proxy: str) -> str:
    if proxy_place(proxy) != proxy:
        raise ValueError
    return proxy


@dataclass(frozen=True, slots=True)
class SongSearchSettings:
    """Online services for `search_music`.

    Attributes:
        providers: Services to search, in this order: ``"itunes"``, ``"musicbrainz"``,
            ``"shazam"``. Default: none.
        contact: Your email address or the URL of a page. MusicBrainz requires it and alone receives
            it. Default: none.
        country: Country code of the iTunes store. Default: ``"US"``.
        deadline_s: Maximum time of a search. Default: 30.
        provider_s: Maximum time of one service. Default: 10.
        cache_bytes: Approximate memory of cached responses; 0 disables the cache. Default: 8 MiB.
        cache_s: Time that songs are cached. Default: 6 hours.
        cache_empty_s: Time that empty responses are cached. Default: 10 minutes.
        allowed_proxies: Proxies that requests may name, such as ``"http://proxy.example:3128"``.
            Default: none.
        itunes_url: URL of the iTunes search.
        musicbrainz_url: URL of MusicBrainz.
        shazam_url: URL of the Shazam search.

    Raises:
        InvalidRequestError: A value is invalid.

    Example:
        >>> from polymux.upstreams.song_search.settings import SongSearchSettings
        >>> SongSearchSettings(("itunes",), country="AT").providers
        ('itunes',)
    """

    providers: tuple[str, ...] = field(default=(), metadata=rule(choices=PROVIDERS))
    contact: str = field(
        default="", metadata=rule(pattern=_CONTACT, must="an email address or the URL of a page")
    )
    country: str = field(default="US", metadata=COUNTRY)
    deadline_s: float = 30.0
    provider_s: float = 10.0
    cache_bytes: int = 8 << 20
    cache_s: float = 6 * 3600.0
    cache_empty_s: float = 600.0
    allowed_proxies: tuple[str, ...] = field(
        default=(),
        metadata=rule(parse=_proxy, must="an array of URLs such as http://proxy.example:3128"),
    )
    itunes_url: str = field(default="https://itunes.apple.com", metadata=URL)
    musicbrainz_url: str = field(default="https://musicbrainz.org", metadata=URL)
    shazam_url: str = field(default="https://www.shazam.com", metadata=URL)

    def __post_init__(self) -> None:
        check(self)

    def problems(self) -> Iterator[str]:
        """Check combinations of values."""
        if "musicbrainz" in self.providers and not self.contact:
            yield (
                "contact: missing. MusicBrainz requires an email address or the URL of a page, "
                'such as contact = "music@site.example"'
            )


#: How to enable it, for users who find it disabled.
REMEDY = (
    "enable a song search service in the settings, for example "
    '[song_search] providers = ["itunes"], or with polymux.Local(song_search=...) (see '
    "docs/guides/recognize-and-search-songs.md)"
)
