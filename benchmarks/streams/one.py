"""`one NAME URL TOKENS`: read one stream at full speed in one thread; prints the cost."""

import sys
from collections.abc import Callable

from benchmarks.requests.conversation import BODY, HEADERS, KEY, MESSAGES, MODEL
from benchmarks.usage import Meter

TARGET = "/stream?tokens={}&rate=0"
#: Reads a stream of this number of tokens; returns the number of texts.
Read = Callable[[int], int]


def polymux(url: str) -> Read:
    from polymux import Client

    client = Client(url, KEY, chat_model=MODEL)

    def read(tokens: int) -> int:
        at = client.with_options(paths={"chat": TARGET.format(tokens)})
        count = 0
        for chunk in at.chat(MESSAGES, stream=True):
            if chunk.content:
                count += 1
        return count

    return read


def requests(url: str) -> Read:
    import orjson
    import requests as package

    session = package.Session()
    session.headers.update(HEADERS)
    session.trust_env = False

    def read(tokens: int) -> int:
        answer = session.post(url + TARGET.format(tokens), json=BODY, stream=True)
        count = 0
        for line in answer.iter_lines(chunk_size=1 << 14):
            if (
                line.startswith(b"data: ")
                and line != b"data: [DONE]"
                and orjson.loads(line[6:])["choices"][0]["delta"].get("content")
            ):
                count += 1
        return count

    return read


def openai(url: str) -> Read:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/stream", api_key=KEY)

    def read(tokens: int) -> int:
        stream = client.chat.completions.create(
            model=MODEL, messages=MESSAGES, stream=True, extra_query={"tokens": tokens, "rate": 0}
        )
        return sum(1 for chunk in stream if chunk.choices[0].delta.content)

    return read


CLIENTS: dict[str, Callable[[str], Read]] = {
    "polymux": polymux,
    "requests + orjson": requests,
    "openai": openai,
}


def main() -> None:
    name, url, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3])
    read = CLIENTS[name](url)
    read(100)
    meter = Meter()
    count = read(tokens)
    if count != tokens:
        raise SystemExit(f"{count} tokens received, expected {tokens}")
    meter.report(count)


if __name__ == "__main__":
    main()
