"""Which catalogues of songs are asked, and how: ``[song_search]`` in a server's settings."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from polymux._util.text import shown
from polymux.config import checked_base_url
from polymux.errors import InvalidRequestError

#: The catalogues there are (`server_and_engines.md` B.11).
PROVIDERS = ("itunes", "musicbrainz", "shazam")
COUNTRY = re.compile(r"[A-Za-z]{2}", re.ASCII)
#: An address of electronic mail or of a page, without what a comment in User-Agent cannot hold.
_CONTACT = re.compile(r"https?://[!-'*-\[\]-~]{3,200}|[!-'*-?A-\[\]-~]{1,64}@[A-Za-z0-9.-]{3,200}")
#: Whoever reads a proxy with one of these may take another part of it for its host.
_AMBIGUOUS = re.compile(r"[^!-\[\]-~]")
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


@dataclass(frozen=True, slots=True)
class SongSearchSettings:
    """Catalogues of songs that `search_music` may ask.

    Attributes:
        providers: Of ``"itunes"``, ``"musicbrainz"`` and ``"shazam"`` those that are asked, in this
            order. Default: none, so that nothing is asked.
        contact: Of whoever runs this, a mail address or a page's; MusicBrainz is asked with it
            alone, and no other is told it. Default: none.
        country: Whose shop is searched, by its two letters. Default: ``"US"``.
        deadline_s: Most that a search may take, all catalogues together. Default: 30.
        provider_s: Most that one catalogue may take for its answer. Default: 10.
        cache_bytes: Most memory for answers that are kept, about; 0 keeps none. Default: 8 MiB.
        cache_s: How long songs that were found are kept. Default: 6 hours.
        cache_empty_s: How long it is kept that there were none. Default: 10 minutes.
        allowed_proxies: The proxies that requests may name, such as ``"http://proxy.example:3128"``.
            Default: none.
        itunes_url: Where that catalogue is. Default: its own address.
        musicbrainz_url: As `itunes_url`.
        shazam_url: As `itunes_url`.

    Raises:
        InvalidRequestError: A value that cannot be; it is named.

    Example:
        >>> from polymux.upstreams.song_search.settings import SongSearchSettings
        >>> SongSearchSettings(("itunes",), country="AT").providers
        ('itunes',)
    """

    providers: tuple[str, ...] = ()
    contact: str = ""
    country: str = "US"
    deadline_s: float = 30.0
    provider_s: float = 10.0
    cache_bytes: int = 8 << 20
    cache_s: float = 6 * 3600.0
    cache_empty_s: float = 600.0
    allowed_proxies: tuple[str, ...] = ()
    itunes_url: str = "https://itunes.apple.com"
    musicbrainz_url: str = "https://musicbrainz.org"
    shazam_url: str = "https://www.shazam.com"

    def __post_init__(self) -> None:
        """Checks what is given."""
        for name in self.providers:
            if name not in PROVIDERS:
                raise wrong("providers", name, f"must be of {', '.join(PROVIDERS)}")
        if len(set(self.providers)) < len(self.providers):
            raise wrong("providers", list(self.providers), "names one more than once")
        if self.contact and not _CONTACT.fullmatch(self.contact):
            raise wrong("contact", self.contact, "must be a mail address or a page's")
        if "musicbrainz" in self.providers and not self.contact:
            raise InvalidRequestError(
                "contact: MusicBrainz wants to know whom to write to about requests; give a mail "
                'address or a page, such as contact = "music@site.example"'
            )
        if not COUNTRY.fullmatch(self.country):
            raise wrong("country", self.country, "must be two letters, such as US")
        check_numbers(self)
        for proxy in self.allowed_proxies:
            if proxy_place(proxy) != proxy:
                raise wrong("allowed_proxies", proxy, "must be as http://proxy.example:3128")
        for name in PROVIDERS:
            check_url(f"{name}_url", getattr(self, f"{name}_url"))


def proxy_place(proxy: str) -> str | None:
    """A proxy's scheme, host and port, without name and password; None where one is missing.

    None as well for what another parser would read as another host.

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


def check_numbers(settings: Any) -> None:
    """Raises where seconds or bytes among the fields of settings cannot be.

    Raises:
        InvalidRequestError: It names the first of them.
    """
    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.name.endswith("_s") and not 0 < value < float("inf"):
            raise wrong(one.name, value, "must be a number of seconds above 0")
        if one.name.endswith("_bytes") and value < 0:
            raise wrong(one.name, value, "must be 0 or above")


def check_url(name: str, url: str) -> None:
    """Raises where a setting cannot be a server's address.

    Raises:
        InvalidRequestError: It names the setting.
    """
    try:
        checked_base_url(url)
    except InvalidRequestError as error:
        text = error.message.removeprefix("base_url ")
        raise InvalidRequestError(f"{name}: {text}") from None


def wrong(name: str, value: object, why: str) -> InvalidRequestError:
    """What is said of a setting that cannot be."""
    return InvalidRequestError(f"{name}={shown(value)}: {why}")


#: What turns it on, for whoever finds it off.
REMEDY = (
    "catalogues of songs are asked only where they are named, such as by [song_search] "
    'providers = ["itunes"] in the settings, or by polymux.Local(song_search=...); '
    "docs/song-search.md says how"
)
