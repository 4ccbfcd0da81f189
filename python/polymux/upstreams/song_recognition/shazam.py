"""Client of the recognition service of Shazam's apps, which is not a public API and may change.

The protocol is described in `contracts.md` 10, after the MIT-licensed package shazamio.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song, not_the_interface, song
from polymux.upstreams.song_search.source import USER_AGENT, ProviderClient, member, with_query

if TYPE_CHECKING:
    from polymux.upstreams.client import GuardedWay

_RATE_HZ = 16_000
_DEVICE = "web"
_QUERY = {
    "sync": "true",
    "webv3": "true",
    "sampling": "true",
    "connected": "",
    "shazamapiversion": "v3",
    "sharehub": "true",
    "hubv5minorversion": "v5.1",
    "hidelb": "true",
    "video": "v3",
}
_HEADERS = ("X-Shazam-Platform: IPHONE", "X-Shazam-AppVersion: 14.1.0")


class Signature(NamedTuple):
    """The fingerprint of a recording.

    Attributes:
        uri: A ``data:`` URL.
        sample_count: Number of analyzed samples at 16 kHz.
        peak_count: Number of spectral peaks; 0 in silence.
    """

    uri: str
    sample_count: int
    peak_count: int

    @property
    def duration_s(self) -> float:
        return self.sample_count / _RATE_HZ


class ShazamRecognition:
    """Looks up signatures at Shazam.

    Args:
        country: Two-letter country code.
        language: Language of answers, such as ``"en-US"``.
        way: SSRF-checking proxy for the requests.
    """

    name = "shazam"
    #: Five per minute: users reported rate limits above that.
    rate = Rate(burst=2, per_s=0.05)

    def __init__(
        self, base_url: str, timeout_s: float, country: str, language: str, way: GuardedWay
    ) -> None:
        nobody: frozenset[int] = frozenset()
        self._client = ProviderClient(base_url, timeout_s, USER_AGENT, nobody, nobody, way)
        self._place = f"/discovery/v5/{language}/{country.upper()}/{_DEVICE}/-/tag"

    async def recognize(self, signature: Signature) -> Song | None:
        """Return the song, or None if unknown.

        Raises:
            ProviderError: Shazam did not respond, or its response is invalid.
        """
        # Random ids per request: requests cannot be linked to each other.
        ids = f"{uuid.uuid4()}/{uuid.uuid4()}".upper()
        path = with_query(f"{self._place}/{ids}", _QUERY)
        body = json.dumps(_asked(signature)).encode()
        return _song(await self._client.ask(path, body, _HEADERS))

    def close(self) -> None:
        self._client.close()


def _asked(signature: Signature) -> dict[str, Any]:
    # Fixed values: the service must not learn the user's location or time zone.
    return {
        "timezone": "Europe/London",
        "signature": {"uri": signature.uri, "samplems": round(signature.duration_s * 1000)},
        "timestamp": time.time_ns() // 1_000_000,
        "context": {},
        "geolocation": {},
    }


def _song(answer: Any) -> Song | None:
    track = member(answer, "track")
    if track is None:
        if not isinstance(member(answer, "matches"), list):
            raise not_the_interface()
        return None
    url = member(track, "share", "href") or member(track, "url")
    image = member(track, "share", "image") or member(track, "images", "coverart")
    found = song(member(track, "title"), member(track, "subtitle"), url, image)
    if found is None:
        raise not_the_interface()
    return found
