"""``/replicate/v1/predictions/{id}/stream``: an output while it comes, as server-sent events."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from polymux.server.compat.replicate.prediction_view import prediction_of
from polymux.server.compat.replicate.predictions import PredictionEndpoint
from polymux.server.http.responses import to_json
from polymux.server.routes.sse import send_events
from polymux.service.job_table import CANCELED, FAILED
from polymux.upstreams.model_names import CHATS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from polymux.server.routes.endpoint import RequestContext
    from polymux.service.job_table import Job

#: What ends a line of an event (WHATWG HTML, 9.2.6).
_LINE_END = re.compile(r"\r\n|\r|\n")


def event(name: str, number: int, text: str) -> bytes:
    r"""One event of a prediction's stream.

    Args:
        name: ``"output"``, ``"logs"``, ``"error"`` or ``"done"``.
        number: Of the event, from 1 on: readers leave out events that have none.
        text: What it says.

    Example:
        >>> event("output", 1, "two\nlines")
        b'event: output\nid: 1:0\ndata: two\ndata: lines\n\n'
    """
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
    return f"event: {name}\nid: {number}:0\n{lines}\n".encode("utf-8", "replace")


class PredictionStream(PredictionEndpoint):
    """``GET predictions/{id}/stream``."""

    async def handle(self, asked: RequestContext) -> None:
        """Output and logs as they come, and ``done``."""
        await send_events(self.state, self._events(await self.job(asked)), asked, failure="error")

    async def _events(self, job: Job) -> AsyncGenerator[bytes]:
        number = said = logged = 0
        async for now in self.state.service.jobs.events(job, 0):
            told = [("logs", line) for line in now.logs[logged:]]
            logged = len(now.logs)
            if now.operation in CHATS and isinstance(now.output, list):
                told += [("output", piece) for piece in now.output[said:]]
                said = len(now.output)
            if now.ended:
                told += self._ends(now)
            for name, text in told:
                number += 1
                yield event(name, number, text)

    def _ends(self, job: Job) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        if job.operation not in CHATS:
            output = prediction_of(self.state, job)["output"]
            outputs = output if isinstance(output, list) else [output]
            found += [("output", _text(one)) for one in outputs if one is not None]
        reasons = {FAILED: "error", CANCELED: "canceled"}
        if job.status == FAILED:
            message = "it failed" if job.error is None else job.error["message"]
            found.append(("error", json.dumps({"detail": message})))
        reason = {"reason": reasons[job.status]} if job.status in reasons else {}
        return [*found, ("done", json.dumps(reason))]


def _text(output: Any) -> str:
    return output if isinstance(output, str) else to_json(output).decode()
