"""Sends the whole URL corpus to the downloaders' egress proxy, in the network of the decoys.

`run` starts this module like `support.decoy_network`: nothing leaves the namespace.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from polymux.downloads.proxy import GuardedProxy
from polymux.fetch.fetcher import FetchPolicy

from support import decoy_network
from support.decoy_network import NAMES, started, tell
from support.url_corpus import PUBLIC, urls

#: Simultaneous requests; a downloader's own limit is 64.
_AT_ONCE = 16


def run() -> dict[str, Any]:
    found, _ = decoy_network.run(__name__, timeout_s=300)
    return found


def requests(url: str) -> dict[str, str]:
    """The request lines that a downloader may send for a URL, with its host for tunnels."""
    host = url.partition("://")[2].partition("/")[0]
    return {
        "GET": f"GET {url} HTTP/1.1",
        "CONNECT": f"CONNECT {host} HTTP/1.1",
        "CONNECT 443": f"CONNECT {host}:443 HTTP/1.1",
    }


async def _answer(socket_path: Path, line: str) -> str:
    reader, writer = await asyncio.open_unix_connection(socket_path)
    try:
        # Use a tunnel immediately: its target then counts the request.
        writer.write(f"{line}\r\nHost: h\r\n\r\n".encode("utf-8", "surrogateescape"))
        data = await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return ""
    finally:
        writer.close()
    return data.partition(b"\r\n")[0].decode("latin-1")[9:12]


async def _asked() -> dict[str, dict[str, str]]:
    policy = FetchPolicy(allowed_networks=("203.0.113.0/24",))
    places = asyncio.Semaphore(_AT_ONCE)
    found: dict[str, dict[str, str]] = {}

    async def ask(kind: str, url: str, line: str) -> None:
        async with places:
            found.setdefault(kind, {})[url] = await _answer(out, line)

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        async with GuardedProxy(policy, 1 << 30, idle_s=2.0) as proxy:
            await proxy.start(out)
            names = [f"http://{name}.example/" for name in NAMES]
            await asyncio.gather(
                *(
                    ask(kind, url, line)
                    for url in [f"http://{PUBLIC}/", *names, *urls()]
                    for kind, line in requests(url).items()
                )
            )
    return found


def main() -> None:
    decoys, _, knocked = started([])
    found: dict[str, Any] = {"knocks": knocked, "statuses": asyncio.run(_asked())}
    # All ports of the public address belong to the public side.
    found["hits"] = {one: n for one, n in decoys.hits.items() if not one.startswith(f"{PUBLIC} ")}
    tell(found | {"served": decoys.served})


if __name__ == "__main__":
    main()
