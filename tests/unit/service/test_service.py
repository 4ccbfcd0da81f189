from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from polymux import errors
from polymux.errors import (
    BadRequestError,
    ConflictError,
    InternalServerError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    UnprocessableEntityError,
)
from polymux.service.errors import engine_failed, status_error, storage_full
from polymux.service.routes import Route, Routes
from polymux.service.service import Service
from polymux.service.store import Store
from support.services import ALICE, BOB, Scripted, chat_of, on_a_loop, running, work_of

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.service.job_table import Job
    from polymux.service.model import OperationRequest


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.001)


@on_a_loop
async def test_a_job_from_begin_to_end(tmp_path: Path) -> None:
    backend = Scripted()
    async with running(tmp_path / "s", backend) as service:
        job, new = await service.submit(work_of())
        assert new
        job = await service.jobs.wait(job)
        assert job.status == "succeeded"
        name = job.output["response"]["file"]
        file = await service.store.run(service.store.media.find, name)
        assert file is not None
        assert (file.job, file.owner, file.content_type) == (job.id, "alice", "audio/mpeg")
        assert service.store.media.path_of(file).read_bytes() == backend.data
        assert job.logs == ["begun"]
        assert job.metrics.keys() == {"frames", "predict_time", "total_time"}
        assert (job.version, job.progress) == ("v1", 1.0)
        assert job.input["url"] == "http://files.example/a.wav"
        assert await service.jobs.find(job.id, "alice") == job
        with pytest.raises(NotFoundError):
            await service.jobs.find(job.id, "bob")


@on_a_loop
async def test_a_failure_is_kept_and_a_defect_is_not_shown(tmp_path: Path) -> None:
    backend = Scripted()
    async with running(tmp_path / "s", backend) as service:
        backend.failure = engine_failed("the engine broke")
        job = await service.jobs.wait((await service.submit(work_of()))[0])
        assert (job.status, job.error and job.error["code"]) == ("failed", "engine_failed")
        backend.failure = ZeroDivisionError("secret-canary")
        job = await service.jobs.wait((await service.submit(work_of()))[0])
        assert job.error is not None
        assert job.error["code"] == "internal"
        assert "canary" not in str(job)
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


@on_a_loop
async def test_cancelling_reaches_the_backend_at_once(tmp_path: Path) -> None:
    backend = Scripted()
    backend.gate.clear()
    async with running(tmp_path / "s", backend) as service:
        first, _ = await service.submit(work_of())
        second, _ = await service.submit(work_of())
        await until(lambda: backend.began)
        queued = await service.jobs.cancel(second)
        assert (queued.status, queued.started_at) == ("canceled", None)
        assert service.places["scripted"].waiting == 0
        job = await service.jobs.cancel(first)
        assert job.status == "canceled"
        assert backend.ended == ["cancelled"]
        assert service.places["scripted"].running == 0
        assert (await service.jobs.cancel(first)).status == "canceled"


@on_a_loop
async def test_the_queue_is_bounded_and_in_order(tmp_path: Path) -> None:
    backend = Scripted()
    backend.gate.clear()
    async with running(tmp_path / "s", backend, queue=2) as service:
        jobs = [
            (await service.submit(work_of(fields=[("url", f"http://e.example/{i}")])))[0]
            for i in range(1)
        ]
        await until(lambda: backend.began)
        for i in (1, 2):
            fields = [("url", f"http://e.example/{i}")]
            jobs.append((await service.submit(work_of(fields=fields)))[0])
            await until(lambda i=i: service.places["scripted"].waiting == i)
        with pytest.raises(OverloadedError, match=r"scripted\b.*\b2\b") as refused:
            await service.submit(work_of())
        assert int(refused.value.headers["retry-after"]) >= 1
        with pytest.raises(OverloadedError):
            await service.call(chat_of())
        backend.gate.set()
        for job in jobs:
            assert (await service.jobs.wait(job)).status == "succeeded"
        order = [one.values["url"][-1] for one in backend.began]
        assert order == ["0", "1", "2"]


@on_a_loop
async def test_api_keys_take_turns(tmp_path: Path) -> None:
    """A key that fills its part of the queue leaves room and the next turn to another one."""
    backend = Scripted()
    backend.gate.clear()
    async with running(tmp_path / "s", backend, queue=8) as service:
        place = service.places["scripted"]
        greedy = [asyncio.create_task(service.call(chat_of(ALICE))) for _ in range(7)]
        await until(lambda: place.waiting == 6)
        for refused in (service.call(chat_of(ALICE)), service.submit(work_of())):
            with pytest.raises(OverloadedError):
                await refused
        polite = [asyncio.create_task(service.call(chat_of(BOB))) for _ in range(2)]
        await until(lambda: place.waiting == 8)
        with pytest.raises(OverloadedError):
            await service.call(chat_of(BOB))
        backend.gate.set()
        await asyncio.gather(*greedy, *polite)
        owners = [one.caller.id for one in backend.began]
        assert owners == ["alice", "alice", "bob", "alice", "bob", *["alice"] * 4]
        assert (place.running, place.waiting) == (0, 0)


@on_a_loop
async def test_cancelling_one_leaves_others_alone(tmp_path: Path) -> None:
    """Hundreds of calls share two slots: none is lost, and no slot stays taken."""
    backend = Scripted(max_concurrency=2)
    async with running(tmp_path / "s", backend, queue=2000) as service:
        tasks = [asyncio.create_task(service.call(chat_of())) for _ in range(300)]
        for number, task in enumerate(tasks):
            if number % 3 == 0:
                task.cancel()
            if number % 7 == 0:
                await asyncio.sleep(0)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(not isinstance(one, Exception) for one in done)
        place = service.places["scripted"]
        assert (place.running, place.waiting) == (0, 0)


@on_a_loop
async def test_routes_choose_by_model(tmp_path: Path) -> None:
    small, large = Scripted("small"), Scripted("large")
    routes = {"chat": [Route("small", ("s",)), Route("large", ("l",))]}
    async with running(tmp_path / "s", small, large, routes=routes) as service:
        await service.call(chat_of(model="l"))
        assert (len(small.began), len(large.began)) == (0, 1)
        with pytest.raises(BadRequestError, match="'s', 'l'") as refused:
            await service.call(chat_of(model="x"))
        assert refused.value.code == "model_not_found"
        await service.call(chat_of(model="default"))
        assert len(small.began) == 1


def test_two_backends_of_one_name(tmp_path: Path) -> None:
    """Otherwise the second would silently do the work of the first."""
    store = Store(tmp_path / "s", max_bytes=1 << 20, life_s=60)
    with closing(store), pytest.raises(InvalidRequestError, match="twin"):
        Service([Scripted("twin"), Scripted("two"), Scripted("twin")], store)


@on_a_loop
async def test_the_same_request_under_a_key_is_one_job(tmp_path: Path) -> None:
    backend = Scripted()
    backend.gate.clear()
    async with running(tmp_path / "s", backend) as service:
        first, new = await service.submit(work_of(), "k")
        again, second_new = await service.submit(work_of(), "k")
        assert (again.id, new, second_new) == (first.id, True, False)
        with pytest.raises(ConflictError):
            await service.submit(work_of(fields=[("url", "http://files.example/b")]), "k")
        other, _ = await service.submit(work_of(caller=BOB), "k")
        assert other.id != first.id
        await service.jobs.release(first)
        anew, new = await service.submit(work_of(), "k")
        assert new
        assert anew.id != first.id
        backend.gate.set()
        assert (await service.jobs.wait(anew)).status == "succeeded"
        same, new = await service.submit(work_of(), "k")
        assert (same.id, new) == (anew.id, False)


@on_a_loop
async def test_what_a_request_has_made_is_found_whatever_became_of_its_engine(
    tmp_path: Path,
) -> None:
    backend = Scripted()
    async with running(tmp_path / "s", backend) as service:
        first, _ = await service.submit(work_of(), "k")
        first = await service.jobs.wait(first)
        backend.refuse = refusing  # type: ignore[method-assign]
        with pytest.raises(OverloadedError):
            await service.submit(work_of())
        again, new = await service.submit(work_of(), "k")
        assert (again.id, again.output, new) == (first.id, first.output, False)
        service.drain()
        again, new = await service.submit(work_of(), "k")
        assert (again.id, new) == (first.id, False)


def refusing(_: OperationRequest) -> None:
    raise status_error(OverloadedError, "left alone", code="engine_broken", retry_after_s=9)


@on_a_loop
async def test_freellm_goes_on_to_the_next_and_chat_does_not(tmp_path: Path) -> None:
    first, second = Scripted("first"), Scripted("second")
    first.failure = engine_failed("broken")
    second.chunks = [{"response": "x"}]
    async with running(tmp_path / "s", first, second) as service:
        await service.call(chat_of(operation="free_chat"))
        assert len(second.began) == 1
        with pytest.raises(InternalServerError):
            await service.call(chat_of())
        stream = service.stream(chat_of(operation="free_chat", stream=True))
        assert [one async for one in stream] == second.chunks
        first.chunks = [{"response": "half"}]
        stream = service.stream(chat_of(operation="free_chat", stream=True))
        assert await anext(stream) == {"response": "half"}
        with pytest.raises(InternalServerError):
            await anext(stream)


@on_a_loop
async def test_a_caller_s_mistake_is_no_reason_for_the_next(tmp_path: Path) -> None:
    first, second = Scripted("first"), Scripted("second")
    first.failure = status_error(UnprocessableEntityError, "no", code="undecodable")
    async with running(tmp_path / "s", first, second) as service:
        with pytest.raises(UnprocessableEntityError):
            await service.call(chat_of(operation="free_chat"))
        assert second.began == []


@on_a_loop
async def test_a_store_that_is_full_fails_the_job(tmp_path: Path) -> None:
    backend = Scripted()
    backend.data = b"x" * 2000
    async with running(tmp_path / "s", backend, max_bytes=2000) as service:
        job = await service.jobs.wait((await service.submit(work_of()))[0])
        assert job.error is not None
        assert (job.error["status"], job.error["code"]) == (507, "storage_full")
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


@on_a_loop
async def test_closing_cancels_what_runs_and_refuses_what_comes(tmp_path: Path) -> None:
    backend = Scripted()
    backend.gate.clear()
    async with running(tmp_path / "s", backend) as service:
        job, _ = await service.submit(work_of(caller=ALICE))
        await until(lambda: backend.began)
        service.drain()
        with pytest.raises(OverloadedError) as refused:
            await service.submit(work_of())
        assert refused.value.code == "draining"
        ended = asyncio.create_task(service.jobs.wait(job))
        await asyncio.sleep(0)
    done = await ended
    assert (done.status, done.error and done.error["code"]) == ("failed", "interrupted")


@on_a_loop
async def test_who_is_cancelled_by_the_server_s_end_has_not_given_up(tmp_path: Path) -> None:
    """Requests are canceled before the service closes, while one runs and one waits."""
    backend = Scripted()
    backend.gate.clear()
    async with running(tmp_path / "s", backend) as service:
        jobs = [(await service.submit(work_of(), key))[0] for key in ("a", "b")]
        await until(lambda: backend.began)
        service.jobs.interrupt()
        await asyncio.gather(*map(service.jobs.release, jobs))
        for one in jobs:
            ended = await service.jobs.find(one.id, None)
            assert (ended.status, ended.error and ended.error["code"]) == (
                "failed", "interrupted",
            )  # fmt: skip
            assert ended.idempotency is None


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("how", ["cancel", "close"])
@on_a_loop
async def test_no_end_is_reported_before_it_is_stored(
    tmp_path: Path, how: str, fails: bool
) -> None:
    """An end is reported only after it is stored, however often the job is canceled meanwhile."""
    free = threading.Event()
    async with running(tmp_path / "s", Scripted()) as service:
        update = service.store.jobs.update

        def slow(job: Job) -> None:
            if job.ended:
                written.append(job.status)
                free.wait(10)
                if fails and len(written) == 1:
                    raise storage_full("the disk of the job database is full")
            update(job)

        written: list[str] = []
        service.store.jobs.update = slow  # type: ignore[method-assign]
        job, _ = await service.submit(work_of())
        waiting = asyncio.create_task(service.jobs.wait(job))
        await until(lambda: written)
        ending = [asyncio.create_task(service.jobs.cancel(job)) for _ in range(2)]
        if how == "close":
            ending.append(asyncio.create_task(service.jobs.close()))
        await asyncio.sleep(0.1)
        assert not any(one.done() for one in (waiting, *ending))
        assert not (await service.jobs.find(job.id, None)).ended
        free.set()
        await asyncio.gather(*ending)
        done = await waiting
        if fails:
            assert (done.status, done.output) == ("failed", None)
            assert (done.error and done.error["code"]) == "storage_full"
            await service.jobs.write_again()
        else:
            assert done.status == "succeeded"
        found = await service.store.run(service.store.jobs.find, job.id)
        assert found is not None
        assert (found.status, found.output) == (done.status, done.output)


@on_a_loop
async def test_freellm_has_its_own_deadline(tmp_path: Path) -> None:
    """The deadline covers the whole answer, over all models."""
    backend = Scripted()
    backend.gate.clear()
    async with running(tmp_path / "s", backend) as service:
        began = asyncio.get_running_loop().time()
        with pytest.raises(InternalServerError) as late:
            await service.call(chat_of(operation="free_chat", timeout=1))
        assert (late.value.status, late.value.code) == (504, "upstream_timeout")
        backend.chunks = [{"response": "x"}]
        stream = service.stream(chat_of(operation="free_chat", timeout=1, stream=True))
        assert await anext(stream) == {"response": "x"}
        with pytest.raises(InternalServerError):
            await anext(stream)
        assert asyncio.get_running_loop().time() - began < 4
        assert service.places["scripted"].running == 0


@pytest.mark.parametrize("streamed", [False, True])
@on_a_loop
async def test_the_deadline_of_freellm_holds_in_the_queue(tmp_path: Path, streamed: bool) -> None:
    """The deadline covers the whole answer, including the time in the queue."""
    backend, starts = Scripted(), list[int]()
    backend.gate.clear()
    backend.chunks = [{"response": "x"}]

    async def started() -> None:
        starts.append(1)

    async with running(tmp_path / "s", backend) as service:
        busy = asyncio.create_task(service.call(chat_of()))
        await until(lambda: backend.began)
        work = chat_of(operation="free_chat", timeout=1, stream=streamed)
        began = asyncio.get_running_loop().time()
        stream = service.stream(work, started=started)
        with pytest.raises(InternalServerError) as late:
            await (anext(stream) if streamed else service.call(work))
        assert (late.value.status, late.value.code) == (504, "upstream_timeout")
        assert 0.9 < asyncio.get_running_loop().time() - began < 4
        assert (service.places["scripted"].waiting, starts) == (0, [])
        backend.gate.set()
        await busy
        assert len(backend.began) == 1
        assert service.places["scripted"].running == 0


def backend(name: str, models: tuple[str, ...] | None = None) -> Scripted:
    made = Scripted(name)
    made.models = models
    return made


def led(routes: Routes, model: str) -> list[str]:
    work = chat_of()
    return [one.name for one in routes.backends_of(replace(work, model=model))]


def test_what_names_a_model_gets_it() -> None:
    """Backends that list the model come first, then those for any model, in their order."""
    names = {"any": None, "fast": ("fast",), "other": None, "both": ("fast", "slow")}
    routes = Routes([backend(name, models) for name, models in names.items()])
    assert led(routes, "fast") == ["fast", "both", "any", "other"]
    assert led(routes, "slow") == ["both", "any", "other"]
    assert led(routes, "unheard") == ["any", "other"]
    assert led(routes, "default") == list(names)
    work = replace(chat_of(), model="slow")
    behind = routes.behind(routes.backends["both"], work)
    assert [one.name for one in behind] == ["any", "other"]


def test_an_operation_that_the_configuration_leads_nowhere() -> None:
    """The message does not suggest installing an engine that exists."""
    routes = Routes([backend("any")], {"free_chat": []})
    for ask in (
        lambda: routes.check_operation("free_chat"),
        lambda: routes.backends_of(replace(chat_of(), operation="free_chat")),
    ):
        with pytest.raises(errors.NoBackendError, match=r"routes\.free_chat\b") as caught:
            ask()
        assert "install" not in str(caught.value)


def test_a_model_that_nothing_has() -> None:
    routes = Routes([backend("fast", ("fast",))])
    with pytest.raises(errors.BadRequestError, match="slow"):
        led(routes, "slow")
