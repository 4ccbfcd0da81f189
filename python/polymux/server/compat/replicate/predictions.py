"""``/replicate/v1/predictions``: create, list, get, cancel and stream predictions."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux._util.text import printable, shortened, shown
from polymux.server.compat.replicate.errors import BASE, ReplicateEndpoint, invalid_input
from polymux.server.compat.replicate.models import named, of_job, of_version
from polymux.server.http.responses import to_json
from polymux.server.routes.operations import (
    idempotency_key_of,
    job_fields,
    preferences,
    unless_gone,
)
from polymux.server.routes.predictions import cursor_of, job_named, link, page_url
from polymux.server.routes.sse import send_events
from polymux.service import job_table
from polymux.service.errors import draining
from polymux.service.job_table import CANCELED, FAILED, STARTING
from polymux.service.model import OperationRequest
from polymux.upstreams.model_names import CHATS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from polymux.server.compat.replicate.inputs import Inputs
    from polymux.server.compat.replicate.models import Model
    from polymux.server.compat.replicate.webhooks import Webhooks
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job

#: Events of webhooks.
EVENTS = ("start", "output", "logs", "completed")
_MEMBERS = (
    "version",
    "input",
    "stream",
    "webhook",
    "webhook_completed",
    "webhook_events_filter",
)
_MAX_WEBHOOK_URL_CHARACTERS = 2048
_DEFAULT_WAIT_S = 60.0
_SPAN = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s?)?", re.ASCII)
_MIN_LIFETIME_S = 5


class Creation(NamedTuple):
    """A parsed request for a prediction.

    Attributes:
        version: As in the request; None if missing.
        input: As in the request.
        stream: Whether the client will stream the output.
        webhook: URL for events; None if missing.
        events: Requested events, a subset of `EVENTS`.
    """

    version: Any
    input: dict[str, Any]
    stream: bool
    webhook: str | None
    events: tuple[str, ...]


def creation(body: Mapping[str, Any]) -> Creation:
    """Parse the body of a request for a prediction.

    Example:
        >>> creation({"version": "riffusion/riffusion", "input": {"prompt_a": "waves"}}).events
        ('start', 'output', 'logs', 'completed')
    """
    given = {name: value for name, value in body.items() if value is not None}
    for name in given.keys() - set(_MEMBERS):
        words = shortened(printable(name))
        raise invalid_input(
            f"{words}: unknown field. Put the model's fields inside the object 'input'", words
        )
    input_ = given.get("input", {})
    if not isinstance(input_, dict):
        raise invalid_input("input: must be a JSON object", "input")
    stream = given.get("stream", False)
    if not isinstance(stream, bool):
        raise invalid_input("stream: must be true or false", "stream")
    webhook, events = given.get("webhook"), given.get("webhook_events_filter", list(EVENTS))
    if webhook is None and "webhook_completed" in given:
        webhook, events = given["webhook_completed"], ["completed"]
    if webhook is not None and not (
        isinstance(webhook, str) and len(webhook) <= _MAX_WEBHOOK_URL_CHARACTERS
    ):
        raise invalid_input(
            f"webhook: must be an https URL of at most {_MAX_WEBHOOK_URL_CHARACTERS} characters",
            "webhook",
        )
    if not isinstance(events, list) or any(one not in EVENTS for one in events):
        raise invalid_input(
            f"webhook_events_filter: must be an array with any of: {', '.join(EVENTS)}",
            "webhook_events_filter",
        )
    ordered = tuple(one for one in EVENTS if one in events)
    return Creation(given.get("version"), input_, stream, webhook, ordered)


def wait_s(prefer: str, max_s: float) -> float | None:
    """Return the wait time in ``Prefer: wait`` (RFC 7240), or None.

    Args:
        prefer: The header field, all its lines joined by commas.
        max_s: Maximum wait time in seconds.

    Example:
        >>> wait_s("wait", 60), wait_s("wait=5", 60), wait_s("wait=500", 60)
        (60, 5.0, 60)
        >>> wait_s("respond-async", 60), wait_s("no-wait", 60), wait_s("wait=soon", 60)
        (None, None, None)
    """
    wait = preferences(prefer).get("wait")
    if wait is None or not (wait == "" or (wait.isascii() and wait.isdigit())):
        return None
    return min(max_s, float(wait or _DEFAULT_WAIT_S))


def span_s(cancel_after: str) -> float:
    """Return the lifetime of a prediction in ``Cancel-After``, in seconds.

    Args:
        cancel_after: The header field, such as ``"90s"``, ``"1m"``, ``"1h30m"``.

    Example:
        >>> span_s("1m30s"), span_s("45"), span_s("2h")
        (90.0, 45.0, 7200.0)
    """
    found = _SPAN.fullmatch(cancel_after.strip().lower())
    hours, minutes, seconds = found.groups() if found is not None else (None, None, None)
    total = 3600 * int(hours or 0) + 60 * int(minutes or 0) + int(seconds or 0)
    if total < _MIN_LIFETIME_S:
        raise invalid_input(
            f"Cancel-After: invalid (got {shown(cancel_after)}, allowed at least "
            f"{_MIN_LIFETIME_S} s, such as 90s, 1m or 1h30m)",
            "Cancel-After",
        )
    return float(total)


def prediction_of(state: ServerState, job: Job, *, unfinished: bool = False) -> dict[str, Any]:
    """Return a job as a prediction object for JSON.

    Args:
        state: The server's state.
        job: The job, created through any API.
        unfinished: The client waited without success. Client packages treat every status except
            ``starting`` as the end in this case, so use that. Default: False.
    """
    asked = job.asked or {}
    plain = job_table.prediction(job, lambda name: link(state, job, name))
    model = of_job(job) if not asked else None
    address = f"{state.settings.base_url}{BASE}/predictions/{job.id}"
    urls = {"get": address, "cancel": f"{address}/cancel"}
    if asked.get("stream") or (model is not None and model.iterates):
        urls["stream"] = f"{address}/stream"
    described = {
        "id": job.id,
        "model": model.full_name if model is not None else asked["model"],
        "version": model.version if model is not None else asked["version"],
        "input": job.input,
        "output": plain.get("output"),
        "logs": plain["logs"],
        "error": plain.get("error"),
        "status": STARTING if unfinished else job.status,
        "source": "api",
        "data_removed": False,
        "created_at": plain["created_at"],
        "started_at": plain.get("started_at"),
        "completed_at": plain.get("completed_at"),
        "metrics": plain["metrics"],
        "urls": urls,
    }
    hooks = ("webhook", "webhook_events_filter")
    return described | {name: asked[name] for name in hooks if name in asked}


_ON_A_PAGE = 100
_CURSOR = re.compile(r"(older|newer) (\d{1,18})", re.ASCII)


class CreatingEndpoint(ReplicateEndpoint):
    """Base of endpoints that create predictions."""

    name = "predictions"
    refuses_unknown = True
    begins_work = True

    def __init__(self, state: ServerState, inputs: Inputs, webhooks: Webhooks) -> None:
        super().__init__(state)
        self._inputs = inputs
        self._webhooks = webhooks
        self._ending: set[asyncio.Future[Job]] = set()

    async def create(self, asked: RequestContext, model: Model | None = None) -> None:
        """Create a prediction, which continues without its client.

        Args:
            asked: The request.
            model: The model in the path. Default: that of the body's version.
        """
        access = asked.access
        if self.state.stopping.is_set():
            raise draining()
        body = await self.read_object(asked, self.state.settings.limits.chat_bytes)
        wanted = creation(body)
        if model is None:
            model = of_version(self.state.service, wanted.version)
            self.require(access, model.operation)
        elif wanted.version is not None:
            raise invalid_input(
                "version: not allowed, because the URL already names the model. Omit this field",
                "version",
            )
        life_s = None
        if b"cancel-after" in access.headers:
            life_s = span_s(access.headers[b"cancel-after"].decode("latin-1"))
        kept: dict[str, Any] = {
            "model": model.full_name,
            "version": model.version,
            "stream": wanted.stream or model.iterates,
        }
        if wanted.webhook is not None:
            await self._webhooks.check(wanted.webhook)
            kept |= {"webhook": wanted.webhook, "webhook_events_filter": list(wanted.events)}
        with ExitStack() as files:
            found = await self._inputs.read(model, wanted.input, access, files)
            kept["input"] = found.record
            work = replace(
                OperationRequest.of(found.request, access.caller, access.request_id),
                asked=kept,
                prepare=self._inputs.preparing(model, found.addresses),
            )
            job = await self._begun(work, asked, files, life_s)
        await self._answer(asked, job)

    async def _begun(
        self, work: OperationRequest, asked: RequestContext, files: ExitStack, life_s: float | None
    ) -> Job:
        service = self.state.service
        try:
            job, new = await service.submit(work, idempotency_key_of(asked.access))
        except errors.BadRequestError as error:
            if error.code != "model_not_found":
                raise
            # In this API the chat model is a field of the input.
            raise invalid_input(str(error), "model") from None
        if new:
            service.jobs.keep(job)
            # The job owns the files now, because it continues after this response.
            service.jobs.when_over(job, files.pop_all().close)
            self._webhooks.watch(job)
            if life_s is not None:
                self._end_after(job, life_s)
        return job

    def _end_after(self, job: Job, life_s: float) -> None:
        jobs = self.state.service.jobs

        def end() -> None:
            ending = asyncio.ensure_future(jobs.cancel(job))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

        timer = asyncio.get_running_loop().call_later(life_s, end)
        jobs.when_over(job, timer.cancel)

    async def _answer(self, asked: RequestContext, job: Job) -> None:
        """Respond with 201; waits for the end first if requested."""
        prefer = asked.access.headers.get(b"prefer", b"").decode("latin-1")
        max_s = wait_s(prefer, self.state.settings.limits.wait_s)
        if max_s is not None:
            job = await unless_gone(self.state.service.jobs.wait(job, max_s), asked.receive)
        unfinished = max_s is not None and not job.ended
        body = prediction_of(self.state, job, unfinished=unfinished)
        location = (b"location", body["urls"]["get"].encode())
        await asked.send_json(201, body, [location, *job_fields(job)])


class Predictions(CreatingEndpoint):
    """``GET`` and ``POST predictions``."""

    methods = ("GET", "POST")
    query = ("cursor",)

    async def handle(self, asked: RequestContext) -> Any:
        if asked.scope["method"] == "POST":
            await self.create(asked)
            return None
        self.require(asked.access, self.name)
        cursor = cursor_of(asked.scope["query_string"], _CURSOR)
        way, number = (cursor[1], int(cursor[2])) if cursor else ("older", None)
        service = self.state.service
        page, newer, older = await service.store.run(
            self._page, asked.access.caller.id, way, number
        )
        found = [prediction_of(self.state, service.jobs.current(one)) for one in page]
        listed = [one | {"input": job_table.brief(one["input"])} for one in found]
        return {"previous": newer, "next": older, "results": listed}

    def _page(
        self, owner: str, way: str, number: int | None
    ) -> tuple[list[Job], str | None, str | None]:
        """Return jobs and the URLs of the next and previous page. Runs on the database thread."""
        jobs = self.state.service.store.jobs
        if way == "newer":
            page = jobs.newer(owner, after=number or 0, most=_ON_A_PAGE)
            following = jobs.place_of(page[-1]) if page else None
        else:
            page, following = jobs.newest(owner, before=number, most=_ON_A_PAGE)
        before = jobs.place_of(page[0]) if page else 0
        more = before and jobs.newer(owner, after=before, most=1)
        newer = self._address("newer", before) if more else None
        return page, newer, None if following is None else self._address("older", following)

    def _address(self, way: str, number: int) -> str:
        return page_url(self.state, f"{BASE}/predictions", f"{way} {number}")


class ModelPredictions(CreatingEndpoint):
    """``POST models/{owner}/{name}/predictions``."""

    methods = ("POST",)

    async def handle(self, asked: RequestContext) -> None:
        """Create a prediction; checks the scope before the body is read."""
        names = asked.scope["path_params"]
        model = named(self.state.service, names["owner"], names["name"])
        self.require(asked.access, model.operation)
        await self.create(asked, model)


class PredictionEndpoint(ReplicateEndpoint):
    """Base of ``predictions/{id}`` and its subpaths."""

    name = "predictions"
    every_key = False


class PredictionItem(PredictionEndpoint):
    """``GET predictions/{id}``."""

    async def handle(self, asked: RequestContext) -> Any:
        return prediction_of(self.state, await job_named(self.state, asked))


class PredictionCancel(PredictionEndpoint):
    """``POST predictions/{id}/cancel``."""

    methods = ("POST",)

    async def handle(self, asked: RequestContext) -> Any:
        """Cancel the prediction and wait for its end; an ended one stays unchanged."""
        job = await self.state.service.jobs.cancel(await job_named(self.state, asked))
        return prediction_of(self.state, job)


#: Line ends of events (WHATWG HTML, 9.2.6).
_LINE_END = re.compile(r"\r\n|\r|\n")


def event(name: str, number: int, text: str) -> bytes:
    r"""Encode one event of a prediction's stream.

    Args:
        name: ``"output"``, ``"logs"``, ``"error"`` or ``"done"``.
        number: Number of the event, starting at 1: clients skip events without an id.
        text: The data.

    Example:
        >>> event("output", 1, "two\nlines")
        b'event: output\nid: 1:0\ndata: two\ndata: lines\n\n'
    """
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
    return f"event: {name}\nid: {number}:0\n{lines}\n".encode("utf-8", "replace")


class PredictionStream(PredictionEndpoint):
    """``GET predictions/{id}/stream``."""

    async def handle(self, asked: RequestContext) -> None:
        await send_events(
            self.state, self._events(await job_named(self.state, asked)), asked, failure="error"
        )

    async def _events(self, job: Job) -> AsyncGenerator[bytes]:
        number = sent = logged = 0
        async for current in self.state.service.jobs.events(job, 0):
            events = [("logs", line) for line in current.logs[logged:]]
            logged = len(current.logs)
            if current.operation in CHATS and isinstance(current.output, list):
                events += [("output", piece) for piece in current.output[sent:]]
                sent = len(current.output)
            if current.ended:
                events += self._ends(current)
            for name, text in events:
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
            message = "the prediction failed" if job.error is None else job.error["message"]
            found.append(("error", json.dumps({"detail": message})))
        reason = {"reason": reasons[job.status]} if job.status in reasons else {}
        return [*found, ("done", json.dumps(reason))]


def _text(output: Any) -> str:
    return output if isinstance(output, str) else to_json(output).decode()
