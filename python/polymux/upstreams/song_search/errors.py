"""Errors of external song services, and their API errors (`contracts.md` 0.5 and G.1)."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING

from polymux import errors
from polymux.service.errors import bad_request, status_error

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorKind(IntEnum):
    """The kind of a failure; of several failures, clients receive the lowest kind."""

    LIMITED = 1
    FAILED = 2
    LATE = 3
    REFUSED = 4


class ProviderError(Exception):
    """An external service did not answer.

    Attributes:
        kind: The kind of failure.
        reason: For people; contains neither addresses nor the service's own text.
        retry_after_s: When to retry in seconds; None if unknown.
        counts: Whether the failure causes a pause of the service.
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


def combined_error(troubles: Mapping[str, ProviderError], who: str) -> errors.APIStatusError:
    """Combine the failures of all services to an API error.

    Args:
        troubles: Service to its failure; at least one.
    """
    kind = min(one.kind for one in troubles.values())
    reasons = "; ".join(f"{name}: {one.reason}" for name, one in troubles.items())
    if kind is ErrorKind.REFUSED:
        return bad_request(f"song: rejected by every {who} ({reasons})", "song")
    message = f"no {who} responded: {reasons}"
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
