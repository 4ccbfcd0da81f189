"""A prediction at Replicate, from its creation to its end."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.upstreams.error_mapping import cleaned, failed
from polymux.upstreams.replicate.client import FinalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polymux.service.model import ProgressSink
    from polymux.upstreams.replicate.client import ReplicateServer

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.25, 5.0
_GROWTH = 1.5
#: Maximum number of consecutive failures; rate limits do not count.
_MAX_FAILURES = 8
#: How long to wait for the id of a prediction if the client has already disconnected.
_GRACE_S = 0.7
_MAX_LINES = 500
_MAX_PERCENT = 100
_ENDS = {
    "succeeded": "",
    "failed": "its prediction failed",
    "canceled": "its prediction was canceled there",
    "aborted": "its prediction was aborted before it started",
}
_PERCENT = re.compile(r"(?<![\d.])(\d{1,3})(?:\.\d+)?\s?%", re.ASCII)


async def predicted(
    server: ReplicateServer,
    operation: str,
    path: str,
    value: Mapping[str, Any],
    sink: ProgressSink,
    fields: Sequence[str] = (),
) -> dict[str, Any]:
    """Create a prediction and wait until it succeeds; cancels it if this task is canceled.

    The request that creates it is sent once and returns at once, so its id is known early enough to
    cancel it.

    Args:
        path: Path for creating predictions of the model.

    Raises:
        APIStatusError: It was rejected, ended without success, or cannot be watched.
    """
    begun = await _begun(server, operation, path, value, fields)
    name = server.id_of(begun)
    relay = _Relay(server.name, sink)
    try:
        ended = await _ended(server, operation, name, begun, relay)
    except BaseException:
        await server.cancel(name)
        raise
    reason = _ENDS[ended["status"]]
    if reason:
        words = ended.get("error")
        detail = f": {cleaned(words)}" if isinstance(words, str) and words.strip() else ""
        raise failed(server.name, f"{reason}{detail}")
    return ended


async def _begun(
    server: ReplicateServer,
    operation: str,
    path: str,
    value: Mapping[str, Any],
    fields: Sequence[str],
) -> Any:
    asking = asyncio.ensure_future(server.ask_json(operation, "POST", path, value, fields=fields))
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        await server.lasting(_given_up(server, asking))
        raise


async def _given_up(server: ReplicateServer, asking: asyncio.Future[Any]) -> None:
    """Cancel a prediction that may exist already; only the pending response contains its id."""
    await asyncio.wait({asking}, timeout=_GRACE_S)
    asking.cancel()
    answered = await asyncio.gather(asking, return_exceptions=True)
    with suppress(errors.PolymuxError):
        await server.cancel(server.id_of(answered[0]))


async def _ended(
    server: ReplicateServer, operation: str, name: str, value: dict[str, Any], relay: _Relay
) -> dict[str, Any]:
    """Poll the prediction until its end, with increasing pauses."""
    pause_s, failures = _FIRST_PAUSE_S, 0
    while not relay.is_end(value):
        await asyncio.sleep(pause_s)
        pause_s = min(_MAX_PAUSE_S, pause_s * _GROWTH)
        try:
            value = await server.read(operation, f"/predictions/{name}")
            failures = 0
        except (errors.RateLimitError, errors.OverloadedError) as error:
            await asyncio.sleep(float(error.headers["retry-after"]))
        except FinalError:
            raise
        except errors.InternalServerError:
            failures += 1
            if failures >= _MAX_FAILURES:
                raise
    return value


class _Relay:
    """Forwards progress and logs of a remote prediction."""

    def __init__(self, name: str, sink: ProgressSink) -> None:
        self._name = name
        self._sink = sink
        self._characters = 0
        self._lines = 0

    def is_end(self, value: dict[str, Any]) -> bool:
        """Forward a prediction's progress and logs; return whether it has ended.

        Raises:
            InternalServerError: It is not a prediction.
        """
        status, logs = value.get("status"), value.get("logs")
        if not isinstance(status, str):
            raise failed(self._name, "its response is not a prediction")
        ended = status in _ENDS
        if isinstance(logs, str):
            self._log(logs, whole=ended)
        return ended

    def _log(self, logs: str, *, whole: bool) -> None:
        """Forward new lines; waits for the end of an incomplete line."""
        new = logs[self._characters :]
        complete = new if whole else new[: new.rfind("\n") + 1]
        self._characters += len(complete)
        for line in complete.splitlines():
            if line.strip() and self._lines < _MAX_LINES:
                self._lines += 1
                self._sink.log(cleaned(line))
        # Progress bars are redrawn within one line.
        last = new.rstrip().replace("\r", "\n").rpartition("\n")[2]
        found = _PERCENT.findall(last)
        if found and int(found[-1]) <= _MAX_PERCENT:
            self._sink.report(int(found[-1]) / _MAX_PERCENT)
