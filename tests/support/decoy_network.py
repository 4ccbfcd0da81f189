"""Fetches the whole corpus of URLs inside an isolated network, and prints the outcomes.

`run` starts this module in a new network and mount namespace. Its only interface is loopback, which
has the decoys' addresses. A scripted resolver answers all names. Nothing leaves the namespace.
"""

from __future__ import annotations

import asyncio
import collections
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from support.url_corpus import DECOYS, PORTS, PUBLIC, urls

RESOLVER = "127.0.0.54"
CODES = (301, 302, 303, 307, 308)
ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|\[?[0-9a-f]*:[0-9a-f]*:")
A, CNAME, AAAA = 1, 5, 28
#: Names of `Resolver`, except for those that change or get no answer.
NAMES = (
    "public", "private", "private6", "mapped", "mixed", "mixed-other-order", "to-localhost",
    "chain", "127-0-0-1.wildcard", "many", "many-one-private", "servfail", "unknown",
)  # fmt: skip


def run(
    module: str = "support.decoy_network", *arguments: str, timeout_s: float = 400
) -> tuple[dict[str, Any], str]:
    """Run a module in an isolated network; return its JSON and its standard error.

    Fails with the output if the namespaces cannot be created.
    """
    command = ["unshare", "--net", "--mount", sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=timeout_s,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"the decoy network does not work (is this root?): {done.stderr}"
    return json.loads(done.stdout), done.stderr


class Decoys:
    """Listens on every address of the namespace, and counts connections."""

    def __init__(self) -> None:
        self.hits: collections.Counter[str] = collections.Counter()
        self.locations: list[bytes] = []
        self.served = 0
        #: Path to the number of redirects sent for it.
        self.redirects: collections.Counter[str] = collections.Counter()

    async def start(self) -> None:
        for port in PORTS:
            await asyncio.start_server(self._hit, "0.0.0.0", port, backlog=1000)
            listener = socket.socket(socket.AF_INET6)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(("::", port))
            await asyncio.start_server(self._hit, sock=listener, backlog=1000)

    async def _hit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        local = writer.get_extra_info("sockname")
        if local[:2] == (PUBLIC, 80):
            await self._public(reader, writer)
            return
        self.hits[f"{local[0]} {local[1]}"] += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
        writer.close()

    async def _public(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        except asyncio.IncompleteReadError:
            writer.close()
            return
        self.served += 1
        match = re.fullmatch(r"/redirect/(\d+)/(\d+)", target)
        if match:
            location = self.locations[int(match[2])]
            writer.write(
                b"HTTP/1.1 %s Moved\r\nLocation: %s\r\n\r\n" % (match[1].encode(), location)
            )
            self.redirects[target] += 1
        elif "/search?" in target:  # A song catalog without songs.
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"results": []}')
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npublic")
        writer.close()


def records(name: str, kind: int, asked: int) -> list[tuple[int, str, str]] | int | None:
    """The resolver's records (type, owner, value), an error code, or None for silence."""
    of = "x.example"
    both = {A: [PUBLIC], AAAA: []}
    tables: dict[str, dict[int, list[str]]] = {
        "public": both,
        "private": {A: ["10.0.0.1"]},
        "private6": {A: [PUBLIC], AAAA: ["fd00:ec2::254"]},
        "mapped": {A: [PUBLIC], AAAA: ["::ffff:10.0.0.1"]},
        "mixed": {A: [PUBLIC, "10.0.0.1"]},
        "mixed-other-order": {A: ["169.254.169.254", PUBLIC]},
        "127-0-0-1.wildcard": {A: ["127.0.0.1"]},
        "rebinding": {A: [PUBLIC if asked == 0 else "10.0.0.1"]},
        "many": {A: [PUBLIC] * 2000},
        "many-one-private": {A: [PUBLIC] * 1999 + ["10.0.0.1"]},
    }
    short = name.removesuffix(".example")
    if short == "silent":
        return None
    if short == "servfail":
        return 2
    if short == "to-localhost":
        return [(CNAME, name, "localhost"), (A, "localhost", "127.0.0.1")]
    if short == "chain":
        return [(CNAME, name, of), (CNAME, of, "y.example"), (A, "y.example", "10.0.0.1")]
    if short not in tables:
        return 3
    return [(kind, name, value) for value in tables[short].get(kind, [])]


def encoded(name: str) -> bytes:
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def data(kind: int, value: str) -> bytes:
    if kind == CNAME:
        return encoded(value)
    return socket.inet_pton(socket.AF_INET if kind == A else socket.AF_INET6, value)


class Resolver:
    """DNS (RFC 1035) over UDP and TCP, scripted by `records`; every record has TTL 0."""

    def __init__(self) -> None:
        self.asked: collections.Counter[str] = collections.Counter()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        outer = self

        class Datagrams(asyncio.DatagramProtocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = transport

            def datagram_received(self, data: bytes, addr: Any) -> None:
                answer = outer.answer(data, most=1232)
                if answer is not None:
                    self.transport.sendto(answer, addr)  # type: ignore[attr-defined]

        await loop.create_datagram_endpoint(Datagrams, local_addr=(RESOLVER, 53))
        await asyncio.start_server(self._connected, RESOLVER, 53)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = struct.unpack("!H", await reader.readexactly(2))[0]
                answer = self.answer(await reader.readexactly(size), most=65535)
                if answer is not None:
                    writer.write(struct.pack("!H", len(answer)) + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def answer(self, query: bytes, *, most: int) -> bytes | None:
        labels, place = [], 12
        while query[place]:
            labels.append(query[place + 1 : place + 1 + query[place]].decode("latin-1"))
            place += 1 + query[place]
        name = ".".join(labels).lower()
        kind = struct.unpack("!H", query[place + 1 : place + 3])[0]
        found = records(name, kind, self.asked[f"{name} {kind}"])
        self.asked[f"{name} {kind}"] += 1
        if found is None:
            return None
        question = query[12 : place + 5]
        code = found if isinstance(found, int) else 0
        rows = [] if isinstance(found, int) else [row for row in found if row[0] in (kind, CNAME)]
        body = b""
        for row, owner, value in rows:
            rdata = data(row, value)
            start = b"\xc0\x0c" if owner == name else encoded(owner)
            body += start + struct.pack("!HHIH", row, 1, 0, len(rdata)) + rdata
        flags = 0x8180 | code
        if 12 + len(question) + len(body) > most:
            # Truncated: the client must retry over TCP.
            flags, rows, body = flags | 0x0200, [], b""
            self.asked[f"{name} {kind}"] -= 1
        return query[:2] + struct.pack("!HHHHH", flags, 1, len(rows), 0, 0) + question + body


def set_up_network() -> None:
    def command(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True)

    command("ip", "link", "set", "lo", "up")
    for address in (*DECOYS, PUBLIC):
        if address not in ("127.0.0.1", "::1"):
            bits = "128" if ":" in address else "32"
            command("ip", "addr", "add", f"{address}/{bits}", "dev", "lo")
    command("mount", "--make-rprivate", "/")
    with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as file:
        file.write(f"nameserver {RESOLVER}\noptions timeout:30 attempts:1\n")
    command("mount", "--bind", file.name, "/etc/resolv.conf")
    Path(file.name).unlink()


def outcome(url: str, **limits: int) -> str:
    """The class of the error, or the URL and the target of a successful fetch."""
    from polymux.errors import PolymuxError
    from polymux.fetch.fetcher import FetchLimits, FetchPolicy, fetch

    policy = FetchPolicy(allowed_networks=("203.0.113.0/24",))
    try:
        fetched = fetch(url, policy=policy, limits=FetchLimits(**limits))
    except PolymuxError as error:
        text = f"{error} {error!r} {error.to_dict()}"
        if ADDRESS.search(text):
            return f"an error that names an address: {text}"
        return f"{type(error).__name__} {getattr(error, 'stage', '')}{getattr(error, 'limit', '')}"
    assert fetched.data is not None
    return f"{fetched.data.decode()} from {fetched.url}"


def knocks(decoys: Decoys) -> dict[str, int]:
    """Connect to every decoy. An unreachable decoy would prove nothing."""
    for address in DECOYS:
        for port in PORTS:
            socket.create_connection((address, port), timeout=5).close()
    while decoys.hits.total() < len(DECOYS) * len(PORTS):
        time.sleep(0.01)
    counted = dict(decoys.hits)
    decoys.hits.clear()
    return counted


def started(locations: list[str]) -> tuple[Decoys, Resolver, dict[str, int]]:
    """Start the servers of this network on a thread, and check that each decoy is reachable."""
    set_up_network()
    decoys, resolver = Decoys(), Resolver()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    for server in (decoys, resolver):
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    decoys.locations += [url.encode("utf-8", "surrogateescape") for url in locations]
    return decoys, resolver, knocks(decoys)


def tell(found: dict[str, Any]) -> None:
    """Print the findings and exit; the servers would run forever."""
    json.dump(found, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


def names(decoys: Decoys, resolver: Resolver) -> dict[str, str]:
    def at(name: str, path: str = "", **limits: int) -> str:
        return outcome(f"http://{name}.example/{path}", **limits)

    found = {name: at(name) for name in NAMES}
    found["silent"] = at("silent", connect_ms=300)
    found["rebinding"] = at("rebinding")
    found["queries of one fetch"] = str(resolver.asked["rebinding.example 1"])
    resolver.asked.clear()
    decoys.locations.append(b"http://rebinding.example/")
    found["rebinding by a redirect"] = at("rebinding", f"redirect/302/{len(decoys.locations) - 1}")
    resolver.asked.clear()
    for name in ("localhost", "a.localhost", "metadata.google.internal", "nas.home.arpa"):
        found[name] = outcome(f"http://{name}/")
    found["queries for local names"] = str(resolver.asked.total())
    found["own name"] = outcome(f"http://{socket.gethostname()}/")
    return found


def exit_with_a_silent_resolver() -> float:
    """Seconds until a process exits after a fetch from a name that gets no DNS answer."""
    code = (
        "from support.decoy_network import outcome\n"
        "assert outcome('http://silent.example/', connect_ms=200) == "
        "'RequestTimeoutError connect'\n"
        "print('fetched', flush=True)\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"fetched\n"
        began = time.monotonic()
        assert child.wait(60) == 0
        return time.monotonic() - began


def main() -> None:
    corpus = urls()
    decoys, resolver, knocked = started(corpus)
    found: dict[str, Any] = {"served": outcome(f"http://{PUBLIC}/"), "knocks": knocked}
    began = time.monotonic()
    found["direct"] = {url: outcome(url) for url in corpus}
    found["direct_s"] = time.monotonic() - began
    # One redirect code for each URL. Neighboring URLs are similar, so each kind meets all codes.
    codes = [CODES[number % len(CODES)] for number in range(len(corpus))]
    found["redirected"] = {
        f"{code} {url}": outcome(f"http://{PUBLIC}/redirect/{code}/{number}")
        for number, (code, url) in enumerate(zip(codes, corpus, strict=True))
    }
    found["names"] = names(decoys, resolver)
    found["exit_s"] = exit_with_a_silent_resolver()
    tell(found | {"hits": dict(decoys.hits), "requests": decoys.served})


if __name__ == "__main__":
    main()
