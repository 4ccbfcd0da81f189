"""What jobs and files take from a store, in total and of the part of an API key."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import InternalServerError
from polymux.service import database
from polymux.service.job_table import Job, new_id
from polymux.service.store import Store
from support.services import ALICE, Scripted, chat_of, on_a_loop, running

if TYPE_CHECKING:
    from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20


def job_of(owner: str, size_bytes: int) -> Job:
    given = {"prompt": "x" * size_bytes}
    return Job(new_id(), owner, "chat", "m", "v", given, 1.0, "succeeded", completed_at=1.0)


def upload(store: Store, owner: str, size_bytes: int) -> Any:
    draft = store.media.draft(size_bytes)
    draft.path.write_bytes(b"x" * size_bytes)
    digest, size_bytes = draft.seal()
    with draft:
        return store.media.adopt(
            draft, job="", owner=owner, sha256=digest, size_bytes=size_bytes,
            content_type="audio/wav", file_name="a",
        )  # fmt: skip


@on_a_loop
async def test_an_input_is_stored_once(tmp_path: Path) -> None:
    """Also that of a canceled Replicate prediction, whose state is written four times."""
    given = {"prompt": "y" * MIB}
    work = replace(chat_of(messages=[{"role": "user", "content": given["prompt"]}]),
                   asked={"model": "a/b", "input": given})  # fmt: skip
    backend = Scripted()
    backend.gate.clear()
    path = tmp_path / "s" / "catalogue.db"
    async with running(tmp_path / "s", backend, max_bytes=20 * MIB) as service:
        before_bytes = path.stat().st_size
        for _ in range(4):
            job, _ = await service.submit(work)
            await service.jobs.cancel(job)
        assert path.stat().st_size - before_bytes < 4 * 1.1 * MIB
        assert 4 * MIB < service.store.usage.total_bytes < 4 * 1.1 * MIB
        found = await service.jobs.find(job.id, "alice")
        listed, _ = await service.store.run(
            lambda: service.store.jobs.newest(ALICE.id, before=None, most=9)
        )
        assert (found.status, found.input) == ("canceled", given)
        assert sum(len(json.dumps(one.input)) for one in listed) < 20 * KIB


def test_jobs_count_for_the_size_of_a_store(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "s", max_bytes=MIB)) as store:
        first = store.jobs.add(job_of("alice", MIB // 2))
        for attempt in (lambda: store.jobs.add(job_of("bob", MIB // 2)),
                        lambda: store.media.draft(MIB // 2)):  # fmt: skip
            with pytest.raises(InternalServerError) as full:
                attempt()
            assert full.value.code == "storage_full"
        store.forget(first.id)
        store.jobs.add(job_of("bob", MIB // 2))
        upload(store, "bob", MIB // 4)
        used_bytes = store.usage.total_bytes
    with closing(Store(tmp_path / "s", max_bytes=MIB)) as store:
        assert store.usage.total_bytes == used_bytes


def test_a_key_has_a_part_of_the_store(tmp_path: Path) -> None:
    """A key that has used its part up leaves the rest to others."""
    with closing(Store(tmp_path / "s", max_bytes=MIB, max_key_bytes=MIB // 2)) as store:
        file = upload(store, "alice", MIB // 4)
        store.jobs.add(job_of("alice", MIB // 5))
        for attempt in (lambda: upload(store, "alice", MIB // 8),
                        lambda: store.jobs.add(job_of("alice", MIB // 8))):  # fmt: skip
            with pytest.raises(InternalServerError) as full:
                attempt()
            assert full.value.code == "storage_full"
        store.jobs.add(job_of("bob", MIB // 4))
        store.media.remove(file)
        store.jobs.add(job_of("alice", MIB // 8))
        assert not list((tmp_path / "s" / "drafts").iterdir())


def test_a_key_has_a_limited_number_of_jobs(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "s", max_key_jobs=2)) as store:
        first, _ = (store.jobs.add(job_of("alice", 1)) for _ in range(2))
        with pytest.raises(InternalServerError):
            store.jobs.add(job_of("alice", 1))
        store.jobs.add(job_of("bob", 1))
        store.forget(first.id)
        store.jobs.add(job_of("alice", 1))


def test_a_store_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until version 4 a record had the whole input. A damaged row hides no other job."""
    given = {"prompt": "z" * 30_000}
    record = {"model": "m", "version": "v", "input": {"messages": []}}
    records = {
        "a": json.dumps(record | {"asked": {"model": "a/b", "input": given}}),
        "b": json.dumps(record),
        "c": "{damaged",
        "d": json.dumps(record | {"unknown": 1}),
    }
    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", database.MIGRATIONS[:4])
        (tmp_path / "s").mkdir()
        with closing(database.Database(tmp_path / "s" / "catalogue.db")) as made:
            for name, text in records.items():
                made.execute(
                    "INSERT INTO jobs (id, owner, operation, status, record, created_at, "
                    "completed_at) VALUES (?, 'alice', 'chat', 'succeeded', ?, 1, 2)",
                    (name, text),
                )
    with closing(Store(tmp_path / "s", life_s=1e12)) as store:
        listed = {one.id: one for one in store.jobs.newest("alice", before=None, most=9)[0]}
        whole = {name: store.jobs.find(name) for name in records}
        assert store.usage.total_bytes >= len(json.dumps(given))
        store.forget(*records)
        assert store.usage.total_bytes == 0
    assert [whole[name].input for name in "ab"] == [given, {"messages": []}]  # type: ignore[union-attr]
    assert listed["a"].asked == {"model": "a/b"}
    assert len(json.dumps(listed["a"].input)) < 10_100
    for name in "cd":
        for one in (whole[name], listed[name]):
            assert one is not None
            assert (one.status, (one.error or {})["status"]) == ("failed", 500)
