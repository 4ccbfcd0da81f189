"""Asynchronous clients of chat streams. Each reads the stream at a URL and passes on its texts."""

from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.requests.conversation import BODY, HEADERS, KEY, MESSAGES, MODEL

Take = Callable[[str], object]
Read = Callable[[str, Take], Awaitable[None]]
STREAM_BODY = {**BODY, "stream": True}


def polymux(url: str) -> Read:
    from polymux import AsyncClient

    client = AsyncClient(url, KEY, chat_model=MODEL)
    clients: dict[str, AsyncClient] = {}

    async def read(target: str, take: Take) -> None:
        if target not in clients:
            clients[target] = client.with_options(paths={"chat": target})
        async with await clients[target].chat(MESSAGES, stream=True, temperature=0.7) as stream:
            async for chunk in stream:
                if chunk.content:
                    take(chunk.content)

    return read


def aiohttp(url: str) -> Read:
    import aiohttp as package
    import orjson

    loads = orjson.loads
    session = package.ClientSession(
        headers=HEADERS,
        connector=package.TCPConnector(limit=0),
        timeout=package.ClientTimeout(total=None),
    )

    async def read(target: str, take: Take) -> None:
        async with session.post(url + target, json=STREAM_BODY) as response:
            async for line in response.content:
                if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                    text = loads(line[6:])["choices"][0]["delta"].get("content")
                    if text:
                        take(text)

    return read


def httpx2(url: str) -> Read:
    import httpx2 as package
    import orjson

    loads = orjson.loads
    limits = package.Limits(max_connections=None)
    client = package.AsyncClient(headers=HEADERS, limits=limits, timeout=None, trust_env=False)

    async def read(target: str, take: Take) -> None:
        async with client.stream("POST", url + target, json=STREAM_BODY) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and not line.startswith("data: [DONE]"):
                    text = loads(line[6:])["choices"][0]["delta"].get("content")
                    if text:
                        take(text)

    return read


def _sdk(client: Any) -> Read:
    async def read(target: str, take: Take) -> None:
        query = dict(one.split("=") for one in target.partition("?")[2].split("&"))
        stream = await client.chat.completions.create(
            model=MODEL, messages=MESSAGES, stream=True, extra_query=query
        )
        async with stream:
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    take(chunk.choices[0].delta.content)

    return read


def openai(url: str) -> Read:
    from openai import AsyncOpenAI

    return _sdk(AsyncOpenAI(base_url=f"{url}/stream", api_key=KEY, max_retries=0))


def groq(url: str) -> Read:
    from groq import AsyncGroq

    return _sdk(AsyncGroq(base_url=f"{url}/stream", api_key=KEY, max_retries=0))


CLIENTS: dict[str, Callable[[str], Read]] = {
    "polymux": polymux,
    "aiohttp": aiohttp,
    "httpx2": httpx2,
    "openai": openai,
    "groq": groq,
}
