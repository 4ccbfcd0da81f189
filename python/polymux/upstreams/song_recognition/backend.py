"""The `identify_song` backend that uses external services."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from polymux import errors
from polymux.config import host_of
from polymux.engines.media.backend import refuse_addresses
from polymux.engines.media.engine import SONG_SIGNATURE
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.backend import Backend, Health
from polymux.service.model import OperationResult, unseen_sink
from polymux.upstreams.client import GuardedWay
from polymux.upstreams.song_recognition.settings import SHAZAM_URL
from polymux.upstreams.song_recognition.shazam import ShazamRecognition, Signature
from polymux.upstreams.song_search.cache import SongCache
from polymux.upstreams.song_search.scheduler import ProviderScheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
    from polymux.upstreams.song_search.songs import Song

_log = logging.getLogger("polymux.song_recognition")

#: Name in settings and logs.
NAME = "song_recognition"
#: Most requests only wait; `ProviderScheduler` limits requests to the services.
_SLOTS = 64
#: Shorter recordings are never recognized (`contracts.md` G.2.8).
_MIN_SIGNAL_S = 1.0


class Recognizer(ProviderScheduler[ShazamRecognition]):
    """Recognizes songs with external services; caches answers by a hash of the signature."""

    async def recognize(self, signature: Signature) -> Song | None:
        """Return the song of a recording, or None if unknown.

        Raises:
            APIStatusError: See `ProviderScheduler.first`.
        """

        async def ask(source: ShazamRecognition) -> Sequence[Song]:
            song = await source.recognize(signature)
            return () if song is None else (song,)

        digest = hashlib.sha256(signature.uri.encode()).hexdigest()
        found = await self.first(digest, 1, ask, "song recognition service")
        return found.songs[0] if found.songs else None


class SongRecognitionBackend(Backend):
    """Runs `identify_song` on external services.

    Args:
        media: Decodes recordings: a backend of the media engine.
        recognizer: Sends the requests. Default: made from the settings.
    """

    is_upstream = True

    def __init__(
        self,
        settings: SongRecognitionSettings,
        media: Backend,
        recognizer: Recognizer | None = None,
    ) -> None:
        self.name = NAME
        self.operations = frozenset({"identify_song"})
        self.max_concurrency = _SLOTS
        self._media = media
        self._way = GuardedWay(policy_of(settings))
        self._recognizer = recognizer or recognizer_of(settings, self._way)

    def refuse(self, work: OperationRequest) -> None:
        refuse_addresses(work, "file")

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Compute the recording's signature and look it up.

        Raises:
            NoMatchError: The song is unknown.
            APIStatusError: No service responded.
        """
        signature = await self.signature(work)
        try:
            found = await self.recognize(signature)
        except errors.APIStatusError as error:
            _log.warning("identify_song %s: %s", work.request_id, error)
            raise
        words = "a song was recognized" if found else "no song was recognized"
        _log.info("identify_song %s: %s", work.request_id, words)
        sink.log(words)
        if found is None:
            raise errors.NoMatchError("no song matches the recording")
        return OperationResult(found.as_answer())

    async def signature(self, work: OperationRequest) -> Signature:
        """Compute the signature of a recording.

        Raises:
            PolymuxError: The recording cannot be decoded.
        """
        step = work.step(SONG_SIGNATURE, {"file": work.values["file"]})
        made = (await self._media.run(step, unseen_sink())).output
        return Signature(made["uri"], made["sample_count"], made["peak_count"])

    async def recognize(self, signature: Signature) -> Song | None:
        """Return the song of a recording, or None if unknown.

        Sends no request for silence or for less than a second.

        Raises:
            RateLimitError: No service responded, but one allows a retry later.
            InternalServerError: No service responded (502 or 504).
        """
        if not signature.peak_count or signature.duration_s < _MIN_SIGNAL_S:
            return None
        return await self._recognizer.recognize(signature)

    def health(self) -> Health:
        return Health("ready", self._recognizer.resting())

    async def close(self) -> None:
        """Close all connections and the media engine, which may already be closed."""
        self._recognizer.close()
        await self._way.close()
        await self._media.close()


def policy_of(settings: SongRecognitionSettings) -> FetchPolicy:
    """Allow the public Internet, and the host that the operator has configured."""
    if settings.shazam_url == SHAZAM_URL:
        return FetchPolicy()
    return FetchPolicy(allowed_hosts=(host_of(settings.shazam_url),))


def recognizer_of(settings: SongRecognitionSettings, way: GuardedWay) -> Recognizer:
    """Create the services named in the settings; requests use the SSRF-checking proxy."""
    cache = SongCache(settings.cache_bytes, settings.cache_s, settings.cache_empty_s)
    shazam = ShazamRecognition(
        settings.shazam_url, settings.provider_s, settings.country, settings.language, way
    )
    known = {shazam.name: shazam}
    return Recognizer([known[name] for name in settings.providers], cache, settings.deadline_s)
