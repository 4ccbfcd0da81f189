"""``/replicate/v1/predictions``: begun, listed, looked at, cancelled."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.server.compat.replicate.errors import BASE, ReplicateEndpoint, invalid_input
from polymux.server.compat.replicate.models import named, of_version
from polymux.server.compat.replicate.prediction_view import prediction_of
from polymux.server.compat.replicate.requests import creation, span_s, wait_s
from polymux.server.routes.operations import idempotency_key_of, unless_gone
from polymux.server.routes.predictions import cursor_of, page_url
from polymux.service.model import OperationRequest

if TYPE_CHECKING:
    from polymux.server.compat.replicate.inputs import Inputs
    from polymux.server.compat.replicate.models import Model
    from polymux.server.compat.replicate.webhooks import Webhooks
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job

_ON_A_PAGE = 100
_CURSOR = re.compile(r"(older|newer) (\d{1,18})", re.ASCII)


class CreatingEndpoint(ReplicateEndpoint):
    """What begins predictions.

    Args:
        state: The server's.
        inputs: Reads what they are made of.
        webhooks: Tells others of them.
    """

    name = "predictions"
    begins_work = True

    def __init__(self, state: ServerState, inputs: Inputs, webhooks: Webhooks) -> None:
        super().__init__(state)
        self._inputs = inputs
        self._webhooks = webhooks
        self._ending: set[asyncio.Future[Job]] = set()

    async def create(self, asked: RequestContext, model: Model | None = None) -> None:
        """Begins one; it goes on without its caller.

        Args:
            asked: The request.
            model: That the address names. Default: the one that the body's version means.
        """
        access = asked.access
        wanted = creation(await self.read_object(asked))
        if model is None:
            model = of_version(self.state.service, wanted.version)
            self.require(access, model.operation)
        elif wanted.version is not None:
            raise invalid_input("version: the address says it already", "version")
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
            kept["input"] = found.told
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
            # It is a member of the input here, as all that is checked.
            raise invalid_input(str(error), "model") from None
        if new:
            service.jobs.keep(job)
            # The files belong to the job now, which goes on when this answer is given.
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
        """201, whatever becomes of it; after its end, where that is wanted and comes in time."""
        prefer = asked.access.headers.get(b"prefer", b"").decode("latin-1")
        max_s = wait_s(prefer, self.state.settings.limits.wait_s)
        if max_s is not None:
            job = await unless_gone(self.state.service.jobs.wait(job, max_s), asked.receive)
        unfinished = max_s is not None and not job.ended
        body = prediction_of(self.state, job, unfinished=unfinished)
        await asked.send_json(201, body, [(b"location", body["urls"]["get"].encode())])


class Predictions(CreatingEndpoint):
    """``GET`` and ``POST predictions``."""

    methods = ("GET", "POST")

    async def handle(self, asked: RequestContext) -> Any:
        """Begins one, or tells a page of the key's, newest first."""
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
        return {"previous": newer, "next": older, "results": found}

    def _page(
        self, owner: str, way: str, number: int | None
    ) -> tuple[list[Job], str | None, str | None]:
        """Jobs, and the addresses of the pages on both sides. On the catalogue's thread."""
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
        """Begins one; who may not is told before the body is read."""
        names = asked.scope["path_params"]
        model = named(self.state.service, names["owner"], names["name"])
        self.require(asked.access, model.operation)
        await self.create(asked, model)


class PredictionEndpoint(ReplicateEndpoint):
    """``predictions/{id}``, and what is beneath it."""

    name = "predictions"
    every_key = False

    async def job(self, asked: RequestContext) -> Job:
        """The job of the address.

        Raises:
            NotFoundError: There is none, or it is another key's.
        """
        name = asked.scope["path_params"]["id"]
        return await self.state.service.jobs.find(name, asked.access.caller.id)


class PredictionItem(PredictionEndpoint):
    """``GET predictions/{id}``."""

    async def handle(self, asked: RequestContext) -> Any:
        return prediction_of(self.state, await self.job(asked))


class PredictionCancel(PredictionEndpoint):
    """``POST predictions/{id}/cancel``."""

    methods = ("POST",)

    async def handle(self, asked: RequestContext) -> Any:
        """It, as it is when it has stopped; one that has ended stays as it is."""
        job = await self.state.service.jobs.cancel(await self.job(asked))
        return prediction_of(self.state, job)
