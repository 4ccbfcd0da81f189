"""Messages to addresses of strangers: by the guard, which judges each connection and pins it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._native import core
from polymux._native.version import __version__
from polymux.client import event_loop
from polymux.client.options import Retry, Timeout, native_options
from polymux.downloads.proxy import GuardedProxy
from polymux.fetch.fetcher import FetchLimits, ajudged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux._native import _core
    from polymux.fetch.fetcher import FetchPolicy

_LOOK_UP = FetchLimits(connect_ms=5_000, total_ms=5_000)
_DEADLINES = Timeout(10, connect=5, write=5, first_byte=10, idle=5, event=10)
_ONCE = Retry(0)
#: Of all answers of a server's life together: nobody reads them.
_NO_LIMIT = 1 << 62


class Delivery:
    """Posts messages; its one way out is the guarded proxy. Belongs to one event loop.

    Redirects are not followed, and no key of this server goes along.

    Args:
        policy: What may be reached beyond the public Internet.
    """

    def __init__(self, policy: FetchPolicy) -> None:
        self._policy = policy
        self._opening = asyncio.Lock()
        self._proxy: GuardedProxy | None = None
        self._session: _core.Session | None = None
        self._folder: Path | None = None

    async def post(self, url: str, body: bytes, lines: Sequence[str]) -> int:
        """Posts JSON; gives the status that was answered.

        Args:
            url: Where to.
            body: The JSON.
            lines: More header lines.

        Raises:
            URLRefusedError: It leads where it may not.
            PolymuxError: Nobody has answered within 10 s.
        """
        # The proxy judges the connection itself; this tells for good that there will be none.
        await ajudged(url, policy=self._policy, limits=_LOOK_UP)
        session = await self._opened()
        fields = ["Content-Type: application/json", *lines]
        options = native_options(_DEADLINES, _ONCE)
        exchange = session.start(event_loop.port(), "POST", url, fields, body, options, "buffered")
        status, *_ = await event_loop.outcome(exchange, body, None)
        return status

    async def _opened(self) -> _core.Session:
        async with self._opening:
            if self._session is None:
                self._folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="polymux-"))
                self._proxy = GuardedProxy(self._policy, _NO_LIMIT)
                await self._proxy.start(self._folder / "proxy")
                bundle = self._policy.certificate_bundle
                self._session = core.Session(
                    headers=[f"User-Agent: polymux/{__version__}"],
                    proxy=self._proxy.url,
                    no_proxy="",
                    certificates="" if bundle is None else os.fsdecode(bundle),
                    verify=True,
                    http2=False,
                    # One that is kept has a place at the proxy, which others' messages need.
                    reuse=False,
                )
            return self._session

    async def close(self) -> None:
        """Ends all connections."""
        if self._session is not None:
            await asyncio.to_thread(self._session.close)
        if self._proxy is not None:
            await self._proxy.close()
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
