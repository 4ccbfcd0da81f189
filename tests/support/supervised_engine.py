"""A service with the engine that fails in every way, in the engine's own process."""

from __future__ import annotations

import asyncio
import inspect
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.downloads.url_inputs import UrlFetcher
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.engines.registry import BackendContext
from polymux.fetch.fetcher import FetchPolicy

from support.faulty_engine import FAMILY
from support.services import chat_of, on_a_loop, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest
    from polymux.service.service import Service

TESTS = Path(__file__).parents[1]
in_loop = on_a_loop
QUICK = Supervision(threads=1, idle_s=30, load_s=20, silence_s=20, cancel_timeout_s=0.3)


def backend_context(media: Backend) -> BackendContext:
    """The context of an engine without options, beside the media engine."""
    policy = FetchPolicy()
    return BackendContext("engine", {}, {}, media, UrlFetcher(policy, 1), policy)


def go(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 60))


def asked(what: str, **values: Any) -> OperationRequest:
    return chat_of(messages=[{"role": "user", "content": what}], **values)


@asynccontextmanager
async def engine(
    tmp_path: Path, how: Supervision = QUICK, **options: Any
) -> AsyncIterator[tuple[Service, EngineBackend]]:
    max_concurrency = options.get("max_concurrency", 1)
    backend = EngineBackend(
        "faulty",
        FAMILY,
        ["chat", "convert_to_mp3"],
        options,
        max_concurrency=max_concurrency,
        supervision=how,
    )
    async with running(tmp_path / "s", backend) as service:
        yield service, backend


def served(
    how: Supervision = QUICK, **options: Any
) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[[Path], None]]:
    """Make a test from a coroutine with the parameters `service` or `backend`."""
    names = ("service", "backend")

    def decorate(body: Callable[..., Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
        def test(tmp_path: Path) -> None:
            async def run() -> None:
                async with engine(tmp_path, how, **options) as found:
                    wanted = inspect.signature(body).parameters
                    given = zip(names, found, strict=True)
                    await body(**{name: one for name, one in given if name in wanted})

            go(run())

        test.__doc__ = body.__doc__
        return test

    return decorate


def alive(pid: int) -> bool:
    # One or the other, if the process has ended.
    with suppress(FileNotFoundError, ProcessLookupError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


async def until(condition: Any, max_s: float = 10) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < max_s
        await asyncio.sleep(0.002)
    return time.monotonic() - began
