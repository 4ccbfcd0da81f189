"""Chats that have a time for their whole answer, all models and all that comes before together."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from polymux import errors
from polymux.service.errors import refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager, AsyncExitStack

    from polymux.service.backend import Backend
    from polymux.service.chunks import Chunk
    from polymux.service.model import Sink, Work

Place = TypeVar("Place")


def answer_timeout_s(work: Work) -> float | None:
    """Time for the whole answer of freellm, all models together."""
    wanted = work.values.get("timeout") if work.operation == "free_chat" else None
    return float(wanted) if isinstance(wanted, (int, float)) else None


def too_late(work: Work) -> errors.InternalServerError:
    """What is told when that time is over."""
    return refusal(
        errors.InternalServerError,
        f"there was no answer within {answer_timeout_s(work):g} s",
        code="upstream_timeout",
        status=504,
        param="timeout",
    )


async def ready(
    stack: AsyncExitStack, backend: Backend, work: Work, sink: Sink, until: float | None
) -> Work:
    """A chat with all that comes before its place; that is given up with the stack.

    Raises:
        InternalServerError: It took too long (status 504).
    """
    preparing = backend.prepared(work, sink)
    if preparing is None:
        return work
    try:
        async with asyncio.timeout_at(until):
            return await stack.enter_async_context(preparing)
    except TimeoutError:
        raise too_late(work) from None


async def begun(
    stack: AsyncExitStack,
    place: AbstractAsyncContextManager[Place],
    started: Callable[[], Awaitable[None]],
    work: Work,
    until: float | None,
) -> Place:
    """A place, which is given up with the stack, when `started` has told of it.

    Raises:
        InternalServerError: It took too long (status 504).
    """
    try:
        async with asyncio.timeout_at(until):
            entered = await stack.enter_async_context(place)
            await started()
            return entered
    except TimeoutError:
        raise too_late(work) from None


async def in_time(chunks: AsyncIterator[Chunk], work: Work, until: float) -> AsyncIterator[Chunk]:
    """The pieces of an answer that has a deadline, which never spans what their reader does.

    Raises:
        InternalServerError: The next one comes too late (status 504).
    """
    async with aclosing(chunks):  # type: ignore[type-var]
        while True:
            try:
                async with asyncio.timeout_at(until):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise too_late(work) from None
            yield chunk
