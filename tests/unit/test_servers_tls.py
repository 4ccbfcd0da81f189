"""Certificates of every flavour, and a proxy that speaks HTTP/2; the curl program is the client."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest
from servers import proxies, steps
from servers.certificates import Authority
from servers.misbehaving import MisbehavingServer
from support import raw_http
from support.programs import ProgramError, environment, find

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servers.certificates import Flavour


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def curl(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [find("curl"), "--silent", "--show-error", "--max-time", "10", "--noproxy", "*"]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=20, check=False,
        env=environment(),
    )  # fmt: skip


def test_a_good_certificate(authority: Authority) -> None:
    tls = authority.certificate().context()
    for host_name in ("127.0.0.1", "localhost"):
        with MisbehavingServer(tls=tls, host_name=host_name) as server:
            server.script(steps.answer(200, b"over TLS"))
            done = curl("--cacert", authority.ca, "--ipv4", "--data", "x", server.url)
            assert (done.stdout, done.stderr) == ("over TLS", "")
            (request,) = server.requests
            assert request.connection.tls_version == "TLSv1.3"
            assert server.wait_closed(request.connection).tls_error is None


@pytest.mark.parametrize(
    ("flavour", "status", "message"),
    [
        ("expired", 60, "certificate has expired"),
        ("wrong_name", 60, "no alternative certificate subject name matches"),
        ("self_signed", 60, "self-signed certificate"),
        ("tls_1_0", 35, "protocol|legacy sigalg"),
        ("bad_cipher", 35, "handshake failure|SSL_ERROR_SYSCALL"),
    ],
)
def test_flavours_that_a_client_refuses(
    authority: Authority, flavour: Flavour, status: int, message: str
) -> None:
    with MisbehavingServer(tls=authority.certificate(flavour).context()) as server:
        server.script(steps.answer(200, b"secret"), times=None)
        done = curl("--cacert", authority.ca, "--data", "x", server.url)
        assert done.returncode == status
        assert any(part in done.stderr for part in message.split("|")), done.stderr
        assert done.stdout == ""
        assert server.requests == []
        (connection,) = server.wait_connections(1)
        server.wait_closed(connection)


def test_what_is_refused_is_really_served(authority: Authority) -> None:
    """The certificates are wrong in one thing only: a client that looks away gets its answer."""
    looks_away: list[tuple[Flavour, list[str]]] = [
        ("expired", []), ("wrong_name", []), ("self_signed", []),
        ("tls_1_0", ["--tlsv1.0", "--ciphers", "ALL:@SECLEVEL=0"]),
        ("bad_cipher", ["--ciphers", "eNULL:@SECLEVEL=0"]),
    ]  # fmt: skip
    for flavour, options in looks_away:
        with MisbehavingServer(tls=authority.certificate(flavour).context()) as server:
            server.script(steps.answer(200, b"served"))
            assert curl("--insecure", *options, server.url).stdout == "served", flavour
            version = server.requests[0].connection.tls_version
            older = {"tls_1_0": "TLSv1", "bad_cipher": "TLSv1.2"}
            assert version == older.get(flavour, "TLSv1.3")


@pytest.mark.parametrize(
    ("end", "error"),
    [(steps.close, None), (steps.half_close, ssl.SSLEOFError), (steps.reset, OSError)],
)
def test_ends_of_a_stream_under_tls(
    authority: Authority, end: Callable[[], steps.Step], error: type[OSError] | None
) -> None:
    trusting = ssl.create_default_context(cafile=authority.ca)
    with MisbehavingServer(tls=authority.certificate().context()) as server:
        server.script(steps.send(b"data: 1\n\n"), steps.sleep(0.1), end(), steps.stall())
        with (
            raw_http.connect(server) as plain,
            trusting.wrap_socket(
                plain, server_hostname="localhost", suppress_ragged_eofs=False
            ) as peer,
        ):
            peer.sendall(raw_http.post())
            assert peer.recv(100) == b"data: 1\n\n"
            with pytest.raises(error) if error else contextlib.nullcontext():
                assert peer.recv(100) == b""


def test_a_proxy_speaks_http_2(authority: Authority, tmp_path: Path) -> None:
    with MisbehavingServer() as server:
        server.script(steps.answer(200, b"one", [("X-Upstream", "yes")]), times=2)
        server.script(
            steps.event_stream(), steps.send(b"data: 1\n\n"), steps.sleep(0.1), steps.close()
        )
        with proxies.nghttpx(server.port, authority.certificate(), tmp_path) as proxy:
            trusting = ["--cacert", authority.ca, "--write-out", " %{http_version}"]
            post = [*trusting, "--header", "Authorization: Bearer x", "--data", "abc", proxy.url]
            assert curl("--http2", *post).stdout == "one 2"
            assert curl("--http1.1", *post).stdout == "one 1.1"
            assert curl("--http2", *post).stdout == "data: 1\n\n 2"
        first = server.requests[0]
        assert (first.body, first.header("authorization")) == (b"abc", "Bearer x")
    with pytest.raises(ProcessLookupError):
        os.killpg(proxy.pid, 0)


def test_a_proxy_that_does_not_start_says_why(authority: Authority, tmp_path: Path) -> None:
    certificate = authority.certificate()
    certificate = type(certificate)("good", tmp_path / "missing.pem", certificate.key, authority.ca)
    with (
        pytest.raises(ProgramError, match=r"missing\.pem"),
        proxies.nghttpx(9, certificate, tmp_path),
    ):
        pass
