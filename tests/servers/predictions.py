"""Jobs of the reference server: they take time, and can be awaited, listed and canceled."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from servers.replies import RefusedError, Reply, event, json_reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from servers.records import Request

PATH = "/api/v1/predictions"
PAGE = 100
ENDED = ("succeeded", "failed", "canceled")


class Job:
    """One job. It starts after a tenth of its duration, and ends when the duration is over."""

    def __init__(
        self,
        number: int,
        model: str,
        given: dict[str, Any],
        output: Any,
        takes_s: float,
        error: str,
    ) -> None:
        self.id = hashlib.sha256(str(number).encode()).hexdigest()[:26]
        self.model = model
        self.input = given
        self.takes_s = takes_s
        self._output = output
        self._error = error
        self._created = time.monotonic()
        self._created_at = time.time()
        self._canceled = asyncio.Event()

    @property
    def status(self) -> str:
        if self._canceled.is_set():
            return "canceled"
        age = time.monotonic() - self._created
        if age >= self.takes_s:
            return "failed" if self._error else "succeeded"
        return "processing" if age >= self.takes_s / 10 else "starting"

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    def cancel(self) -> None:
        if not self.ended:
            self._canceled.set()

    async def wait(self, at_most_s: float | None) -> None:
        """Wait for its end, or for the given time."""
        left = self.takes_s - (time.monotonic() - self._created)
        if at_most_s is not None:
            left = min(left, at_most_s)
        if left > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._canceled.wait(), left)

    def value(self, base_url: str) -> dict[str, Any]:
        """The current state as JSON; members without a value are absent."""
        status = self.status
        address = f"{base_url}{PATH}/{self.id}"
        value: dict[str, Any] = {
            "id": self.id,
            "status": status,
            "model": self.model,
            "version": hashlib.sha256(self.model.encode()).hexdigest(),
            "input": self.input,
            "source": "api",
            "logs": "" if status == "starting" else "Using seed: 5\n",
            "created_at": self._time(0),
            "urls": {
                "get": address, "cancel": f"{address}/cancel", "stream": f"{address}/events",
            },
        }  # fmt: skip
        if status != "starting":
            value["started_at"] = self._time(self.takes_s / 10)
        if status in ENDED:
            value["completed_at"] = self._time(self.takes_s)
            value["metrics"] = {"predict_time": 0.9 * self.takes_s, "total_time": self.takes_s}
        if status == "succeeded":
            value["output"] = self._output
        if status == "failed":
            value["error"] = self._error
        return value

    def _time(self, after_s: float) -> str:
        moment = datetime.fromtimestamp(self._created_at + after_s, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Predictions:
    """All jobs, and the routes to them. The settings apply to later jobs."""

    def __init__(self) -> None:
        #: The duration of a job in seconds.
        self.job_s = 0.0
        #: The status of an answer with an unfinished job.
        self.unfinished_status = 202
        #: The reason why jobs fail; empty if they succeed.
        self.failure = ""
        self.jobs: dict[str, Job] = {}
        self.base_url = ""
        self._numbers = itertools.count(1)

    def create(self, model: str, given: dict[str, Any], output: Any) -> Job:
        job = Job(next(self._numbers), model, given, output, self.job_s, self.failure)
        self.jobs[job.id] = job
        return job

    async def created(self, job: Job, request: Request) -> Reply:
        """The answer to a request that made a job. `Prefer` (RFC 7240) sets how long it waits."""
        preference = request.header("prefer") or ""
        if preference != "respond-async":
            await job.wait(float(preference.partition("=")[2] or 60) if preference else None)
        headers = [("Preference-Applied", preference)] if preference else []
        status = 200 if job.ended else self.unfinished_status
        if status != 200:
            headers.append(("Location", f"{self.base_url}{PATH}/{job.id}"))
        return json_reply(job.value(self.base_url), status, headers)

    def answer(self, request: Request) -> Reply:
        words = request.path.removeprefix(PATH).strip("/").split("/")
        match request.method, words:
            case "GET", [""]:
                return self._list(request)
            case "GET", [name]:
                return json_reply(self._job(name).value(self.base_url))
            case "POST", [name, "cancel"]:
                self._job(name).cancel()
                return json_reply(self._job(name).value(self.base_url))
            case "GET", [name, "events"]:
                headers = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")]
                return Reply(200, headers=headers, events=self._events(self._job(name)))
        raise RefusedError(404, "there is nothing here")

    def _job(self, name: str) -> Job:
        if name not in self.jobs:
            raise RefusedError(404, "there is no such prediction")
        return self.jobs[name]

    def _list(self, request: Request) -> Reply:
        """Newest first, in pages; `next` is the URL of the next page, or null."""
        query = {key: values[0] for key, values in parse_qs(request.query).items()}
        start, limit = int(query.get("cursor", "0")), int(query.get("limit", str(PAGE)))
        jobs = list(self.jobs.values())[::-1]
        page = [job.value(self.base_url) for job in jobs[start : start + limit]]
        after = None
        if start + limit < len(jobs):
            after = f"{self.base_url}{PATH}?limit={limit}&cursor={start + limit}"
        return json_reply({"results": page, "previous": None, "next": after})

    async def _events(self, job: Job) -> AsyncIterator[bytes]:
        """The prediction now, and after every change of its status, until it ends."""
        yield b": a comment first\n\n"
        seen = ""
        while seen not in ENDED:
            if job.status != seen:
                seen = job.status
                yield event(job.value(self.base_url))
            else:
                await job.wait(max(job.takes_s / 50, 0.001))
