"""Who is asked what song a recording is of: ``[song_recognition]`` in a server's settings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from polymux.upstreams.song_search.settings import COUNTRY, check_numbers, check_url, wrong

#: Those there are.
PROVIDERS = ("shazam",)
SHAZAM_URL = "https://amp.shazam.com"
_LANGUAGE = re.compile(r"[a-z]{2}-[A-Z]{2}", re.ASCII)


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

    providers: tuple[str, ...] = ()
    country: str = "GB"
    language: str = "en-US"
    deadline_s: float = 30.0
    provider_s: float = 10.0
    cache_bytes: int = 4 << 20
    cache_s: float = 6 * 3600.0
    cache_empty_s: float = 600.0
    shazam_url: str = SHAZAM_URL

    def __post_init__(self) -> None:
        """Checks what is given."""
        for name in self.providers:
            if name not in PROVIDERS:
                raise wrong("providers", name, f"must be of {', '.join(PROVIDERS)}")
        if len(set(self.providers)) < len(self.providers):
            raise wrong("providers", list(self.providers), "names one more than once")
        if not COUNTRY.fullmatch(self.country):
            raise wrong("country", self.country, "must be two letters, such as GB")
        if not _LANGUAGE.fullmatch(self.language):
            raise wrong("language", self.language, "must be such as en-US")
        check_numbers(self)
        check_url("shazam_url", self.shazam_url)


#: What turns it on, for whoever finds it off.
REMEDY = (
    "others' servers are asked for a song only where they are named, such as by "
    '[song_recognition] providers = ["shazam"] in the settings; docs/song-recognition.md says how'
)
