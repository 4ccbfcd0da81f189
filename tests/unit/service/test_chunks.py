from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from polymux import errors
from polymux.service import chunks, database
from polymux.service.model import Caller, Estimate, ProgressSink, Upload
from polymux.service.store import Store
from support.services import Scripted, chat_of, on_a_loop, running, work_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from polymux.service.model import OperationRequest
    from polymux.service.temporary_files import TempFile


def chunk(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


@on_a_loop
async def test_a_chat_that_is_a_job(tmp_path: Path) -> None:
    """The text so far is readable at any time, and stays if the job fails."""
    backend = Scripted()
    backend.chunks = [chunk("Hel"), chunk(""), chunk("lo"), {"usage": {"prompt_tokens": 3}}]
    async with running(tmp_path / "s", backend) as service:
        backend.gate.clear()
        job, _ = await service.submit(chat_of(stream=True))
        async for now in service.jobs.events(job, 0):
            if not now.ended and now.output == ["Hel", "lo"]:
                assert now.status == "processing"
                backend.gate.set()
        assert (now.status, now.output) == ("succeeded", ["Hel", "lo"])
        assert now.metrics["input_token_count"] == 3
        kept = await service.jobs.find(job.id, "alice")
        assert kept.output == ["Hel", "lo"]
        assert service.places["scripted"].running == 0
        backend.failure = errors.NoAudioError("no")
        failed = await service.jobs.wait((await service.submit(chat_of(stream=True)))[0])
        assert (failed.status, failed.output) == ("failed", ["Hel", "lo"])
        backend.failure = None
        backend.gate.clear()
        job, _ = await service.submit(chat_of(stream=True))
        async for now in service.jobs.events(job, 0):
            if now.output == ["Hel", "lo"]:
                break
        assert (await service.jobs.cancel(job)).output == ["Hel", "lo"]
        assert backend.ended == ["closed"] * 3


@on_a_loop
async def test_an_answer_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_MAX_COLLECTED_CHARACTERS", 10)
    backend = Scripted()
    backend.chunks = [chunk("four")] * 1000
    async with running(tmp_path / "s", backend) as service:
        job = await service.jobs.wait((await service.submit(chat_of(stream=True)))[0])
        assert (job.status, job.output) == ("failed", ["four", "four"])
        assert job.error is not None
        assert job.error["code"] == "engine_failed"
        assert backend.ended == ["closed"]


@on_a_loop
async def test_what_comes_before_a_place(tmp_path: Path) -> None:
    """Preparation uses no slot and is always undone. The estimate is checked after it."""
    backend = Scripted(max_concurrency=1)
    steps: list[str] = []
    begun, bringing = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def prepare(
        work: OperationRequest, sink: ProgressSink
    ) -> AsyncIterator[OperationRequest]:
        steps.append("bring")
        begun.set()
        await bringing.wait()
        draft = sink.draft(0)
        draft.path.write_bytes(b"brought")
        try:
            file = Upload(draft.path, "a.wav", "", 7)
            yield replace(work, values={"file": file}, prepare=None)
        finally:
            draft.discard()
            steps.append("gone")

    async with running(tmp_path / "s", backend) as service:
        held, _ = await service.submit(replace(work_of(), prepare=prepare))
        other = await service.jobs.wait((await service.submit(work_of()))[0])
        assert other.status == "succeeded", "the only slot must be free during the preparation"
        bringing.set()
        assert (await service.jobs.wait(held)).status == "succeeded"
        assert backend.began[1].values["file"].file_name == "a.wav"
        assert steps == ["bring", "gone"]
        backend.expected = Estimate(50.0, None, "a script")
        limited = Caller("carol", "Carol", 1.0)
        work = replace(work_of(caller=limited), prepare=prepare)
        refused = await service.jobs.wait((await service.submit(work))[0])
        assert refused.error is not None
        assert refused.error["code"] == "estimate_over_limit"
        assert len(backend.began) == 2
        bringing.clear()
        begun.clear()
        job, _ = await service.submit(replace(work_of(), prepare=prepare))
        await begun.wait()
        await service.jobs.cancel(job)
        assert steps == ["bring", "gone"] * 2 + ["bring"]
        assert service.places["scripted"].reserved.total() == 0


@on_a_loop
async def test_what_a_compatible_api_keeps(tmp_path: Path) -> None:
    """The request of a compatibility API survives a restart and distinguishes two requests."""
    asked = {"input": {"file": "http://files.example/a"}, "model": "a/b"}
    async with running(tmp_path / "s", Scripted()) as service:
        first, _ = await service.submit(replace(work_of(), asked=asked), "k")
        same, new = await service.submit(replace(work_of(), asked=asked), "k")
        assert (same.id, new) == (first.id, False)
        with pytest.raises(errors.ConflictError):
            await service.submit(replace(work_of(), asked={"input": {}}), "k")
        await service.jobs.wait(first)
    async with running(tmp_path / "s", Scripted()) as service:
        kept = await service.jobs.find(first.id, "alice")
        assert (kept.asked or {}) | {"input": kept.input} == asked


def test_a_job_database_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of version 1 have no metadata."""
    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", database.MIGRATIONS[:1])
        (tmp_path / "s").mkdir()
        made = database.Database(tmp_path / "s" / "catalogue.db")
        made.execute(
            "INSERT INTO files VALUES ('a.mp3', '', 'alice', 'x', 1, 'audio/mpeg', 'a', 1, 1e12)"
        )
        made.close()
    (tmp_path / "s" / "media" / "a.").mkdir(parents=True)
    (tmp_path / "s" / "media" / "a." / "a.mp3").write_bytes(b"x")
    store = Store(tmp_path / "s")
    (file,) = store.media.sent_by("alice")
    assert (file.name, file.metadata) == ("a.mp3", "{}")
    assert store.media.sent_by("bob") == []
    store.close()
    connection = sqlite3.connect(tmp_path / "s" / "catalogue.db")
    assert connection.execute("PRAGMA user_version").fetchone() == (len(database.MIGRATIONS),)
    connection.close()


JPEG = b"\xff\xd8\xff\xe0 a picture"


def no_draft(_: int) -> TempFile:
    raise AssertionError


def test_the_last_preview_is_shown_and_reported() -> None:
    changes = []
    sink = ProgressSink(lambda: changes.append(1), no_draft)
    assert sink.preview_url is None
    sink.preview(JPEG, "image/jpeg")
    sink.preview(b"\x89PNG", "image/png")
    assert sink.preview_url == "data:image/png;base64,iVBORw=="
    assert len(changes) == 2
