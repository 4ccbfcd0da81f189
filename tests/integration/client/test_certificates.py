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
from polymux.fetch.fetcher import FetchPolicy, fetch
from servers import steps
from servers.certificates import Authority
from servers.listeners import silent_port
from servers.misbehaving import MisbehavingServer
from support.client_children import KEY, run_json
from support.client_children import run as run_child
from support.commands import run
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GOOD = steps.answer(200, b'{"response":"fine"}')
FINE = ["fine", "fine", 200]
#: A call, an awaited call and the fetcher: what each of them came to, or its words.
ASK = """
from polymux.errors import TLSError
from polymux.fetch.fetcher import FetchPolicy, fetch

def told(call):
    try:
        return call()
    except TLSError as error:
        return str(error)

def ask(**options):
    with polymux.Client(url, key, retry=0, **options) as client:
        return client.free_chat("x").text

async def awaited(**options):
    async with polymux.AsyncClient(url, key, retry=0, **options) as client:
        return (await client.free_chat("x")).text

def fetched(**options):
    host = url.removeprefix("https://")
    return fetch(url + "/a", policy=FetchPolicy(allowed_hosts=(host,), **options)).status

def all_told():
    return [told(ask), told(lambda: asyncio.run(awaited())), told(fetched)]
"""
TELL = "say(json.dumps(all_told()))"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
        "POLYMUX_CA_FILE", "POLYMUX_CLIENT_CERTIFICATE", "POLYMUX_PROXY",
    ):  # fmt: skip
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
    with pytest.raises(errors.InvalidRequestError, match="ca_file"):
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


@pytest.mark.skipif(SANITIZED, reason="a child waits for locks of the sanitizer's own malloc")
def test_authorities_in_many_threads_and_in_children(authority: Authority) -> None:
    with MisbehavingServer(tls=authority.certificate().context()) as server:
        server.script(GOOD, times=None)
        run_child(FORKING, server.url, str(authority.ca))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Another authority, which signed nothing that is asked for here."""
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture
def secure(authority: Authority) -> Iterator[MisbehavingServer]:
    with MisbehavingServer(tls=authority.certificate().context(), host_name="localhost") as made:
        made.script(GOOD, times=None)
        yield made


@pytest.fixture
def files(authority: Authority, stranger: Authority, tmp_path: Path) -> dict[str, str]:
    """What a variable may name."""
    (tmp_path / "garbage.pem").write_bytes(b"\xff" * 1000)
    return {
        "ours": str(authority.ca),
        "theirs": str(stranger.ca),
        "missing": str(tmp_path / "missing.pem"),
        "folder": str(tmp_path),
        "garbage": str(tmp_path / "garbage.pem"),
        "nothing": "",
    }


def variables(files: Mapping[str, str], **named: str) -> dict[str, str]:
    return {name: files[file] for name, file in named.items()}


@pytest.mark.parametrize(
    "named",
    [
        {"SSL_CERT_FILE": "ours"},
        {"CURL_CA_BUNDLE": "ours"},
        {"SSL_CERT_FILE": "ours", "CURL_CA_BUNDLE": "theirs"},
        {"SSL_CERT_FILE": "ours", "CURL_CA_BUNDLE": "missing"},
        {"SSL_CERT_FILE": "nothing", "CURL_CA_BUNDLE": "ours"},
    ],
    ids=str,
)
def test_a_variable_that_trusts_the_server(
    named: dict[str, str], secure: MisbehavingServer, files: dict[str, str]
) -> None:
    """SSL_CERT_FILE goes first; one without a value is none."""
    told = run_json(ASK + TELL, secure.url, environment=variables(files, **named))
    assert told == FINE
    assert len(secure.requests) == 3


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({}, "certificate"),
        ({"SSL_CERT_FILE": "nothing", "CURL_CA_BUNDLE": "nothing"}, "certificate"),
        ({"SSL_CERT_FILE": "theirs"}, "certificate"),
        ({"CURL_CA_BUNDLE": "theirs"}, "certificate"),
        ({"SSL_CERT_FILE": "theirs", "CURL_CA_BUNDLE": "ours"}, "certificate"),
        ({"SSL_CERT_FILE": "garbage"}, ""),  # OpenSSL has no word for it.
    ],
    ids=str,
)
def test_a_variable_that_does_not(
    named: dict[str, str], words: str, secure: MisbehavingServer, files: dict[str, str]
) -> None:
    """What the first one names counts; nobody looks further for one that fits."""
    told = run_json(ASK + TELL, secure.url, environment=variables(files, **named))
    assert len(told) == 3
    for one in told:
        assert isinstance(one, str)
        assert words in one
    assert not secure.requests


@pytest.mark.parametrize(
    ("named", "by"),
    [
        ({"SSL_CERT_FILE": "missing"}, "SSL_CERT_FILE"),
        ({"CURL_CA_BUNDLE": "missing"}, "CURL_CA_BUNDLE"),
        ({"SSL_CERT_FILE": "missing", "CURL_CA_BUNDLE": "ours"}, "SSL_CERT_FILE"),
        ({"SSL_CERT_FILE": "folder"}, "SSL_CERT_FILE"),
    ],
    ids=str,
)
def test_a_variable_that_names_no_file(
    named: dict[str, str], by: str, secure: MisbehavingServer, files: dict[str, str]
) -> None:
    """The error of all calls and the fetcher says which variable; no other file is taken for it."""
    told = run_json(ASK + TELL, secure.url, environment=variables(files, **named))
    assert len(told) == 3
    for one in told:
        assert f"{by} names is no readable file" in one
    assert not secure.requests


def test_an_argument_goes_before_the_variables(
    secure: MisbehavingServer, files: dict[str, str]
) -> None:
    code = """
assert ask(verify=sys.argv[2]) == "fine"
assert asyncio.run(awaited(verify=sys.argv[2])) == "fine"
assert fetched(certificate_bundle=sys.argv[2]) == 200
assert ask(verify=False) == "fine"
"""
    for named in ("theirs", "missing"):
        environment = variables(files, SSL_CERT_FILE=named, CURL_CA_BUNDLE=named)
        run_child(ASK + code, secure.url, files["ours"], environment=environment)
    assert len(secure.requests) == 8


def test_the_variables_are_read_once(secure: MisbehavingServer, files: dict[str, str]) -> None:
    """At the first need in the process; what they say later holds for none of its clients."""
    code = """
def name(file):
    os.environ["SSL_CERT_FILE"] = os.environ["CURL_CA_BUNDLE"] = file

first = polymux.Client(url, key, retry=0)
name(sys.argv[2])
assert first.free_chat("x").text == "fine"
for other in sys.argv[3:]:
    name(other)
    assert all_told() == ["fine", "fine", 200], other
assert first.free_chat("x").text == "fine"
first.close()
"""
    later = [files[one] for one in ("theirs", "missing", "nothing")]
    run_child(ASK + code, secure.url, files["ours"], *later)
    assert len(secure.requests) == 11
