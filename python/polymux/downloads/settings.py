"""What an operator says of downloads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - settings are made by their fields' types

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

    Raises:
        InvalidRequestError: `music_search` has no ``{query}``.
    """

    enabled: bool | None = None
    slots: int = 2
    most_bytes: int = 2 << 30
    total_s: float = 1800.0
    music_search: str = YOUTUBE_SEARCH
    cookies: Path | None = None

    def __post_init__(self) -> None:
        """Checks what has a rule."""
        if self.music_search.count("{query}") != 1:
            raise InvalidRequestError("music_search: must have {query} in it, once")
