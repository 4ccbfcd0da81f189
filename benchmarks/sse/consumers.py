"""`consumers.py NAME`: decode 20,300 chunks in reads of 4 KiB; prints ns per chunk and the hash
of the text.

Each consumer reads the content of every chunk. It runs once to warm up, then the CPU time of the
process is measured.
"""

import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator

COUNT = 20_300
READ_BYTES = 4096
WORDS = [" the", " of", "ing", " token", ",", " a", " stream", ".", " é", "\n"]


def body() -> list[bytes]:
    choose = random.Random(3)
    events = []
    for _ in range(COUNT - 1):
        choice = {"index": 0, "delta": {"content": choose.choice(WORDS)}, "logprobs": None}
        events.append(event([choice | {"finish_reason": None}]))
    events.append(event([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]))
    whole = b"".join(events) + b"data: [DONE]\n\n"
    return [whole[at : at + READ_BYTES] for at in range(0, len(whole), READ_BYTES)]


def event(choices: list[object]) -> bytes:
    """Return one chunk in OpenAI's format."""
    value = {
        "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
        "object": "chat.completion.chunk",
        "created": 1741570283,
        "model": "gpt-4o-2024-08-06",
        "service_tier": "default",
        "system_fingerprint": "fp_fc9f1d7035",
        "choices": choices,
        "usage": None,
    }
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return b"data: " + text.encode() + b"\n\n"


def data_lines(reads: list[bytes]) -> Iterator[bytes]:
    """Yield the data lines with the simplest splitter that works for these streams."""
    rest = b""
    for read in reads:
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                yield line[6:]


def polymux(reads: list[bytes]) -> str:
    from polymux import decode_chat_stream

    return "".join([chunk.content for chunk in decode_chat_stream(reads)])


def orjson(reads: list[bytes]) -> str:
    from orjson import loads

    return "".join(
        [loads(data)["choices"][0]["delta"].get("content") or "" for data in data_lines(reads)]
    )


def msgspec(reads: list[bytes]) -> str:
    from msgspec import Struct
    from msgspec.json import Decoder

    class Delta(Struct):
        content: str | None = None
        role: str | None = None

    class Choice(Struct):
        index: int
        delta: Delta
        finish_reason: str | None = None

    class Chunk(Struct):
        id: str
        object: str
        created: int
        model: str
        choices: list[Choice]
        system_fingerprint: str | None = None
        service_tier: str | None = None

    decode = Decoder(Chunk).decode
    return "".join([decode(data).choices[0].delta.content or "" for data in data_lines(reads)])


def pydantic(reads: list[bytes]) -> str:
    from pydantic import BaseModel

    class Delta(BaseModel):
        content: str | None = None
        role: str | None = None

    class Choice(BaseModel):
        index: int
        delta: Delta
        finish_reason: str | None = None

    class Chunk(BaseModel):
        id: str
        object: str
        created: int
        model: str
        choices: list[Choice]
        system_fingerprint: str | None = None
        service_tier: str | None = None

    parse = Chunk.model_validate_json
    return "".join([parse(data).choices[0].delta.content or "" for data in data_lines(reads)])


def httpx_sse(reads: list[bytes]) -> str:
    import httpx
    from httpx_sse import EventSource

    headers = {"content-type": "text/event-stream"}
    response = httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"".join(reads)))
    texts = []
    for sse in EventSource(response).iter_sse():
        if sse.data != "[DONE]":
            texts.append(sse.json()["choices"][0]["delta"].get("content") or "")  # noqa: PERF401
    return "".join(texts)


def _sdk(module: object, reads: list[bytes]) -> str:
    """Decode with an SDK's client over a transport that answers from memory."""
    try:
        import httpx2 as http
    except ImportError:
        import httpx as http

    class Body(http.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return iter(reads)

    headers = {"content-type": "text/event-stream"}
    transport = http.MockTransport(lambda _: http.Response(200, headers=headers, stream=Body()))
    client = module(api_key="none", http_client=http.Client(transport=transport))  # type: ignore[operator]
    messages = [{"role": "user", "content": "Hi"}]
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    return "".join([chunk.choices[0].delta.content or "" for chunk in stream])


def openai(reads: list[bytes]) -> str:
    from openai import OpenAI

    return _sdk(OpenAI, reads)


def groq(reads: list[bytes]) -> str:
    import sys

    sys.modules["httpx2"] = None  # type: ignore[assignment]
    from groq import Groq

    return _sdk(Groq, reads)


CONSUMERS: dict[str, Callable[[list[bytes]], str]] = {
    "polymux": polymux,
    "orjson": orjson,
    "msgspec": msgspec,
    "pydantic": pydantic,
    "httpx-sse": httpx_sse,
    "openai": openai,
    "groq": groq,
}


def main() -> None:
    consume = CONSUMERS[sys.argv[1]]
    reads = body()
    consume(reads)
    started = time.process_time_ns()
    text = consume(reads)
    spent = time.process_time_ns() - started
    print(spent / COUNT, hashlib.sha256(text.encode()).hexdigest())


if __name__ == "__main__":
    main()
