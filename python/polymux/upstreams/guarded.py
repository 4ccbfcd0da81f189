"""The way to a server of others whose every connection the guard judges and pins."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from polymux.downloads.proxy import GuardedProxy

if TYPE_CHECKING:
    from polymux.fetch.fetcher import FetchPolicy

#: Of all answers of a server's life together: each has a limit of its own.
_NO_LIMIT = 1 << 62


class GuardedWay:
    """A guarded proxy of one's own, which begins to listen when it is first needed.

    Requests that the fetcher of `polymux.fetch` cannot make, as they have a body, go by it: name
    and addresses are judged as there, and the connection is made to the judged addresses alone.
    Belongs to one event loop.

    Args:
        policy: What may be reached beyond the public Internet.

    Example:
        >>> import asyncio
        >>> from polymux.fetch.fetcher import FetchPolicy
        >>> async def main() -> str:
        ...     way = GuardedWay(FetchPolicy())
        ...     try:
        ...         return await way.proxy()
        ...     finally:
        ...         await way.close()
        >>> asyncio.run(main()).startswith("http://polymux:")
        True
    """

    def __init__(self, policy: FetchPolicy) -> None:
        """Nothing listens."""
        self._policy = policy
        self._opening = asyncio.Lock()
        self._proxy: GuardedProxy | None = None
        self._folder: Path | None = None

    async def proxy(self) -> str:
        """The proxy's address, with its password: a secret."""
        async with self._opening:
            if self._proxy is None:
                self._folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="polymux-"))
                proxy = GuardedProxy(self._policy, _NO_LIMIT)
                await proxy.start(self._folder / "proxy")
                self._proxy = proxy
            return self._proxy.url

    async def close(self) -> None:
        """Ends all connections. Idempotent."""
        proxy, self._proxy = self._proxy, None
        folder, self._folder = self._folder, None
        if proxy is not None:
            await proxy.close()
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
