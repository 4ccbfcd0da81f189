"""Redirects, netrc, proxies (K11, K12, C15), certificates (K13, C17) and HTTP/2."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from servers import steps
from servers.misbehaving import MisbehavingServer
from servers.proxies import nghttpx
from servers.reference import ReferenceServer
from support.client_calls import CHUNK, FINE, KINDS, SILENT_STREAM, called
from support.client_children import KEY, eventually, run

if TYPE_CHECKING:
    from servers.certificates import Authority, Flavour


@pytest.mark.parametrize("status", [301, 303, 307])
def test_redirects(status: int, server: MisbehavingServer) -> None:
    """Redirects are never followed, not even to the same host (K11 and C15)."""
    with MisbehavingServer() as decoy, MisbehavingServer(host_name="localhost") as named:
        decoy.script(FINE, times=None)
        named.script(FINE, times=None)
        places = (
            f"{decoy.url}/api/v1/freellm", f"{named.url}/x", "/api/v1/freellm",
            decoy.url.replace("http:", "https:"), "file:///etc/passwd", "",
            "http://user:pass@127.0.0.1/x", "\x1b[2J",
        )  # fmt: skip
        for place, stream in itertools.product(places, (False, True)):
            server.script(steps.redirect(status, place))
            with pytest.raises(errors.APIStatusError) as caught:
                called(polymux.Client, server.url, lambda one: one.free_chat("x", stream=stream))  # noqa: B023
            assert caught.value.status == status
            assert "\x1b" not in str(caught.value)
            assert KEY not in str(caught.value)
        assert decoy.connections == named.connections == []
    assert len(server.requests) == 2 * len(places)


def test_netrc_and_proxies_of_the_environment(
    server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not used unless requested (K12)."""
    with MisbehavingServer() as decoy:
        decoy.script(FINE, times=None)
        lines = "machine 127.0.0.1 login canary password canary\ndefault login a password b\n"
        for name in (".netrc", "_netrc"):
            (tmp_path / name).write_text(lines)
            (tmp_path / name).chmod(0o600)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
                     "ALL_PROXY", "CURL_HOME", "SSL_CERT_FILE"):  # fmt: skip
            monkeypatch.setenv(name, decoy.url)
        (tmp_path / ".curlrc").write_text(f"proxy = {decoy.url}\n")
        code = """
for made in (polymux.Client(url), polymux.Client(url, key)):
    assert made.free_chat("x").text == "fine"
async def main():
    async with polymux.AsyncClient(url) as client:
        await client.free_chat("x")
asyncio.run(main())
"""
        server.script(FINE, times=None)
        run(code, server.url)
        assert decoy.connections == []
    assert [one.header("authorization") for one in server.requests] == [None, f"Bearer {KEY}", None]


def test_a_proxy_that_was_asked_for(
    server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set by an argument, or by the environment with `trust_env`, but never by HTTP_PROXY (K12)."""
    with MisbehavingServer() as proxy:
        proxy.script(FINE, times=None)
        with polymux.Client("http://server.example", KEY, proxy=proxy.url) as client:
            assert client.free_chat("x").text == "fine"
        assert proxy.requests[0].target == "http://server.example/api/v1/freellm"
        monkeypatch.setenv("http_proxy", proxy.url)
        with polymux.Client("http://server.example", KEY, trust_env=True) as client:
            assert client.free_chat("x").text == "fine"
        assert len(proxy.requests) == 2
        server.script(FINE, times=None)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with polymux.Client(server.url, KEY, trust_env=True) as client:
            assert client.free_chat("x").text == "fine"
        monkeypatch.delenv("http_proxy")
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with polymux.Client(server.url, KEY, trust_env=True) as client:
            assert client.free_chat("x").text == "fine"
        assert len(proxy.requests) == 2


@pytest.mark.parametrize(("status", "tries"), [(403, 1), (407, 1), (502, 2)])
def test_a_proxy_that_refuses_connections(status: int, tries: int) -> None:
    """The error names the proxy's status, and only statuses that may change are retried."""
    with MisbehavingServer() as proxy:
        proxy.script(steps.answer(status, b""), times=None)
        retry = polymux.Retry(1, first_backoff_s=0)
        options = {"proxy": proxy.url, "retry": retry}
        with (
            polymux.Client("https://server.example", KEY, **options) as client,
            pytest.raises(errors.ConnectError, match=str(status)) as caught,
        ):
            client.free_chat("x")
        assert caught.value.stage == "proxy"
        assert len(proxy.requests) == tries


EVERY = ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY")


@pytest.mark.parametrize("name", ["https_proxy", "ALL_PROXY"])
def test_the_environments_proxy_is_read_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's first request reads the variables. Later changes apply to new clients (K12)."""
    url = f"{'https' if name == 'https_proxy' else 'http'}://server.example"

    def refused(client: polymux.Client) -> None:
        with pytest.raises(errors.PolymuxError):
            client.free_chat("x")

    with MisbehavingServer() as proxy, MisbehavingServer() as later:
        for one in (proxy, later):
            # The connection is not reused, so every request chooses its proxy again.
            one.script(
                steps.answer(502, b"no", [("Connection", "close")]), steps.close(), times=None
            )
        with polymux.Client(url, KEY, trust_env=True, retry=0) as client:
            monkeypatch.setenv(name, proxy.url)
            refused(client)
            for other in EVERY:
                monkeypatch.setenv(other, later.url)
            refused(client)
            refused(client.with_options(timeout=30))
            for other in EVERY:
                monkeypatch.delenv(other)
            monkeypatch.setenv("no_proxy", "*")
            refused(client)
        assert len(proxy.connections) == len(proxy.requests) == 4
        assert not later.connections
        monkeypatch.delenv("no_proxy")
        monkeypatch.setenv(name, later.url)
        with polymux.Client(url, KEY, trust_env=True, retry=0) as new:
            refused(new)
        assert len(later.requests) == 1


@pytest.mark.parametrize("status", [403, 407])
def test_a_tunnel_that_is_refused(status: int) -> None:
    """The proxy refuses the tunnel. The API key is never sent to it (K12)."""
    with MisbehavingServer() as proxy:
        proxy.script(steps.answer(status, b"no"))
        with (
            polymux.Client("https://server.example", KEY, proxy=proxy.url, retry=0) as client,
            pytest.raises(errors.TransportError),
        ):
            client.free_chat("x")
        (request,) = proxy.requests
        assert request.method == "CONNECT"
        assert request.header("authorization") is None


BAD: list[Flavour] = ["expired", "wrong_name", "self_signed", "tls_1_0", "bad_cipher"]


@pytest.mark.parametrize("flavour", BAD)
def test_bad_certificates(flavour: Flavour, authority: Authority) -> None:
    """A TLS error, nothing is sent, and no retry without verification (K13 and C17)."""
    certificate = authority.certificate(flavour)
    with MisbehavingServer(tls=certificate.context()) as server:
        for kind, stream in itertools.product(KINDS, (False, True)):
            with pytest.raises(errors.TLSError) as caught:
                called(
                    kind, server.url, lambda one: one.free_chat("x", stream=stream),  # noqa: B023
                    verify=str(certificate.ca), retry=0,
                )  # fmt: skip
            assert caught.value.stage == "tls"
        assert server.requests == []


def test_verify_off_for_one_client_only(authority: Authority) -> None:
    """Other clients verify before, after and at the same time, with the same server (K13)."""
    certificate = authority.certificate("self_signed")
    with MisbehavingServer(tls=certificate.context()) as server, contextlib.ExitStack() as stack:
        server.script(FINE, times=None)
        careless, trusting, *careful = (
            stack.enter_context(polymux.Client(server.url, KEY, verify=verify, retry=0))
            for verify in (False, str(certificate.chain), True, certificate.ca)
        )
        for _ in range(2):
            assert careless.free_chat("x").text == "fine"
            assert trusting.free_chat("x").text == "fine"
            for client in careful:
                with pytest.raises(errors.TLSError):
                    client.free_chat("x")
        assert len(server.requests) == 4


def test_http_spoken_where_tls_is(server: MisbehavingServer) -> None:
    """An https client of an http server that either waits or responds with an error (K13)."""
    url = server.url.replace("http:", "https:")
    with polymux.Client(url, KEY, retry=0) as client:
        with pytest.raises(errors.RequestTimeoutError) as caught:
            client.free_chat("x", timeout=polymux.Timeout(20, connect=0.5))
        assert caught.value.limit == "connect"
        server.on_connect(steps.answer(400, b"no"), steps.close())
        with pytest.raises(errors.TLSError):
            client.free_chat("x")


def connections_to(port: int) -> int:
    """The number of open connections from this process to the port."""
    lines = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(line[2].endswith(f":{port:04X}") and line[3] == "01" for line in lines)


def test_http_2(authority: Authority, tmp_path: Path) -> None:
    """40 calls share one connection. 40 streams have one each, and these are reused."""
    with (
        ReferenceServer(token=KEY) as server,
        nghttpx(server.port, authority.certificate(), tmp_path) as proxy,
    ):

        async def main() -> None:
            async with polymux.AsyncClient(proxy.url, KEY, verify=proxy.ca) as client:

                async def call(number: int) -> None:
                    assert (await client.chat(f"{number}")).text == f"You said: {number}"

                async def stream(number: int) -> None:
                    made = await client.chat(f"{number}", stream=True)
                    assert "".join([one async for one in made.texts()]) == f"You said: {number}"
                    assert made.response is not None

                for _ in range(3):
                    await asyncio.gather(*map(call, range(40)))
                assert connections_to(proxy.port) == 1
                for _ in range(3):
                    await asyncio.gather(*map(call, range(40)), *map(stream, range(40)))
                    await asyncio.sleep(0.5)  # Until the last response has left every connection.
                assert 2 <= connections_to(proxy.port) <= 41

        asyncio.run(main())
        assert {one.header("via") for one in server.requests} == {"2 nghttpx"}
        with polymux.Client(proxy.url, KEY, verify=proxy.ca) as client:
            for number in range(10):
                assert client.chat(f"{number}").text == f"You said: {number}"
                assert client.read_text(("a.png", b"x" * 300_000)).text
        with polymux.Client(proxy.url, KEY, verify=proxy.ca, http2=False) as client:
            assert client.chat("x").text == "You said: x"
        assert server.requests[-1].header("via") == "1.1 nghttpx"


def test_faults_over_http_2(authority: Authority, tmp_path: Path) -> None:
    """Cut, reset and canceled streams end individually. The others continue (C20, K05 and K14)."""
    with (
        MisbehavingServer() as server,
        nghttpx(server.port, authority.certificate(), tmp_path) as proxy,
    ):
        server.script(steps.chunked_head(content_type="text/event-stream"), steps.chunk(CHUNK),
                      steps.sleep(0.9), steps.reset(), path="/cut", times=None)  # fmt: skip
        server.script(*SILENT_STREAM, path="/stall", times=None)
        server.script(steps.sleep(1), FINE, path="/good", times=None)

        async def main() -> None:
            async with polymux.AsyncClient(proxy.url, KEY, verify=proxy.ca, retry=0) as client:

                def on(path: str) -> polymux.AsyncClient:
                    return client.with_options(paths={"chat": path, "free_chat": path})

                async def cut() -> None:
                    stream = await on("/cut").chat("x", stream=True)
                    with pytest.raises(errors.StreamInterruptedError):
                        async for _ in stream:
                            pass
                    assert stream.text == "x"

                async def stalled() -> None:
                    stream = await on("/stall").chat("x", stream=True)
                    await anext(stream)
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(anext(stream), 0.5)

                async def late() -> None:
                    with pytest.raises(errors.RequestTimeoutError):
                        await on("/stall").free_chat("x", timeout=0.5)

                async def good() -> None:
                    assert (await on("/good").free_chat("x")).text == "fine"

                await asyncio.gather(
                    *(one() for one in (cut, stalled, late, good) for _ in range(5))
                )

        asyncio.run(main())
        assert eventually(lambda: not [one for one in server.open_connections if one.requests
                                       and one.requests[-1].path == "/stall"])  # fmt: skip
