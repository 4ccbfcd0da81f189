"""TLS of the server: allowed versions and handshake deadlines."""

from __future__ import annotations

import socket
import ssl
import time
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.errors import TLSError
from polymux.runtime.settings import Limits
from servers.certificates import Authority
from support.polymux_server import PolymuxServer
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[PolymuxServer]:
    certificate = authority.certificate()
    chat = Scripted("chat", ["free_chat", "convert_to_mp3", "read_text"])
    with PolymuxServer(
        tmp_path_factory.mktemp("tls") / "s",
        lambda: [chat],
        limits=Limits(header_s=1.0),
        tls_cert=certificate.chain,
        tls_key=certificate.key,
    ) as running:
        yield running


def test_a_client_that_trusts_the_certificate(server: PolymuxServer, authority: Authority) -> None:
    assert server.url.startswith("https://")
    with polymux.Client(server.url, server.key, verify=authority.ca) as client:
        assert client.read_text(b"x").text == "read"
        made = client.convert_to_mp3(url="https://files.example/a.wav")
        assert made.url.startswith(server.url)
        assert made.read() == b"ID3 and frames"
    with (
        polymux.Client(server.url, server.key, retry=0) as client,
        pytest.raises(TLSError, match="certificate"),
    ):
        client.read_text(b"x")


def address_of(server: PolymuxServer) -> tuple[str, int]:
    host, _, port = server.url.removeprefix("https://").rpartition(":")
    return host, int(port)


def closed_after_s(connection: socket.socket) -> float:
    began = time.monotonic()
    connection.settimeout(30)
    try:
        while connection.recv(1000):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


def test_a_handshake_that_does_not_go_on(server: PolymuxServer) -> None:
    """The header deadline closes connections that send nothing or half of the first message."""
    hello = ssl.MemoryBIO()
    context = ssl.create_default_context()
    half = context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    for data in (b"", hello.read()[:100]):
        with socket.create_connection(address_of(server), 10) as connection:
            connection.sendall(data)
            assert closed_after_s(connection) > 0.5


def test_old_tls(server: PolymuxServer, authority: Authority) -> None:
    """`test_serve_options.py` tests connections without TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.ca)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(address_of(server), 10) as connection,
        pytest.raises((ssl.SSLError, ConnectionResetError)),
    ):
        context.wrap_socket(connection, server_hostname="localhost")


def test_the_server_stops_beside_a_peer_that_does_not_close(
    tmp_path: Path, authority: Authority
) -> None:
    """The peer does not answer close_notify. The server stops without waiting for it."""
    certificate = authority.certificate()
    context = ssl.create_default_context(cafile=str(authority.ca))
    chat = Scripted("chat", ["free_chat"])
    with ExitStack() as peers:
        with PolymuxServer(
            tmp_path / "s",
            lambda: [chat],
            tls_cert=certificate.chain,
            tls_key=certificate.key,
            shutdown_timeout_s=60.0,
        ) as running:
            for _ in range(3):
                plain = peers.enter_context(socket.create_connection(address_of(running), 10))
                peer = context.wrap_socket(
                    plain, server_hostname="localhost", suppress_ragged_eofs=False
                )
                peers.callback(peer.close)
                peer.sendall(
                    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                assert b"200 OK" in peer.recv(100)
            time.sleep(0.2)
            began = time.monotonic()
        assert time.monotonic() - began < 30  # Long before the shutdown timeout of a minute.


def test_who_agrees_on_nothing_counts(tmp_path: Path, authority: Authority) -> None:
    """Connections without a handshake count toward the limit per address (S25)."""
    certificate = authority.certificate()
    limits = Limits(connections_per_address=5, header_s=30.0)
    with PolymuxServer(
        tmp_path / "s", lambda: [Scripted("ocr", ["read_text"])], limits=limits,
        tls_cert=certificate.chain, tls_key=certificate.key,
    ) as running, ExitStack() as stack:  # fmt: skip
        address = address_of(running)
        mute = [stack.enter_context(socket.create_connection(address, 10)) for _ in range(5)]
        time.sleep(0.3)
        for _ in range(3):
            with socket.create_connection(address, 10) as one_more:
                closed_after_s(one_more)
        for one in mute[:2]:
            one.close()
        time.sleep(0.3)
        with polymux.Client(running.url, running.key, verify=authority.ca) as client:
            assert client.read_text(b"x").text == "read"
        for one in mute[2:]:
            one.close()
        until(lambda: running.server.open_connections == 0)
