"""Leads the two operations that a page's downloader does to the corpus, by redirects.

Of `decoy_operations`, whose network and service it has. Each redirect at a field itself takes a
process of yt-dlp's, about half a second of a processor; one that leads the lists of parts to which
a page points takes about eight milliseconds, as one process follows them all. What yt-dlp itself
cannot make a request of, such as another scheme, ends its work at a page, too.

Beside other work all of the corpus by one code took 5 to 11 minutes at a field itself, and ten such
runs are the whole; some of it there and all of it by pages took 2 to 3 minutes.
"""

from __future__ import annotations

import asyncio
import collections
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.downloads import proxy
from polymux.fetch.fetcher import ajudged

from support import decoy_network
from support.decoy_network import CODES, Decoys, knocks
from support.decoy_operations import all_of, led_to, network, outcome, serving, tell
from support.url_corpus import PUBLIC, urls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polymux.service.service import Service

#: Of the corpus, one of how many is led to at the field itself where not all are.
EVERY = 15
#: Of a page: lists that it shows, and pages at once.
_SOURCES, _AT_ONCE = 99, 4
#: How often what never came to its redirect is asked for again: beside much work 2 of 990 did not.
_AGAIN = 2

_Place = tuple[int, int]


def run(field: str, code: int | None = None) -> dict[str, Any]:
    """What the child found; fails with its words where the namespaces cannot be made.

    Args:
        field: One of `decoy_operations.PAGES`.
        code: Of the redirects by which all of the corpus is led to at the field itself. Default:
            some of it, by all codes in turn, and what pages show.
    """
    more = [] if code is None else [str(code)]
    with tempfile.TemporaryDirectory() as folder:
        found, said = decoy_network.run(
            __name__, folder, field, *more, timeout_s=590 if code is None else 3600
        )
    return found | {"said": said}


class Refusals:
    """Counts what the guard of the downloaders' way out refuses from now on."""

    def __init__(self) -> None:
        self.urls: collections.Counter[str] = collections.Counter()
        proxy.ajudged = self._counted  # type: ignore[attr-defined]

    async def _counted(self, url: str, **options: Any) -> Any:
        try:
            return await ajudged(url, **options)
        except errors.URLRefusedError:
            self.urls[url] += 1
            raise

    def told(self) -> dict[str, int]:
        """How many requests, and how many addresses, as the downloader writes them."""
        return {"requests": self.urls.total(), "addresses": len(self.urls)}


class Pages:
    """Leads a field to the corpus by what pages show."""

    def __init__(self, service: Service, field: str, decoys: Decoys, corpus: list[str]) -> None:
        self._service = service
        self._field = field
        self._decoys = decoys
        self._locations = " ".join(corpus)
        self._limit = asyncio.Semaphore(_AT_ONCE)
        #: Numbers of what ended a downloader's work.
        self.ended: set[int] = set()
        self.outcomes: dict[str, str] = {}

    async def lead(self, places: list[_Place]) -> None:
        """To all of these codes and numbers."""
        pages = [places[at : at + _SOURCES] for at in range(0, len(places), _SOURCES)]
        await asyncio.gather(*(self._page(one) for one in pages))

    async def _page(self, places: list[_Place]) -> None:
        """One page after the other of what is left, as each ends at what ends a downloader."""
        left = _AGAIN
        async with self._limit:
            while places:
                url = f"http://{PUBLIC}/page/" + ",".join(f"{code}/{n}" for code, n in places)
                said = await outcome(self._service, self._field, url, self._locations)
                self.outcomes[url] = said
                sent = [one for one in places if redirect(one) in self._decoys.redirects]
                if not sent:
                    assert left, f"nobody comes to {redirect(places[0])}: {said}"
                    left -= 1
                    continue
                places = places[places.index(sent[-1]) + 1 :]
                if places:
                    self.ended.add(sent[-1][1])


def redirect(place: _Place) -> str:
    return f"/redirect/{place[0]}/{place[1]}"


def in_turn(numbers: Iterable[int], first: int = 0) -> list[_Place]:
    """Each number with one code, the next number with the next."""
    return [(CODES[(first + at) % len(CODES)], n) for at, n in enumerate(numbers)]


def sampled(field: str, size: int) -> list[str]:
    """Some of the corpus at the field itself; others at the other field."""
    first = 0 if field.startswith("download") else EVERY // 2
    return [f"http://{PUBLIC}{redirect(one)}" for one in in_turn(range(first, size, EVERY))]


async def at_the_field(
    service: Service, field: str, decoys: Decoys, corpus: list[str], code: int | None
) -> dict[str, Any]:
    size = len(corpus)
    places = sampled(field, size) if code is None else led_to(range(size), (code,))
    locations = {one: corpus[int(re.sub(".*/", "", one))] for one in places}
    refusals = Refusals()
    began = time.monotonic()
    codes = await all_of(service, field, places, locations)
    early: dict[str, str] = {}
    for _ in range(_AGAIN):
        sent = {f"http://{PUBLIC}{path}" for path in decoys.redirects}
        missing = [one for one in places if one not in sent]
        early |= {one: codes[one] for one in missing}
        codes |= await all_of(service, field, missing, locations)
    seconds = time.monotonic() - began
    sys.stderr.write(f"{field}: {len(places)} redirects in {seconds:.1f} s\n")
    return {
        "led": codes,
        "early": early,
        "served": sorted(decoys.redirects),
        "refusals": refusals.told(),
    }


async def at_pages(
    service: Service, field: str, decoys: Decoys, corpus: list[str]
) -> dict[str, Any]:
    """All of the corpus by one code each, in turn; then by the others but what ends the work."""
    decoys.redirects.clear()
    refusals = Refusals()
    pages = Pages(service, field, decoys, corpus)
    began = time.monotonic()
    numbers = range(len(corpus))
    for first in range(len(CODES)):
        places = in_turn(numbers, first)
        await pages.lead([one for one in places if one[1] not in pages.ended])
    seconds = time.monotonic() - began
    sys.stderr.write(
        f"{field}: {len(decoys.redirects)} redirects of {len(pages.outcomes)} pages in "
        f"{seconds:.1f} s\n"
    )
    return {
        "outcomes": sorted(set(pages.outcomes.values())),
        "ended": sorted(pages.ended),
        "served": sorted(decoys.redirects),
        "refusals": refusals.told(),
    }


async def asked(
    field: str, code: int | None, folder: Path, decoys: Decoys, corpus: list[str]
) -> dict[str, Any]:
    async with serving(folder / "operations") as service:
        found = {"field": await at_the_field(service, field, decoys, corpus, code)}
        if code is None:
            found["pages"] = await at_pages(service, field, decoys, corpus)
    return found


def main() -> None:
    folder, field, corpus = Path(sys.argv[1]), sys.argv[2], urls()
    code = int(sys.argv[3]) if sys.argv[3:] else None
    decoys = network(folder, corpus)
    knocked = knocks(decoys)
    found = asyncio.run(asked(field, code, folder, decoys, corpus))
    tell(found | {"knocks": knocked, "hits": dict(decoys.hits)})


if __name__ == "__main__":
    main()
