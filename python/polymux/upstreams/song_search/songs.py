"""Songs from untrusted answers: limited lengths, no control characters, only http(s) URLs."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from polymux.service.errors import bad_request
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Maximum length of a search text; no song name at the services is longer.
MAX_SEARCH_CHARACTERS = 300
_MAX_PART_CHARACTERS = 250
_MAX_URL_CHARACTERS = 2000
#: Invisible marks that change the text direction, and the byte order mark; never needed in names.
_UNSEEN = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_CONTROL_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
_NOT_IN_URLS = re.compile(r'[^!-~]|["<>\\^`{|}]')


class Song(NamedTuple):
    """A song.

    Attributes:
        name: "Title - Artist", or only the title (`contracts.md` G.2.8).
        url: Its page; empty if unknown.
        image_url: Its cover, about 400 pixels wide; empty if unknown.
    """

    name: str
    url: str
    image_url: str

    def as_answer(self) -> dict[str, str]:
        """Return the song in the format of the API (`contracts.md` 3)."""
        return {"song_name": self.name, "songid_url": self.url, "song_image": self.image_url}


def song(title: object, artist: object, url: object, image_url: object) -> Song | None:
    """Create a song from untrusted values; None without a title.

    Args:
        title: Expected to be a string.
        artist: Expected to be a string; without it, the name is only the title.
        url: Expected to be an http(s) URL; other values are dropped.
        image_url: Expected to be an http(s) URL; other values are dropped.
    """
    name, by = _part(title), _part(artist)
    if not name:
        return None
    return Song(f"{name} - {by}" if by else name, _url(url), _url(image_url))


def _part(text: object) -> str:
    if not isinstance(text, str):
        return ""
    return cleaned(text[: 4 * _MAX_PART_CHARACTERS])[:_MAX_PART_CHARACTERS].rstrip()


def cleaned(text: str) -> str:
    r"""Return a text on one line, without control characters and repeated spaces.

    Example:
        >>> from polymux.upstreams.song_search.songs import cleaned
        >>> cleaned("  Blue\x1b\n Danube ")
        'Blue Danube'
    """
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFC", text))
    spaced = (" " if unicodedata.category(one) in _CONTROL_CATEGORIES else one for one in text)
    return " ".join("".join(spaced).split())


def _url(url: object) -> str:
    if not isinstance(url, str) or not 0 < len(url) <= _MAX_URL_CHARACTERS:
        return ""
    if _NOT_IN_URLS.search(url):
        return ""
    try:
        parts = urlsplit(url)
        fit = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
        _ = parts.port
    except ValueError:
        return ""
    return url if fit else ""


def search_text(text: str, field: str = "song") -> str:
    """Clean a search text.

    Raises:
        BadRequestError: It is empty, or longer than 300 characters.
    """
    if len(text) <= 4 * MAX_SEARCH_CHARACTERS:
        text = cleaned(text)
    if len(text) > MAX_SEARCH_CHARACTERS:
        raise bad_request(
            f"{field}: too long (got {len(text)} characters, allowed {MAX_SEARCH_CHARACTERS})",
            field,
        )
    if not text:
        raise bad_request(f"{field}: empty. Send the name of a song", field)
    return text


def folded(text: str) -> str:
    """Normalize case and compatibility forms, so equal texts compare equal."""
    return unicodedata.normalize("NFKC", text).casefold()


def songs_of(
    entries: object, read: Callable[[dict[str, Any]], Song | None], limit: int
) -> list[Song]:
    """Return the first songs of a list; skips invalid entries.

    Args:
        entries: Expected to be a list of objects.

    Raises:
        ProviderError: It is not a list, or contains no valid song.
    """
    if not isinstance(entries, list):
        raise not_the_interface()
    found: list[Song] = []
    for entry in entries:
        one = read(entry) if isinstance(entry, dict) else None
        if one is not None:
            found.append(one)
            if len(found) == limit:
                break
    if entries and not found:
        raise not_the_interface()
    return found


def not_the_interface() -> ProviderError:
    """Create the error for an answer in an unexpected format."""
    return ProviderError(ErrorKind.FAILED, "its response is invalid")
