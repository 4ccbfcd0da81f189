"""The recognition of songs by others as a backend of the service: `identify_song`."""

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

#: What settings and logs call it.
NAME = "song_recognition"
#: Most of them wait for a turn; how often others are asked is bounded elsewhere.
_SLOTS = 64
#: Of less nobody can tell the song (`contracts.md` G.2.8).
_MIN_SIGNAL_S = 1.0


class Recogniser(ProviderScheduler[ShazamRecognition]):
    """Recognises songs by the servers of others; answers are kept by a digest of the signature."""

    async def recognise(self, signature: Signature) -> Song | None:
        """The song of a recording; None where nobody knows one.

        Raises:
            APIStatusError: As `ProviderScheduler.first`.
        """

        async def ask(source: ShazamRecognition) -> Sequence[Song]:
            song = await source.recognise(signature)
            return () if song is None else (song,)

        digest = hashlib.sha256(signature.uri.encode()).hexdigest()
        found = await self.first(digest, 1, ask, "recogniser of songs")
        return found.songs[0] if found.songs else None


class SongRecognitionBackend(Backend):
    """Answers `identify_song` from the servers of others.

    Args:
        media: What opens the recording: a backend of the media engine.
        recogniser: What asks them. Default: made of the settings.
    """

    is_upstream = True

    def __init__(
        self,
        settings: SongRecognitionSettings,
        media: Backend,
        recogniser: Recogniser | None = None,
    ) -> None:
        self.name = NAME
        self.operations = frozenset({"identify_song"})
        self.max_concurrency = _SLOTS
        self._media = media
        self._way = GuardedWay(policy_of(settings))
        self._recogniser = recogniser or recogniser_of(settings, self._way)

    def refuse(self, work: OperationRequest) -> None:
        refuse_addresses(work, "file")

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Has the recording's signature made, and asks whose it is.

        Raises:
            NoMatchError: Nobody knows a song like this.
            APIStatusError: Nobody has answered.
        """
        signature = await self.signature(work)
        try:
            found = await self.recognise(signature)
        except errors.APIStatusError as error:
            _log.warning("identify_song %s: %s", work.request_id, error)
            raise
        _log.info("identify_song %s: %s", work.request_id, "a song" if found else "no song")
        sink.log("a song was recognised" if found else "no song was recognised")
        if found is None:
            raise errors.NoMatchError("no song is like this recording")
        return OperationResult(found.as_answer())

    async def signature(self, work: OperationRequest) -> Signature:
        """What the recording of `work` is recognised by.

        Raises:
            PolymuxError: It cannot be decoded.
        """
        step = work.step(SONG_SIGNATURE, {"file": work.values["file"]})
        made = (await self._media.run(step, unseen_sink())).output
        return Signature(made["uri"], made["sample_count"], made["peak_count"])

    async def recognise(self, signature: Signature) -> Song | None:
        """The song of a recording; None where nobody knows one.

        Of silence, and of less than a second, nobody is asked.

        Raises:
            RateLimitError: Nobody has answered, and one can be asked again later.
            InternalServerError: Nobody has answered (502 or 504).
        """
        if not signature.peak_count or signature.duration_s < _MIN_SIGNAL_S:
            return None
        return await self._recogniser.recognise(signature)

    def health(self) -> Health:
        return Health("ready", self._recogniser.resting())

    async def close(self) -> None:
        """Closes all connections, and gives up the media engine, which may have ended already."""
        self._recogniser.close()
        await self._way.close()
        await self._media.close()


def policy_of(settings: SongRecognitionSettings) -> FetchPolicy:
    """What may be reached: the public Internet, and the address that the operator has given."""
    if settings.shazam_url == SHAZAM_URL:
        return FetchPolicy()
    return FetchPolicy(allowed_hosts=(host_of(settings.shazam_url),))


def recogniser_of(settings: SongRecognitionSettings, way: GuardedWay) -> Recogniser:
    """What asks the servers that settings name, by a guarded way."""
    cache = SongCache(settings.cache_bytes, settings.cache_s, settings.cache_empty_s)
    shazam = ShazamRecognition(
        settings.shazam_url, settings.provider_s, settings.country, settings.language, way
    )
    known = {shazam.name: shazam}
    return Recogniser([known[name] for name in settings.providers], cache, settings.deadline_s)
