from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import ConflictError, InternalServerError, NotFoundError
from polymux.service import database
from polymux.service.errors import status_error
from polymux.service.job_table import Job, new_id
from polymux.service.store import Store
from support.services import Scripted, on_a_loop, running, work_of

if TYPE_CHECKING:
    from pathlib import Path

HOUR_S = 3600.0
BEGAN = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> float:
        return self.now


def job_of(clock: Clock, key: str, digest: str, *, owner: str = "alice", **changes: Any) -> Job:
    plain: dict[str, Any] = {
        "id": new_id(), "owner": owner, "operation": "transcribe", "model": "m", "version": "v",
        "input": {}, "created_at": clock(), "idempotency": (key, digest),
    }  # fmt: skip
    return Job(**(plain | changes))


def check_is_known(store: Store, of: Job) -> None:
    """Repeating the request returns 404 `gone`; another request with its key is a conflict."""
    assert of.idempotency is not None
    key, digest = of.idempotency
    assert store.jobs.find(of.id) is None
    with pytest.raises(NotFoundError) as gone:
        store.jobs.of_key(of.owner, key, digest)
    assert (gone.value.status, gone.value.code, gone.value.param) == (
        404, "gone", "Idempotency-Key",
    )  # fmt: skip
    with pytest.raises(ConflictError):
        store.jobs.of_key(of.owner, key, digest + "-")


@pytest.mark.parametrize("swept", [False, True])
def test_a_key_is_known_for_a_day(tmp_path: Path, swept: bool) -> None:
    """This also holds if jobs are kept longer."""
    clock = Clock()
    with closing(Store(tmp_path / "s", life_s=1e9, clock=clock)) as store:
        first = store.jobs.add(job_of(clock, "k", "h", status="succeeded", completed_at=clock()))
        clock.now += 24 * HOUR_S
        assert store.sweep() == 0
        assert store.jobs.add(job_of(clock, "k", "h")).id == first.id
        clock.now += 1
        if swept:
            assert store.sweep() == 1
        late = job_of(clock, "k", "other")
        assert store.jobs.add(late).id == late.id
        found = store.jobs.find(first.id)
        assert found is not None
        assert found.idempotency is None


def test_a_key_outlives_its_job(tmp_path: Path) -> None:
    """One job is deleted, the other expires after a minute; the keys also survive a restart."""
    clock = Clock()
    store = Store(tmp_path / "s", life_s=60, clock=clock)
    ended = {"status": "succeeded", "completed_at": clock()}
    deleted = store.jobs.add(job_of(clock, "deleted", "h", **ended))
    expired = store.jobs.add(job_of(clock, "expired", "h", **ended))
    store.forget(deleted.id)
    check_is_known(store, deleted)
    clock.now += 61
    assert store.sweep() == 1
    store.close()
    with closing(Store(tmp_path / "s", life_s=60, clock=clock)) as store:
        clock.now += 23 * HOUR_S
        assert store.sweep() == 0
        check_is_known(store, deleted)
        check_is_known(store, expired)
        clock.now += HOUR_S
        assert store.sweep() == 2
        again = job_of(clock, "deleted", "h")
        assert store.jobs.add(again).id == again.id


def test_a_store_of_before_keeps_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to version 3 the keys were columns of the jobs table."""
    clock = Clock()
    columns = "id, owner, operation, status, record, created_at, completed_at"
    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", database.MIGRATIONS[:3])
        (tmp_path / "s").mkdir()
        with closing(database.Database(tmp_path / "s" / "catalogue.db")) as made:
            record = '{"model": "m", "version": "v", "input": {}}'
            for name, key in (("a", "'k', 'h'"), ("b", "NULL, 'h'"), ("c", "NULL, NULL")):
                made.execute(
                    f"INSERT INTO jobs ({columns}, idempotency_key, idempotency_hash) VALUES "
                    f"('{name}', 'alice', 'transcribe', 'succeeded', '{record}', {BEGAN}, {BEGAN}, "
                    f"{key})"
                )
    with closing(Store(tmp_path / "s", clock=clock)) as store:
        jobs, _ = store.jobs.newest("alice", before=None, most=10)
        assert [(one.id, one.idempotency) for one in jobs] == [
            ("c", None), ("b", None), ("a", ("k", "h")),
        ]  # fmt: skip
        assert store.jobs.add(job_of(clock, "k", "h")).id == "a"
        store.forget("a")
        check_is_known(store, job_of(clock, "k", "h", id="a"))
    (backup,) = (tmp_path / "s").glob("catalogue.db.version-3.*.backup")
    with closing(sqlite3.connect(backup)) as connection:
        kept = connection.execute("SELECT id, idempotency_key FROM jobs ORDER BY id").fetchall()
    assert kept == [("a", "k"), ("b", None), ("c", None)]


@pytest.mark.parametrize("failure", [429, 503, 507, 500])
@on_a_loop
async def test_what_failed_for_now_may_be_asked_again_though_it_was_deleted(
    tmp_path: Path, failure: int
) -> None:
    """429, 503 and 507 say nothing about the request and leave no key; other failures do."""
    backend = Scripted()
    backend.failure = status_error(InternalServerError, "no", status=failure)
    async with running(tmp_path / "s", backend) as service:
        job, _ = await service.submit(work_of(), "k")
        ended = await service.jobs.wait(job)
        assert ended.error is not None
        assert ended.error["status"] == failure
        await service.jobs.remove(ended)
        if failure in (429, 503, 507):
            _, new = await service.submit(work_of(), "k")
            assert new
        else:
            with pytest.raises(NotFoundError):
                await service.submit(work_of(), "k")


@pytest.mark.parametrize("looked", ["before the end", "behind it"])
@on_a_loop
async def test_a_job_whose_callers_left_leaves_no_key_with_its_end(
    tmp_path: Path, looked: str
) -> None:
    """One write ends the job and drops the key. The same request at that moment is a new job."""
    backend = Scripted()
    backend.gate.clear()
    async with running(tmp_path / "s", backend) as service:
        store = service.store
        job, _ = await service.submit(work_of(), "k")
        assert job.idempotency is not None
        while not backend.began:
            await asyncio.sleep(0.001)
        update, free, freed = store.jobs.update, threading.Event(), []

        def slow(ended: Job) -> None:
            free.wait(10)
            update(ended)
            freed.append(store.jobs.of_key("alice", "k", digest) is None)

        store.jobs.update = slow  # type: ignore[method-assign]
        digest = job.idempotency[1]
        if looked == "before the end":
            busy = asyncio.create_task(store.run(free.wait, 10))
            retry = asyncio.create_task(service.submit(work_of(), "k"))
            await asyncio.sleep(0.1)
            leaving = asyncio.create_task(service.jobs.release(job))
        else:
            leaving = asyncio.create_task(service.jobs.release(job))
            await asyncio.sleep(0.1)
            busy = retry = asyncio.create_task(service.submit(work_of(), "k"))
        await asyncio.sleep(0.1)
        free.set()
        await asyncio.gather(leaving, busy)
        anew, new = await retry
        assert freed[0]
        assert new
        assert anew.id != job.id
        store.jobs.update = update  # type: ignore[method-assign]
        backend.gate.set()
        assert (await service.jobs.wait(anew)).status == "succeeded"
        assert (await service.jobs.find(job.id, None)).status == "canceled"
