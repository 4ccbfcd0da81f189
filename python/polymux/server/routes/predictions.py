"""Jobs over HTTP: list, get, watch, cancel and delete."""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from polymux.server.routes.endpoint import Endpoint
from polymux.server.routes.sse import event, send_events
from polymux.service import job_table
from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job

PATH = "/api/v1/predictions"
_ON_A_PAGE = 100
_CURSOR = re.compile(r"[1-9]\d{0,17}", re.ASCII)


def link(state: ServerState, job: Job, name: str) -> str:
    """Create a link to a file of a job that is valid as long as the file."""
    store = state.service.store
    now = store.clock()
    kept_until = (job.completed_at or now) + state.settings.store.retention_s
    end = min(kept_until, now + store.links.max_lifetime_s)
    path = f"/media/{name}"
    return f"{state.settings.base_url}{path}?{store.links.query(path, end)}"


def described_job(state: ServerState, job: Job) -> dict[str, Any]:
    base = f"{state.settings.base_url}{PATH}/{job.id}"
    urls = {"get": base, "cancel": f"{base}/cancel", "stream": f"{base}/events"}
    return job_table.prediction(job, lambda name: link(state, job, name), urls)


def _in_list(state: ServerState, job: Job) -> dict[str, Any]:
    """Describe a job for a list. A running job has its whole input."""
    return described_job(state, job) | {"input": job_table.brief(job.input)}


class PredictionList(Endpoint):
    """``GET /api/v1/predictions``."""

    name = "predictions"
    kind = "api"
    query = ("cursor",)

    async def handle(self, asked: RequestContext) -> Any:
        cursor = cursor_of(asked.scope["query_string"], _CURSOR)
        before = int(cursor[0]) if cursor else None
        service = self.state.service
        jobs, following = await service.store.run(
            lambda: service.store.jobs.newest(
                asked.access.caller.id, before=before, most=_ON_A_PAGE
            )
        )
        return {
            "previous": None,
            "next": None if following is None else page_url(self.state, PATH, str(following)),
            "results": [_in_list(self.state, service.jobs.current(one)) for one in jobs],
        }


async def job_named(state: ServerState, asked: RequestContext) -> Job:
    """Return the job in the path.

    Raises:
        NotFoundError: The job is unknown or belongs to another API key.
    """
    name = asked.scope["path_params"]["id"]
    return await state.service.jobs.find(name, asked.access.caller.id)


class PredictionItem(Endpoint):
    """``GET`` and ``DELETE /api/v1/predictions/{id}``."""

    name = "predictions"
    kind = "api"
    methods = ("GET", "DELETE")

    async def handle(self, asked: RequestContext) -> Any:
        job = await job_named(self.state, asked)
        if asked.scope["method"] != "DELETE":
            return described_job(self.state, job)
        await self.state.service.jobs.remove(job)
        await asked.send_body(204, b"")
        return None


class PredictionCancel(Endpoint):
    """``POST /api/v1/predictions/{id}/cancel``."""

    name = "predictions"
    kind = "api"
    methods = ("POST",)

    async def handle(self, asked: RequestContext) -> Any:
        job = await self.state.service.jobs.cancel(await job_named(self.state, asked))
        return described_job(self.state, job)


class PredictionEvents(Endpoint):
    """``GET /api/v1/predictions/{id}/events``."""

    name = "predictions"
    kind = "api"

    async def handle(self, asked: RequestContext) -> None:
        """Stream the job now, after changes, and at its end."""
        events = self._events(await job_named(self.state, asked))
        await send_events(self.state, events, asked, failure="error")

    async def _events(self, job: Job) -> AsyncGenerator[bytes]:
        seen = None
        async for current in self.state.service.jobs.events(job):
            prediction = described_job(self.state, current)
            if current.preview is not None and current.preview != seen and not current.ended:
                seen = prediction["preview"] = current.preview
            yield event(prediction, "prediction")


def page_url(state: ServerState, path: str, cursor: str) -> str:
    text = base64.urlsafe_b64encode(cursor.encode()).decode().rstrip("=")
    return f"{state.settings.base_url}{path}?cursor={text}"


def cursor_of(query: bytes, form: re.Pattern[str]) -> re.Match[str] | None:
    """Parse the cursor in the query of a `page_url`; None for the first page."""
    text = dict(parse_qsl(query.decode("latin-1"))).get("cursor")
    if text is None:
        return None
    with suppress(ValueError, binascii.Error):
        if found := form.fullmatch(base64.urlsafe_b64decode(f"{text}==").decode("ascii")):
            return found
    raise bad_request(
        "invalid cursor. Use the URL of the next or previous page in a response", "cursor"
    )
