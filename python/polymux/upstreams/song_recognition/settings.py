"""The table ``[song_recognition]`` of a server's settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from polymux._util.settings import check, rule
from polymux.upstreams.song_search.settings import COUNTRY, URL

PROVIDERS = ("shazam",)
SHAZAM_URL = "https://amp.shazam.com"


@dataclass(frozen=True, slots=True)
class SongRecognitionSettings:
    """External services for `identify_song`.

    Attributes:
        providers: Services to use: ``"shazam"``. Default: none.
        country: Country code of the search. Default: ``"GB"``.
        language: Language of responses. Default: ``"en-US"``.
        deadline_s: Maximum time of a recognition, including waiting. Default: 30.
        provider_s: Maximum time of one response. Default: 10.
        cache_bytes: Approximate memory of cached responses; 0 disables the cache. Default: 4 MiB.
        cache_s: Time that songs are cached. Default: 6 hours.
        cache_empty_s: Time that unknown recordings are cached. Default: 10 minutes.
        shazam_url: URL of the Shazam recognition.

    Raises:
        InvalidRequestError: A value is invalid.

    Example:
        >>> from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
        >>> SongRecognitionSettings(("shazam",), country="AT").providers
        ('shazam',)
    """

    providers: tuple[str, ...] = field(default=(), metadata=rule(choices=PROVIDERS))
    country: str = field(default="GB", metadata=COUNTRY)
    language: str = field(
        default="en-US",
        metadata=rule(pattern="[a-z]{2}-[A-Z]{2}", must="a language and a country, such as en-US"),
    )
    deadline_s: float = 30.0
    provider_s: float = 10.0
    cache_bytes: int = 4 << 20
    cache_s: float = 6 * 3600.0
    cache_empty_s: float = 600.0
    shazam_url: str = field(default=SHAZAM_URL, metadata=URL)

    def __post_init__(self) -> None:
        check(self)


#: How to enable it, for users who find it disabled.
REMEDY = (
    "enable an external song recognition service in the settings, for example "
    '[song_recognition] providers = ["shazam"] (see docs/guides/recognize-and-search-songs.md)'
)
