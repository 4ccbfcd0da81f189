"""Certificates of every flavour, and a proxy that speaks HTTP/2; the curl program is the client."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from servers import proxies, steps
from servers.certificates import Authority
from servers.misbehaving import MisbehavingServer
from support.programs import environment, find

if TYPE_CHECKING:
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


@pytest.mark.parametrize(
    ("flavour", "status", "version", "options"),
    [
        ("good", 0, "TLSv1.3", []),
        ("expired", 60, "TLSv1.3", []),
        ("wrong_name", 60, "TLSv1.3", []),
        ("self_signed", 60, "TLSv1.3", []),
        ("tls_1_0", 35, "TLSv1", ["--tlsv1.0", "--ciphers", "ALL:@SECLEVEL=0"]),
        ("bad_cipher", 35, "TLSv1.2", ["--ciphers", "eNULL:@SECLEVEL=0"]),
    ],
)
def test_certificates_are_wrong_in_one_thing_only(
    authority: Authority, flavour: Flavour, status: int, version: str, options: list[str]
) -> None:
    """A client that looks refuses them; one that looks away gets its answer."""
    with MisbehavingServer(tls=authority.certificate(flavour).context()) as server:
        server.script(steps.answer(200, b"served"), times=None)
        assert curl("--cacert", authority.ca, "--data", "x", server.url).returncode == status
        assert len(server.requests) == (status == 0)
        assert curl("--insecure", *options, server.url).stdout == "served"
        assert server.requests[-1].connection.tls_version == version


def test_a_proxy_speaks_http_2(authority: Authority, tmp_path: Path) -> None:
    with MisbehavingServer() as server:
        server.script(steps.answer(200, b"one"), times=2)
        with proxies.nghttpx(server.port, authority.certificate(), tmp_path) as proxy:
            trusting = ["--cacert", authority.ca, "--write-out", " %{http_version}"]
            post = [*trusting, "--header", "Authorization: Bearer x", "--data", "abc", proxy.url]
            assert curl("--http2", *post).stdout == "one 2"
            assert curl("--http1.1", *post).stdout == "one 1.1"
        first = server.requests[0]
        assert (first.body, first.header("authorization")) == (b"abc", "Bearer x")
    with pytest.raises(ProcessLookupError):
        os.killpg(proxy.pid, 0)
