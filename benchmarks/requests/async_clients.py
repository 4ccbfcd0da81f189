"""`async_clients NAME URL COUNT CONCURRENCY [uvloop]`: small concurrent chats."""

import asyncio
import os
import site
import sys
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from benchmarks.requests.conversation import (
    BODY,
    FIRST_WORDS,
    HEADERS,
    KEY,
    MESSAGES,
    MODEL,
    TEMPERATURE,
    content_of,
)
from benchmarks.usage import Meter, raise_file_limit

Ask = Callable[[], Awaitable[str]]


class Server(NamedTuple):
    """URL of the server, and the number of concurrent requests."""

    url: str
    concurrency: int


def polymux(at: Server) -> Ask:
    from polymux import AsyncClient

    client = AsyncClient(at.url, KEY, chat_model=MODEL)

    async def ask() -> str:
        return (await client.chat(MESSAGES, temperature=TEMPERATURE)).text

    return ask


def aiohttp(at: Server) -> Ask:
    import aiohttp as package

    session = package.ClientSession(
        headers=HEADERS, connector=package.TCPConnector(limit=at.concurrency)
    )

    async def ask() -> str:
        async with session.post(at.url, json=BODY) as response:
            return content_of(await response.json())

    return ask


def curl_cffi(at: Server) -> Ask:
    from curl_cffi import requests as package

    session = package.AsyncSession(headers=HEADERS, max_clients=at.concurrency, trust_env=False)

    async def ask() -> str:
        return content_of((await session.post(at.url, json=BODY)).json())

    return ask


def _httpx(package: object, url: str) -> Ask:
    limits = package.Limits(max_connections=None)  # type: ignore[attr-defined]
    client = package.AsyncClient(  # type: ignore[attr-defined]
        headers=HEADERS, limits=limits, timeout=60, trust_env=False
    )

    async def ask() -> str:
        return content_of((await client.post(url, json=BODY)).json())

    return ask


def httpx(at: Server) -> Ask:
    import httpx as package

    return _httpx(package, at.url)


def httpx2(at: Server) -> Ask:
    import httpx2 as package

    return _httpx(package, at.url)


def openai(at: Server) -> Ask:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=at.url, api_key=KEY)

    async def ask() -> str:
        completion = await client.chat.completions.create(
            model=MODEL, messages=MESSAGES, temperature=TEMPERATURE
        )
        return completion.choices[0].message.content or ""

    return ask


CLIENTS: dict[str, Callable[[Server], Ask]] = {
    "polymux": polymux,
    "aiohttp": aiohttp,
    "curl_cffi": curl_cffi,
    "httpx": httpx,
    "httpx2": httpx2,
    "openai": openai,
}


async def all_of(ask: Ask, count: int, concurrency: int) -> None:
    """Send `count` requests, `concurrency` at a time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for _ in numbers:
            await ask()

    await asyncio.gather(*[worker() for _ in range(concurrency)])


async def measure(name: str, url: str, count: int, concurrency: int) -> None:
    """Open the connections, then measure."""
    ask = CLIENTS[name](Server(url, concurrency))
    if not (await ask()).startswith(FIRST_WORDS):
        raise SystemExit("unexpected answer")
    await all_of(ask, concurrency, concurrency)
    meter = Meter()
    await all_of(ask, count, concurrency)
    meter.report(count)


def main() -> None:
    """Run on asyncio's event loop, or on uvloop."""
    raise_file_limit()
    name, url = sys.argv[1:3]
    count, concurrency = map(int, sys.argv[3:5])
    run = asyncio.run
    if sys.argv[5:] == ["uvloop"]:
        site.addsitedir(os.environ["PEERS_PACKAGES"])
        import uvloop

        run = uvloop.run
    run(measure(name, url, count, concurrency))
    sys.stdout.flush()
    os._exit(0)  # Closing the peers' connections is not part of the measurement.


if __name__ == "__main__":
    main()
