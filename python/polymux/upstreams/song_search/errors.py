"""Why a catalogue gave no songs, and what callers are told of it (`contracts.md` 0.5 and G.1)."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING

from polymux import errors
from polymux.service.errors import bad_request, status_error

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorKind(IntEnum):
    """Why; callers are told the first of these that there was."""

    LIMITED = 1
    FAILED = 2
    LATE = 3
    REFUSED = 4


class ProviderError(Exception):
    """A catalogue that gave no answer.

    Attributes:
        kind: Of what kind.
        reason: In words, without addresses and without a word of the catalogue's own.
        retry_after_s: After how long it can be asked again; None where nobody knows.
        counts: Whether the catalogue is to be left alone for it.
    """

    def __init__(
        self,
        kind: ErrorKind,
        reason: str,
        retry_after_s: float | None = None,
        *,
        counts: bool = True,
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.counts = counts


def told(troubles: Mapping[str, ProviderError], who: str) -> errors.APIStatusError:
    """What a caller is told when no server has answered.

    Args:
        troubles: Server to what was the trouble; one or more.
    """
    kind = min(one.kind for one in troubles.values())
    reasons = "; ".join(f"{name}: {one.reason}" for name, one in troubles.items())
    if kind is ErrorKind.REFUSED:
        return bad_request(f"song: no {who} takes this text ({reasons})", "song")
    message = f"no {who} has answered: {reasons}"
    waits = [
        one.retry_after_s
        for one in troubles.values()
        if one.kind is kind and one.retry_after_s is not None
    ]
    wait_s = math.ceil(min(waits)) if waits else None
    if kind is ErrorKind.LIMITED:
        return status_error(errors.RateLimitError, message, retry_after_s=wait_s or 1.0)
    late = kind is ErrorKind.LATE
    return status_error(
        errors.InternalServerError,
        message,
        code="upstream_timeout" if late else "upstream_failed",
        status=504 if late else 502,
        retry_after_s=wait_s,
    )
