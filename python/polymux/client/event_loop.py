"""Waits in asyncio for exchanges that the native I/O thread processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from polymux._native import core

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from polymux.client.answer import Native

    OnUpload = Callable[[int, int | None], object]

#: One for each running loop. Weak: it is dropped together with its loop.
_PORTS: WeakKeyDictionary[asyncio.AbstractEventLoop, core.LoopNotifier] = WeakKeyDictionary()
#: Asynchronous generators that close a loop's exchanges when asyncio shuts the loop down.
_GUARDS: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncIterator[None]] = WeakKeyDictionary()
_PROGRESS_INTERVAL_S = 0.05
#: Maximum number of bytes of an asynchronous part that are buffered for the network.
_MAX_WAITING_BYTES = 1 << 20


def port() -> core.LoopNotifier:
    """Return the notifier of the running loop and create it if necessary."""
    loop = asyncio.get_running_loop()
    found = _PORTS.get(loop)
    if found is None:
        _forget_closed_loops()
        found = _PORTS[loop] = core.LoopNotifier(loop)
        loop.add_reader(found.descriptor, found.dispatch)
    return found


def _forget_closed_loops() -> None:
    """Drop the guards of loops that were closed without `shutdown_asyncgens`.

    A guard references its loop and would keep it alive.
    """
    for reference in _GUARDS.keyrefs():
        loop = reference()
        if loop is not None and loop.is_closed():
            _PORTS[loop].abandon()
            _GUARDS.pop(loop, None)


async def _end_with_loop(
    loop: asyncio.AbstractEventLoop, port: core.LoopNotifier
) -> AsyncIterator[None]:
    """Close a loop's exchanges when the loop shuts down."""
    try:
        yield
    finally:
        port.close()
        _GUARDS.pop(loop, None)


async def outcome(exchange: core.Exchange, body: Any, on_upload: OnUpload | None) -> Native:
    """Wait for the end of an exchange. Cancellation closes the exchange."""
    while not exchange.ended:
        await news(exchange, body, on_upload)
    return exchange.outcome()


async def news(
    exchange: core.Exchange, body: Any = None, on_upload: OnUpload | None = None
) -> None:
    """Wait until an exchange has news. If canceled or failed, close the exchange."""
    loop = asyncio.get_running_loop()
    own = _PORTS.get(loop)
    if own is None or not exchange.belongs_to(own):
        raise RuntimeError(
            "stream: belongs to another event loop. Read it in the event loop that started it"
        )
    if loop not in _GUARDS:
        _GUARDS[loop] = guard = _end_with_loop(loop, own)
        await anext(guard)
    try:
        while not exchange.has_news:
            future = loop.create_future()
            exchange.set_waiter(future)
            if _came(exchange):  # News may arrive before the waiter is set.
                break
            if exchange.starved:
                await _feed(exchange, body)
            elif on_upload is not None:
                await asyncio.wait({future}, timeout=_PROGRESS_INTERVAL_S)
                exchange.report_progress()
            else:
                await future
        if on_upload is not None:
            exchange.report_progress()
    except BaseException:
        exchange.close()
        raise
    finally:
        exchange.set_waiter(None)


def _came(exchange: core.Exchange) -> bool:
    return exchange.has_news


async def _feed(exchange: core.Exchange, body: core.MultipartBody) -> None:
    """Feed an upload from its asynchronous part until enough is buffered or news arrives."""
    loop = asyncio.get_running_loop()
    fed = 0
    while fed < _MAX_WAITING_BYTES and not exchange.has_news:
        step = asyncio.ensure_future(_piece(body))
        try:
            while not step.done() and not _came(exchange):
                # A wake-up does not always mean news: a dry upload also completes the future.
                future = loop.create_future()
                exchange.set_waiter(future)
                if _came(exchange):
                    break
                await asyncio.wait({step, future}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not step.done():
                step.cancel()
                await asyncio.wait({step})
        if step.cancelled():
            return
        piece = step.result()
        body._feed(piece)  # noqa: SLF001 - same package
        if piece is None:
            break
        fed += len(memoryview(piece))
    exchange.resume_sending()


async def _piece(body: core.MultipartBody) -> Any:
    """Return the next piece; None at the end."""
    try:
        return await anext(body._awaited())  # noqa: SLF001 - same package
    except StopAsyncIteration:
        return None
    except BaseException as error:
        # Also if canceled: otherwise the iterator would end and the upload would look complete.
        body._fail(error)  # noqa: SLF001
        # The body references the error, which references this frame. Break the reference cycle.
        del body
        raise
