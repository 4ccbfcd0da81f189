"""Who is asked what song a recording is of: ``[song_recognition]`` in a server's settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from polymux._util.settings import check, rule
from polymux.upstreams.song_search.settings import COUNTRY, URL

#: Those there are.
PROVIDERS = ("shazam",)
SHAZAM_URL = "https://amp.shazam.com"


@dataclass(frozen=True, slots=True)
class SongRecognitionSettings:
    """Servers of others that `identify_song` may ask.

    Attributes:
        providers: Of ``"shazam"`` those that are asked, in this order. Default: none, so that
            nothing is asked.
        country: Where songs are looked for, by its two letters. Default: ``"GB"``.
        language: Of answers. Default: ``"en-US"``.
        deadline_s: Most that a recognition may take, the wait for a turn included. Default: 30.
        provider_s: Most that an answer may take. Default: 10.
        cache_bytes: Most memory for answers that are kept, about; 0 keeps none. Default: 4 MiB.
        cache_s: How long songs that were recognised are kept. Default: 6 hours.
        cache_empty_s: How long it is kept that nobody knew a recording. Default: 10 minutes.
        shazam_url: Where that server is. Default: its own address.

    Raises:
        InvalidRequestError: A value that cannot be; it is named.

    Example:
        >>> from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
        >>> SongRecognitionSettings(("shazam",), country="AT").providers
        ('shazam',)
    """

    providers: tuple[str, ...] = field(default=(), metadata=rule(choices=PROVIDERS))
    country: str = field(default="GB", metadata=COUNTRY)
    language: str = field(
        default="en-US", metadata=rule(pattern="[a-z]{2}-[A-Z]{2}", must="such as en-US")
    )
    deadline_s: float = 30.0
    provider_s: float = 10.0
    cache_bytes: int = 4 << 20
    cache_s: float = 6 * 3600.0
    cache_empty_s: float = 600.0
    shazam_url: str = field(default=SHAZAM_URL, metadata=URL)

    __post_init__ = check


#: What turns it on, for whoever finds it off.
REMEDY = (
    "others' servers are asked for a song only where they are named, such as by "
    '[song_recognition] providers = ["shazam"] in the settings; docs/song-recognition.md says how'
)
