"""Incomplete result files must not be visible."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from polymux.service.backend import Backend
from polymux.service.model import OperationResult, OutputFile
from support.polymux_server import CONVERT, PolymuxServer, form
from support.server_process import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.service.model import OperationRequest, ProgressSink

PIECE = b"the first half, "


class Half(Backend):
    """Returns two files, one of which does not exist."""

    name = "half"
    operations = frozenset(("convert_to_mp3",))

    def __init__(self, there: int) -> None:
        self._there = there

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        drafts = sink.draft(10), sink.draft(10)
        drafts[self._there].path.write_bytes(PIECE)
        return OperationResult(
            {"response": [OutputFile(one, "audio/mpeg", "a.mp3") for one in drafts]}
        )


class Slow(Backend):
    """Writes half of its file, then waits."""

    def __init__(self) -> None:
        self.name = "slow"
        self.operations = frozenset(("convert_to_mp3",))
        self.gate = asyncio.Event()
        self.drafts: list[Path] = []

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        draft = sink.draft(100)
        draft.path.write_bytes(PIECE)
        self.drafts.append(draft.path)
        await self.gate.wait()
        draft.path.write_bytes(PIECE * 2)
        return OperationResult({"response": OutputFile(draft, "audio/mpeg", "a.mp3")})


@contextmanager
def slow_server(tmp_path: Path) -> Iterator[tuple[PolymuxServer, Slow, str]]:
    """A server with a running job: its backend and the job's path."""
    made: list[Slow] = []

    def make() -> list[Slow]:
        made.append(Slow())
        return made

    with PolymuxServer(tmp_path / "s", make) as server:
        body, headers = form(("file", ("a.wav", b"x")))
        answer = server.ask("POST", CONVERT, body, [*headers, ("Prefer", "respond-async")])
        until(lambda: made[0].drafts)
        yield server, made[0], answer.json()["urls"]["get"].removeprefix(server.url)


def test_a_file_has_no_name_until_it_is_whole(tmp_path: Path) -> None:
    """It is not in the job. Neither a valid link nor its temporary name works (S11)."""
    with slow_server(tmp_path) as (server, backend, job):
        store = server.state.service.store
        assert "output" not in server.ask("GET", job).json()
        assert list((tmp_path / "s" / "media").rglob("*.*")) == []
        (draft,) = backend.drafts
        for name in (draft.name, f"{draft.name}.mp3", f"{draft.name}.bin"):
            for path in (f"/media/{name}", f"/media/drafts/{name}", f"/drafts/{name}"):
                link = f"{path}?{store.links.query(path, store.clock() + 60)}"
                assert server.ask("GET", link, key=None).status == 404
        server.loop.call_soon_threadsafe(backend.gate.set)
        until(lambda: server.ask("GET", job).json()["status"] == "succeeded")
        link = server.ask("GET", job).json()["output"].removeprefix(server.url)
        assert server.ask("GET", link, key=None).body == PIECE * 2
        assert draft.name not in link
        assert not draft.exists()


@pytest.mark.parametrize("there", [0, 1])
def test_a_job_that_failed_has_no_files(tmp_path: Path, there: int) -> None:
    """Complete files of a failed job are deleted, too: no client has received their links."""
    with PolymuxServer(tmp_path / "s", lambda: [Half(there)]) as server:
        body, headers = form(("file", ("a.wav", b"x")))
        answer = server.ask("POST", CONVERT, body, headers)
        assert (answer.status, answer.json()["code"]) == (503, "store_failed")
        assert list((tmp_path / "s" / "media").rglob("*.*")) == []
        until(lambda: server.state.service.store.media.used_bytes == 0)
        assert list((tmp_path / "s" / "drafts").iterdir()) == []
