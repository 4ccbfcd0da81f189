"""Songs out of strangers' answers: of bounded length, without control characters, http(s) alone."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from polymux.service.errors import bad_request
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Longest text that is looked for; the catalogues know no song by more.
MAX_SEARCH_CHARACTERS = 300
_MAX_PART_CHARACTERS = 250
_MAX_URL_CHARACTERS = 2000
#: Marks that turn the direction of a line, and the byte order mark: invisible, and never needed.
_UNSEEN = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_CONTROL_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
_NOT_IN_URLS = re.compile(r'[^!-~]|["<>\\^`{|}]')


class Song(NamedTuple):
    """A song that was found.

    Attributes:
        name: "Title - Artist", or the title alone (`contracts.md` G.2.8).
        url: Its page; empty where none is known.
        image_url: Its cover, about 400 pixels wide; empty where none is known.
    """

    name: str
    url: str
    image_url: str

    def as_answer(self) -> dict[str, str]:
        """As the interface has it (`contracts.md` 3)."""
        return {"song_name": self.name, "songid_url": self.url, "song_image": self.image_url}


def song(title: object, artist: object, url: object, image_url: object) -> Song | None:
    """A song of what a catalogue says; None where that has no title.

    Args:
        title: What should be a text.
        artist: The same; the title alone is the name where it is none.
        url: What should be an address; left out where it is none of http or https.
        image_url: The same.
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
    r"""A text on one line: without control characters, with single blanks.

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
    """What is looked for, as the catalogues are asked for it.

    Raises:
        BadRequestError: Nothing is left of it, or it is longer than 300 characters.
    """
    if len(text) <= 4 * MAX_SEARCH_CHARACTERS:
        text = cleaned(text)
    if len(text) > MAX_SEARCH_CHARACTERS:
        raise bad_request(f"{field}: at most {MAX_SEARCH_CHARACTERS} characters", field)
    if not text:
        raise bad_request(f"{field}: must say what to look for", field)
    return text


def folded(text: str) -> str:
    """The same for all ways to write a text: without capitals and forms of letters."""
    return unicodedata.normalize("NFKC", text).casefold()


def songs_of(
    entries: object, read: Callable[[dict[str, Any]], Song | None], limit: int
) -> list[Song]:
    """The first songs of a list; entries that are none are left out.

    Args:
        entries: What should be a list of objects.

    Raises:
        ProviderError: It is no list, or nothing in it is a song.
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
    """An answer that nobody has described."""
    return ProviderError(ErrorKind.FAILED, "its answer is not what its interface has")
