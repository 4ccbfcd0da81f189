"""Authorities, certificates of clients, proxies: by argument, variable, file, option (K13)."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from polymux.config import configuration
from polymux.fetching import FetchPolicy, fetch
from servers import steps
from servers.listeners import silent_port
from servers.misbehaving import MisbehavingServer
from support.client_children import KEY
from support.client_children import run as run_child
from support.commands import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.certificates import Authority

GOOD = steps.answer(200, b'{"response":"fine"}')
WAYS = ("POLYMUX_CA_FILE", "POLYMUX_CLIENT_CERTIFICATE", "POLYMUX_PROXY")


@pytest.fixture(autouse=True)
def _no_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WAYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def strict(authority: Authority) -> Iterator[MisbehavingServer]:
    """Speaks to clients alone that show a certificate of the authority's."""
    context = authority.certificate().context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca)
    with MisbehavingServer(tls=context) as made:
        made.script(GOOD, times=None)
        yield made


def test_a_client_that_shows_a_certificate(strict: MisbehavingServer, authority: Authority) -> None:
    """K13: with it the server answers, in calls and in asyncio; without it nobody is asked."""
    options = {"verify": authority.ca, "retry": 0}
    shown = authority.of_a_client()
    with polymux.Client(strict.url, KEY, client_certificate=shown, **options) as client:
        assert client.free_chat("x").text == "fine"
        assert client.with_options(timeout=30).free_chat("x").text == "fine"

    async def main() -> None:
        async with polymux.AsyncClient(
            strict.url, KEY, client_certificate=str(shown), **options
        ) as client:
            assert (await client.free_chat("x")).text == "fine"

    asyncio.run(main())
    assert len(strict.requests) == 3
    with (
        polymux.Client(strict.url, KEY, **options) as client,
        pytest.raises(errors.TransportError) as caught,
    ):
        client.free_chat("x")
    assert KEY not in str(caught.value)
    assert len(strict.requests) == 3


def test_certificates_that_are_none(authority: Authority, tmp_path: Path) -> None:
    """K13: missing, no certificate, without its key, locked: told, and no terminal is asked."""
    (tmp_path / "garbage.pem").write_bytes(b"\xff" * 1000)
    files = [
        tmp_path / "missing.pem",
        tmp_path / "garbage.pem",
        authority.ca,
        authority.of_a_client("secret words"),
    ]
    with silent_port() as port:  # Nothing is needed of a server to see it.
        url = f"https://127.0.0.1:{port}"
        for file in files:
            with polymux.Client(
                url, KEY, verify=authority.ca, client_certificate=file, retry=0
            ) as client:
                with pytest.raises(errors.TLSError) as caught:
                    client.free_chat("x", timeout=60)
                assert caught.value.stage == "tls"


def test_the_configuration_file(
    strict: MisbehavingServer,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K13: its paths begin with its folder; they and the proxy are for its own server alone."""
    shown = authority.of_a_client()
    for name, source in (("authority.pem", authority.ca), ("shown.pem", shown)):
        (tmp_path / name).write_bytes(source.read_bytes())
    file = tmp_path / "config.toml"
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    lines = f'base_url = "{strict.url}"\nca_file = "authority.pem"\n'
    file.write_text(f'{lines}client_certificate = "shown.pem"\n')
    with polymux.Client(retry=0) as client:
        assert client.free_chat("x").text == "fine"
    with polymux.Client(strict.url, KEY, chat_model="m", retry=0) as client:
        assert client.free_chat("x").text == "fine"
    monkeypatch.setenv("POLYMUX_CA_FILE", str(shown))  # Which signs for nobody.
    with polymux.Client(retry=0) as client, pytest.raises(errors.TLSError):
        client.free_chat("x")
    with polymux.Client(retry=0, verify=authority.ca) as client:
        assert client.free_chat("x").text == "fine"
    monkeypatch.delenv("POLYMUX_CA_FILE")
    file.write_text(f'{lines}proxy = "http://user:hidden@127.0.0.1:1"\n')
    other = configuration("http://127.0.0.1:9")
    assert (other.ca_file, other.client_certificate, other.proxy) == (None, None, None)
    own = configuration()
    assert own.proxy == "http://user:hidden@127.0.0.1:1"
    assert "hidden" not in repr(own)
    file.write_text("ca_file = 5\n")
    with pytest.raises(errors.InvalidRequestError, match="ca_file in the configuration file"):
        configuration("http://127.0.0.1:9")


def test_options_of_the_command_line(
    strict: MisbehavingServer, authority: Authority, tmp_path: Path
) -> None:
    """K13: the same by options and by variables; a file that is not there is told as that."""
    ca_file, shown = str(authority.ca), str(authority.of_a_client())
    words = ("free-chat", "x", "--server", strict.url, "--retries", "0")
    files = ("--ca-file", ca_file, "--client-certificate", shown)
    assert run(*words, *files, cwd=tmp_path).stdout == b"fine\n"
    variables = {"POLYMUX_CA_FILE": ca_file, "POLYMUX_CLIENT_CERTIFICATE": shown}
    assert run(*words, cwd=tmp_path, **variables).stdout == b"fine\n"
    assert run(*words, cwd=tmp_path, code=None).returncode != 0
    for option in ("--ca-file", "--client-certificate"):
        done = run(*words, option, "missing.pem", cwd=tmp_path, code=None)
        assert done.returncode != 0
        assert f"{option}: cannot read 'missing.pem': No such file".encode() in done.stderr
    assert len(strict.requests) == 2


def test_a_proxy_by_option_and_variable(tmp_path: Path) -> None:
    """K12: and its password is in no message."""
    with MisbehavingServer() as proxy:
        proxy.script(GOOD, times=None)
        words = ("free-chat", "x", "--server", "http://server.example", "--retries", "0")
        assert run(*words, "--server-proxy", proxy.url, cwd=tmp_path).stdout == b"fine\n"
        assert run(*words, cwd=tmp_path, POLYMUX_PROXY=proxy.url).stdout == b"fine\n"
        targets = [one.target for one in proxy.requests]
        assert targets == ["http://server.example/api/v1/freellm"] * 2
        for wrong in ("http://user:hidden-word@127.0.0.1:1", "user:hidden-word@127.0.0.1"):
            done = run(*words, "--server-proxy", wrong, cwd=tmp_path, code=None)
            assert done.returncode != 0
            assert b"hidden-word" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("free-chat", "x", "--local"),
        ("batch", "read-text", "a.png", "--out", "out"),
        ("convert-to-mp3", "a.wav"),
    ],
)
def test_options_that_need_a_server(words: tuple[str, ...], tmp_path: Path) -> None:
    """Of no use without one, they are refused instead of being passed over."""
    for option, value in (("--ca-file", "a.pem"), ("--server-proxy", "http://127.0.0.1:1")):
        done = run(*words, option, value, cwd=tmp_path, code=2)
        assert f"no use for {option}".encode() in done.stderr


def test_authorities_are_parsed_once_and_looked_at_for_each_connection(
    authority: Authority, tmp_path: Path
) -> None:
    """However many clients: what a file says is known until another one is in its place."""
    bundle = tmp_path / "authorities.pem"
    good = Path(authority.ca).read_bytes()
    bundle.write_bytes(good)
    with MisbehavingServer(tls=authority.certificate().context()) as server:
        server.script(GOOD, times=None)

        def ask() -> str:
            with polymux.Client(server.url, KEY, verify=bundle, retry=0) as client:
                return client.free_chat("x").text

        assert ask() == "fine"
        # The same file by all that is looked at: nobody reads it again.
        status = bundle.stat()
        with bundle.open("r+b") as file:
            file.write(b"#" * len(good))
        os.utime(bundle, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert ask() == "fine"
        host = f"localhost:{server.port}"
        policy = FetchPolicy(allowed_hosts=(host,), certificate_bundle=bundle)
        assert fetch(f"https://{host}/a", policy=policy).status == 200
        os.utime(bundle, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        with pytest.raises(errors.TLSError):
            ask()
        bundle.write_bytes(good)
        assert ask() == "fine"


#: Forked while other threads make connections, perhaps while they parse.
FORKING = """
from concurrent.futures import ThreadPoolExecutor
def ask(_=0):
    with polymux.Client(url, key, verify=sys.argv[2], retry=0) as client:
        return client.free_chat("x").text
ask()  # What is imported by another thread while a process forks, its child waits for for ever.
with ThreadPoolExecutor(16) as pool:
    begun = pool.map(ask, range(100))
    children = []
    for _ in range(10):
        os.utime(sys.argv[2])  # Parsed anew, then.
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            os._exit(ask() != "fine")
        children.append(pid)
        time.sleep(0.01)
    assert set(begun) == {"fine"}
ends = [os.waitpid(one, 0)[1] for one in children]
assert set(ends) == {0}, ends
"""


def test_authorities_in_many_threads_and_in_children(authority: Authority) -> None:
    with MisbehavingServer(tls=authority.certificate().context()) as server:
        server.script(GOOD, times=None)
        run_child(FORKING, server.url, str(authority.ca))
