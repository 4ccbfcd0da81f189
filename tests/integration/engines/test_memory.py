"""Memory for models: checked before loading, and freed by unloading idle models."""

from __future__ import annotations

import asyncio
import math
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from polymux._util.memory import resident_bytes
from polymux.engines.chat.gguf import gguf_facts
from polymux.engines.memory import context_bytes_per_token
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.errors import NoBackendError, OverloadedError, UnprocessableEntityError
from polymux.runtime.build import backends_of
from polymux.runtime.memory_budget import MemoryBudget, needed_bytes
from polymux.runtime.settings import EngineSettings, Limits, StoreSettings
from polymux.server.settings.settings import ServerSettings
from polymux.service.model import ProgressSink
from polymux.service.routes import Route
from support.chat_model import model_path
from support.faulty_engine import FAMILY
from support.services import chat_of, running
from support.supervised_engine import alive, asked, in_loop, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from polymux.service.service import Service

MIB = 1 << 20
HOW = Supervision(threads=1, idle_s=300)


def engine(name: str, budget: MemoryBudget, needed: int, **options: Any) -> EngineBackend:
    made = EngineBackend(
        name, FAMILY, ["chat"], options, supervision=HOW, before_load=budget.make_room,
        needed_bytes=needed,
    )  # fmt: skip
    budget.add(made)
    return made


@asynccontextmanager
async def sharing(
    folder: Path, names: str, total: int
) -> AsyncIterator[tuple[Service, list[EngineBackend]]]:
    """Engines of 100 MiB each, with the given names as models, that share `total` bytes."""
    engines: list[EngineBackend] = []
    budget = MemoryBudget(
        free=lambda: total - sum(100 * MIB for one in engines if one.process is not None)
    )
    engines += [engine(name, budget, 100 * MIB) for name in names]
    routes = {"chat": [Route(name, (name,)) for name in names]}
    async with running(folder / "s", *engines, routes=routes) as service:
        yield service, engines


@in_loop
async def test_what_rests_longest_makes_room(tmp_path: Path) -> None:
    async with sharing(tmp_path, "abc", 200 * MIB) as (service, engines):
        for name in "aba":  # Now b is idle for the longest time.
            await service.call(asked("echo", model=name))
        pids = [one.process.pid or 0 for one in engines if one.process]
        await service.call(asked("echo", model="c"))
        assert [one.process is not None for one in engines] == [True, False, True]
        assert [alive(one) for one in pids] == [True, False]


@in_loop
async def test_others_at_work_are_left_alone(tmp_path: Path) -> None:
    async with sharing(tmp_path, "ab", 150 * MIB) as (service, engines):
        working = asyncio.create_task(service.call(asked("endless", model="a")))
        await until(lambda: engines[0].process is not None and engines[0].process.busy)
        with pytest.raises(OverloadedError, match=r"(?=.*100 MiB).*50 MiB") as refused:
            await service.call(asked("echo", model="b"))
        assert refused.value.headers["retry-after"] == "30"
        assert not working.done()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        await service.call(asked("echo", model="b"))
        assert engines[0].process is None


async def loaded(one: EngineBackend) -> None:
    await one.run(asked("echo"), ProgressSink(lambda: None, None))


@in_loop
async def test_engines_that_are_loaded_at_once_share_the_memory() -> None:
    """A reservation counts at once. The other engine gets its memory if the first load fails."""
    budget = MemoryBudget(limit_bytes=150 * MIB, free=lambda: 1 << 40)
    first, second = (engine(name, budget, 100 * MIB) for name in "ab")
    done, refused = await asyncio.gather(loaded(first), loaded(second), return_exceptions=True)
    assert (done, first.is_loaded) == (None, True)
    assert isinstance(refused, OverloadedError)
    assert "100 MiB" in str(refused)
    await asyncio.gather(first.close(), second.close())
    budget = MemoryBudget(free=lambda: 150 * MIB)
    broken, other = (
        engine("broken", budget, 100 * MIB, load="raise"),
        engine("other", budget, 100 * MIB),
    )
    loading = asyncio.create_task(loaded(broken))
    await until(lambda: broken.loading is not None and broken.loading.pid is not None)
    with pytest.raises(OverloadedError):
        await loaded(other)
    with pytest.raises(UnprocessableEntityError):
        await loading
    await loaded(other)
    await asyncio.gather(broken.close(), other.close())


@in_loop
async def test_a_server_s_limit_refuses_a_real_model(tmp_path: Path) -> None:
    options = {"model": str(model_path()), "context": 2048}
    settings = ServerSettings(
        store=StoreSettings(tmp_path / "s"),
        limits=Limits(engines_memory_bytes=200 * MIB),
        engines={"chat": EngineSettings("chat", options, threads=1)},
    )
    async with running(tmp_path / "s", *backends_of(settings)) as service:
        with pytest.raises(NoBackendError, match="engines_memory_bytes"):
            await service.call(chat_of())


@in_loop
async def test_needs_are_near_what_is_taken(tmp_path: Path) -> None:
    """The estimate of a loaded and used chat model is half to twice the measured memory."""
    options = {"model": str(model_path()), "context": 2048, "max_concurrency": 2}
    needed = needed_bytes("chat", options)
    assert needed is not None
    chat = EngineBackend("chat", "chat", ["chat"], options, max_concurrency=2, supervision=HOW)
    async with running(tmp_path / "s", chat) as service:
        await service.call(chat_of(max_completion_tokens=2))
        assert chat.process is not None
        taken = resident_bytes(chat.process.pid)
        assert needed / 2 < taken < needed * 1.25


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GGUF",
        b"GGML" + bytes(20),
        struct.pack("<4sIQQ", b"GGUF", 3, 0, 2**40),
        struct.pack("<4sIQQQ4sI", b"GGUF", 3, 0, 1, 4, b"name", 99),
        struct.pack("<4sIQQQ4sIIQ", b"GGUF", 3, 0, 1, 4, b"name", 9, 4, 2**50),
        struct.pack("<4sIQQQ4sIIQ", b"GGUF", 3, 0, 1, 4, b"name", 9, 9, 1),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(head)
    assert needed_bytes("chat", {"model": str(path)}) is None


#: A valid model shape. Each test replaces one value by an invalid one.
SHAPE = {"attention.head_count": 2, "attention.head_count_kv": 1, "embedding_length": 64,
         "block_count": 3}  # fmt: skip
ODD = [
    ("attention.head_count", 0), ("attention.head_count", -1), ("attention.head_count", 2**63 - 1),
    ("attention.head_count", "two"), ("attention.head_count", []),
    ("attention.head_count", [2, -2]), ("attention.head_count", math.nan),
    ("attention.head_count_kv", 0), ("attention.head_count_kv", "one"),
    ("attention.key_length", 0), ("attention.key_length", math.inf),
    ("embedding_length", math.nan), ("block_count", 2**62), ("block_count", [math.inf]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), ODD)
def test_shapes_that_no_model_has(tmp_path: Path, name: str, value: object) -> None:
    """Only the file size is counted, because the shape is unusable."""
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(SHAPE))
    assert context_bytes_per_token(gguf_facts(path)) == 3 * 1 * 32 * 2 * 2
    path.write_bytes(gguf(SHAPE | {name: value}))
    assert needed_bytes("chat", {"model": str(path)}) == path.stat().st_size + 200 * MIB


def gguf(shape: Mapping[str, object]) -> bytes:
    """A GGUF file with this metadata and without tensors."""
    facts = {"general.architecture": "llama"} | {f"llama.{one}": shape[one] for one in shape}
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(facts))
    return head + b"".join(_text(name) + _typed(value) for name, value in facts.items())


def _text(words: str) -> bytes:
    return struct.pack("<Q", len(words)) + words.encode()


def _typed(value: object) -> bytes:
    """The value, preceded by GGUF's number of its type."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        kind, letter = (12, "d") if any(isinstance(one, float) for one in value) else (11, "q")
        return struct.pack(f"<IIQ{len(value)}{letter}", 9, kind, len(value), *value)
    if isinstance(value, float):
        return struct.pack("<Id", 12, value)
    return struct.pack("<Iq", 11, value)
