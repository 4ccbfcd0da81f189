"""What was given up lets go of all that it held, by itself."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import TYPE_CHECKING

import polymux
from servers import steps
from support.client_children import KEY, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer


def test_a_cancelled_upload_lets_go(tmp_path: Path, server: MisbehavingServer) -> None:
    """By itself: no other request has to come for the file to be closed."""
    file = tmp_path / "a.png"
    file.write_bytes(b"x" * (24 << 20))
    server.script(steps.read_slowly(1e6), steps.stall())

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            with file.open("rb") as opened:
                sending = asyncio.create_task(client.read_text(opened))
                await asyncio.to_thread(server.wait_requests, 1)
                sending.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await sending
                held = weakref.ref(opened)
            del opened, sending
            assert await asyncio.to_thread(eventually, lambda: held() is None)

    asyncio.run(main())
