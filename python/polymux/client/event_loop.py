"""Where event loops wait for exchanges that the native thread carries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from polymux._native import core

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    OnUpload = Callable[[int, int | None], object]

#: One for each running loop: a loop that is gone takes its port along.
_PORTS: WeakKeyDictionary[asyncio.AbstractEventLoop, core.LoopNotifier] = WeakKeyDictionary()
#: Asynchronous generators, which a loop ends when it is shut down: so do the exchanges.
_GUARDS: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncIterator[None]] = WeakKeyDictionary()
_PROGRESS_INTERVAL_S = 0.05
#: Bytes of an asynchronous part that may wait for the network.
_MAX_WAITING_BYTES = 1 << 20


def port() -> core.LoopNotifier:
    """The running loop's port."""
    loop = asyncio.get_running_loop()
    found = _PORTS.get(loop)
    if found is None:
        _forget_closed_loops()
        found = _PORTS[loop] = core.LoopNotifier(loop)
        loop.add_reader(found.descriptor, found.dispatch)
    return found


def _forget_closed_loops() -> None:
    """Drops the guards of loops that were closed without having been shut down.

    A guard leads to its loop, which would never go otherwise.
    """
    for reference in _GUARDS.keyrefs():
        loop = reference()
        if loop is not None and loop.is_closed():
            _PORTS[loop].close()
            _GUARDS.pop(loop, None)


async def _end_with_loop(
    loop: asyncio.AbstractEventLoop, port: core.LoopNotifier
) -> AsyncIterator[None]:
    """Ends what runs for a loop that is shut down."""
    try:
        yield
    finally:
        port.close()
        _GUARDS.pop(loop, None)


async def outcome(
    exchange: core.Exchange, body: Any, on_upload: OnUpload | None
) -> tuple[int, bytes, bytes, int, float]:
    """Waits for the end of an exchange; the exchange ends with the waiting."""
    while not exchange.ended:
        await news(exchange, body, on_upload)
    return exchange.outcome()


async def news(
    exchange: core.Exchange, body: Any = None, on_upload: OnUpload | None = None
) -> None:
    """Waits until an exchange has news. Cancelled or failed, it closes the exchange."""
    loop = asyncio.get_running_loop()
    own = _PORTS.get(loop)
    if own is None or not exchange.belongs_to(own):
        raise RuntimeError(
            "this stream belongs to another event loop, the one that it was begun in: read it there"
        )
    if loop not in _GUARDS:
        _GUARDS[loop] = guard = _end_with_loop(loop, own)
        await anext(guard)
    try:
        while not exchange.has_news:
            future = loop.create_future()
            exchange.set_waiter(future)
            if _came(exchange):  # In between.
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
    """Gives an upload that has run dry what its asynchronous part has next, unless news comes."""
    loop = asyncio.get_running_loop()
    fed = 0
    while fed < _MAX_WAITING_BYTES and not exchange.has_news:
        step = asyncio.ensure_future(_piece(body))
        try:
            while not step.done() and not _came(exchange):
                # Whoever completes it may have no news: a body that runs dry is told of, too.
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
        body._feed(piece)  # noqa: SLF001 - of this package
        if piece is None:
            break
        fed += len(memoryview(piece))
    exchange.resume_sending()


async def _piece(body: core.MultipartBody) -> Any:
    """The next piece; None at the end."""
    try:
        return await anext(body._awaited())  # noqa: SLF001 - of this package
    except StopAsyncIteration:
        return None
    except BaseException as error:
        # Cancelled too: the iterator would give its end next, and the upload would look whole.
        body._fail(error)  # noqa: SLF001
        # It keeps the error, which keeps this frame: nothing would let go of either, and the file.
        del body
        raise
