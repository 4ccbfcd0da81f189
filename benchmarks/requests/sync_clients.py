"""`sync_clients NAME URL COUNT [CERTIFICATES]`: small sequential chats; prints their cost.

Every client builds the body from the same objects, parses the answer and reads its text.
"""

import json
import sys
from collections.abc import Callable
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
from benchmarks.usage import Meter

Ask = Callable[[], str]


class Server(NamedTuple):
    """URL of the server, and the CA file that its certificate is verified with."""

    url: str
    certificates: str | None


def polymux(at: Server) -> Ask:
    from polymux import Client

    client = Client(at.url, KEY, chat_model=MODEL, verify=at.certificates or True)
    return lambda: client.chat(MESSAGES, temperature=TEMPERATURE).text


def polymux_request(at: Server) -> Ask:
    from polymux import Client

    client = Client(at.url, KEY, chat_model=MODEL, verify=at.certificates or True)
    fields = {"messages": MESSAGES, "temperature": TEMPERATURE}
    return lambda: client.request("chat", fields).text


def requests(at: Server) -> Ask:
    import requests as package

    session = package.Session()
    session.headers.update(HEADERS)
    session.trust_env = False
    session.verify = at.certificates or True
    return lambda: content_of(session.post(at.url, json=BODY).json())


def _context(certificates: str | None) -> object:
    import ssl

    return ssl.create_default_context(cafile=certificates) if certificates else True


def httpx(at: Server) -> Ask:
    import httpx as package

    client = package.Client(headers=HEADERS, trust_env=False, verify=_context(at.certificates))
    return lambda: content_of(client.post(at.url, json=BODY).json())


def httpx2(at: Server) -> Ask:
    import httpx2 as package

    client = package.Client(headers=HEADERS, trust_env=False, verify=_context(at.certificates))
    return lambda: content_of(client.post(at.url, json=BODY).json())


def urllib3(at: Server) -> Ask:
    import urllib3 as package

    pool = package.PoolManager(headers=HEADERS, ca_certs=at.certificates)
    return lambda: content_of(pool.request("POST", at.url, json=BODY).json())


def pycurl(at: Server) -> Ask:
    from io import BytesIO

    import pycurl as package

    curl = package.Curl()
    curl.setopt(package.URL, at.url)
    fields = [f"{name}: {value}" for name, value in HEADERS.items()]
    curl.setopt(package.HTTPHEADER, ["Content-Type: application/json", "Expect:", *fields])
    curl.setopt(package.NOPROXY, "*")
    if at.certificates:
        curl.setopt(package.CAINFO, at.certificates)

    def ask() -> str:
        answer = BytesIO()
        curl.setopt(package.POSTFIELDS, json.dumps(BODY).encode())
        curl.setopt(package.WRITEDATA, answer)
        curl.perform()
        return content_of(json.loads(answer.getvalue()))

    return ask


def curl_cffi(at: Server) -> Ask:
    from curl_cffi import requests as package

    session = package.Session(headers=HEADERS, trust_env=False, verify=at.certificates or True)
    return lambda: content_of(session.post(at.url, json=BODY).json())


def _chat(client: object) -> Ask:
    """Return a function that calls an SDK's chat method."""

    def ask() -> str:
        completion = client.chat.completions.create(  # type: ignore[attr-defined]
            model=MODEL, messages=MESSAGES, temperature=TEMPERATURE
        )
        text: str = completion.choices[0].message.content
        return text

    return ask


def openai(at: Server) -> Ask:
    from openai import OpenAI

    return _chat(OpenAI(base_url=at.url, api_key=KEY))


def groq(at: Server) -> Ask:
    from groq import Groq

    return _chat(Groq(base_url=at.url, api_key=KEY))


CLIENTS: dict[str, Callable[[Server], Ask]] = {
    "polymux": polymux,
    "polymux, Client.request": polymux_request,
    "requests": requests,
    "httpx": httpx,
    "httpx2": httpx2,
    "urllib3": urllib3,
    "pycurl": pycurl,
    "curl_cffi": curl_cffi,
    "openai": openai,
    "groq": groq,
}


def main() -> None:
    name, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    ask = CLIENTS[name](Server(url, sys.argv[4] if len(sys.argv) > 4 else None))
    for _ in range(min(count, 20)):
        if not ask().startswith(FIRST_WORDS):
            raise SystemExit("unexpected answer")
    meter = Meter()
    for _ in range(count):
        ask()
    meter.report(count)


if __name__ == "__main__":
    main()
