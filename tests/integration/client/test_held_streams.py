"""Streams that come faster than they are read: what is held back meanwhile may be anything."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_children import KEY, MIB

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer

#: As much as is kept of a stream that nobody reads.
_KEPT_BYTES = MIB
_EVENT_BYTES = 1024
#: Longer than it takes to send all that is kept, also where the machine has other work.
_UNTIL_HELD_S = 1.5
_COMMENTS = b": nothing to say\n" * (2 * MIB // 17)


def kept() -> bytes:
    """Events of so many bytes altogether: what comes behind them is held back."""
    empty = len(_event(""))
    return _event("x" * (_EVENT_BYTES - empty)) * (_KEPT_BYTES // _EVENT_BYTES)


def _event(content: str) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": {"content": content}}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


@pytest.mark.parametrize("more", [b"", _COMMENTS], ids=["no more", "more behind it"])
@pytest.mark.parametrize(
    ("held", "failure"),
    [
        (b"data: {no json\n\n", errors.DecodeError),
        (b'data: {"error": {"message": "out of luck"}}\n\n', errors.APIError),
        (b"data: [DONE]\n\n", None),
    ],
    ids=["no JSON", "a failure", "the end"],
)
def test_what_was_held_back_ends_the_stream(
    server: MisbehavingServer, held: bytes, failure: type[errors.PolymuxError] | None, more: bytes
) -> None:
    """It ends as it should, and so does its connection, whether more comes or nothing."""
    pause = steps.sleep(_UNTIL_HELD_S / 3)
    play = steps.send(kept()), pause, steps.send(held + more), steps.stall()
    server.script(steps.event_stream(), *play)

    async def read() -> None:
        count = 0
        ends = nullcontext() if failure is None else pytest.raises(failure)
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            stream = await client.chat("hello", stream=True)
            await asyncio.sleep(_UNTIL_HELD_S)
            with ends:
                async for _ in stream:
                    count += 1
            assert count == _KEPT_BYTES // _EVENT_BYTES
            await asyncio.to_thread(server.wait_closed, server.requests[-1].connection, 5)

    asyncio.run(read())
