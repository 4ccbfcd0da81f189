"""CA files, client certificates and proxies set by argument, variable, file or option (K13)."""

from __future__ import annotations

import itertools
import json
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux.config import configuration
from polymux.fetch.fetcher import FetchPolicy, fetch
from servers.certificates import Authority
from servers.misbehaving import MisbehavingServer
from support.client_calls import FINE, KINDS, called
from support.client_children import KEY
from support.client_children import run as run_child
from support.commands import call, run

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Prints the outcomes of a call, an awaited call and a fetch.
ASK = """
from polymux.errors import TLSError
from polymux.fetch.fetcher import FetchPolicy, fetch

def outcome(call):
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

def outcomes():
    return [outcome(ask), outcome(lambda: asyncio.run(awaited())), outcome(fetched)]
"""
#: Runs each set of variables in its own process, because a process reads them once.
IN_FORKS = """
for variables in json.loads(sys.argv[2]):
    child = os.fork()
    if child == 0:
        os.environ.update(variables)
        say(json.dumps(outcomes()))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
        "POLYMUX_CA_FILE", "POLYMUX_CLIENT_CERTIFICATE", "POLYMUX_PROXY",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def strict(authority: Authority) -> Iterator[MisbehavingServer]:
    """A server that requires a client certificate of the test authority."""
    context = authority.certificate().context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca)
    with MisbehavingServer(tls=context) as made:
        made.script(FINE, times=None)
        yield made


@pytest.fixture(scope="module")
def files(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files for the options and variables."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "garbage.pem").write_bytes(b"\xff" * 1000)
    (folder / "empty.pem").touch()
    # Signed none of the certificates in use.
    untrusted = Authority(tmp_path_factory.mktemp("untrusted"))
    return {
        "ours": str(authority.ca),
        "theirs": str(untrusted.ca),
        "locked": str(authority.of_a_client("secret words")),
        "missing": str(folder / "missing.pem"),
        "folder": str(folder),
        "garbage": str(folder / "garbage.pem"),
        "empty": str(folder / "empty.pem"),
        "nothing": "",
    }


def test_a_client_that_shows_a_certificate(strict: MisbehavingServer, authority: Authority) -> None:
    """The server responds only if the client has a certificate (K13)."""
    shown = authority.of_a_client()
    for kind, given in zip(KINDS, (shown, str(shown)), strict=True):

        def ask(client: Any) -> Any:
            return client.with_options(timeout=30).free_chat("x")

        options = {"verify": authority.ca, "retry": 0}
        assert called(kind, strict.url, ask, client_certificate=given, **options).text == "fine"
        with pytest.raises(errors.TransportError) as caught:
            called(kind, strict.url, ask, **options)
        assert KEY not in str(caught.value)
    assert len(strict.requests) == 2


def test_a_client_without_a_certificate(strict: MisbehavingServer, authority: Authority) -> None:
    """The error says what may be missing. With TLS 1.3, the server ends the connection late."""
    for _ in range(5):
        with pytest.raises(errors.TransportError) as caught:
            called(polymux.Client, strict.url, lambda client: client.free_chat("x"),
                   verify=authority.ca)  # fmt: skip
        assert "certificate" in str(caught.value)
        assert "getpeername" not in str(caught.value)


def test_a_file_without_certificates(files: dict[str, str], secure: MisbehavingServer) -> None:
    with pytest.raises(errors.TLSError, match="PEM"):
        called(polymux.Client, secure.url, lambda client: client.free_chat("x"),
               verify=files["garbage"])  # fmt: skip


NO_CERTIFICATES = ("missing", "empty", "garbage", "folder")


@pytest.mark.parametrize(
    ("option", "name"),
    [*itertools.product(("verify", "client_certificate"), NO_CERTIFICATES),
     ("client_certificate", "locked"), ("client_certificate", "ours")],
)  # fmt: skip
def test_files_of_certificates(
    option: str, name: str, authority: Authority, files: dict[str, str], secure: MisbehavingServer
) -> None:
    """A missing or invalid file: an error, nothing sent, no prompt for a passphrase (K13)."""
    options = {"verify": authority.ca, option: files[name]}
    with pytest.raises(errors.TLSError) as caught:
        called(polymux.Client, secure.url, lambda client: client.free_chat("x"), **options)
    assert caught.value.stage == "tls"
    assert not secure.requests


def test_the_configuration_file(
    strict: MisbehavingServer,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Paths are relative to the file. They and the proxy apply only to its server (K13)."""
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
    monkeypatch.setenv("POLYMUX_CA_FILE", str(shown))  # Not a CA of the server.
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
    """Options and variables work alike. A missing file is reported as missing (K13)."""
    ca_file, shown = str(authority.ca), str(authority.of_a_client())
    words = ("free-chat", "x", "--server", strict.url, "--retries", "0")
    files = ("--ca-file", ca_file, "--client-certificate", shown)
    assert run(*words, *files, cwd=tmp_path).stdout == b"fine\n"
    variables = {"POLYMUX_CA_FILE": ca_file, "POLYMUX_CLIENT_CERTIFICATE": shown}
    assert call(*words, cwd=tmp_path, **variables).stdout == b"fine\n"
    assert call(*words, cwd=tmp_path, code=None).returncode != 0
    for option in ("--ca-file", "--client-certificate"):
        done = call(*words, option, "missing.pem", cwd=tmp_path, code=None)
        assert done.returncode != 0
        assert {option, "'missing.pem'"} <= set(done.stderr.decode().replace(":", "").split())
    assert len(strict.requests) == 2


def test_authorities_are_parsed_once_and_looked_at_for_each_connection(
    authority: Authority, tmp_path: Path
) -> None:
    """All clients share the parsed file until the file on disk is replaced."""
    bundle = tmp_path / "authorities.pem"
    good = Path(authority.ca).read_bytes()
    bundle.write_bytes(good)
    with MisbehavingServer(tls=authority.certificate().context()) as server:
        server.script(FINE, times=None)

        def ask() -> str:
            with polymux.Client(server.url, KEY, verify=bundle, retry=0) as client:
                return client.free_chat("x").text

        assert ask() == "fine"
        # The file has the same size, time and inode, so it is not read again.
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


@pytest.fixture
def secure(authority: Authority) -> Iterator[MisbehavingServer]:
    with MisbehavingServer(tls=authority.certificate().context(), host_name="localhost") as made:
        made.script(FINE, times=None)
        yield made


VARIABLES = ("SSL_CERT_FILE", "CURL_CA_BUNDLE")
#: (SSL_CERT_FILE, CURL_CA_BUNDLE, text in the error or None).
NAMED: list[tuple[str | None, str | None, str | None]] = [
    # SSL_CERT_FILE takes precedence. An empty variable counts as unset.
    (None, "ours", None),
    ("ours", "theirs", None),
    ("ours", "missing", None),
    # If the first variable's file does not match, the second one is not tried.
    (None, "theirs", "certificate"),
    ("garbage", "ours", "certificate"),
    ("missing", "ours", "SSL_CERT_FILE"),
    (None, "missing", "CURL_CA_BUNDLE"),
]


def run_forks(code: str, url: str, variables: list[dict[str, str]], *paths: str) -> list[list[Any]]:
    lines = run_child(code + IN_FORKS, url, json.dumps(variables), *paths).splitlines()
    assert len(lines) == len(variables)
    return [json.loads(line) for line in lines]


def test_what_the_variables_name(secure: MisbehavingServer, files: dict[str, str]) -> None:
    """Calls and the fetcher use the same variables."""
    variables = [
        {name: files[file] for name, file in zip(VARIABLES, named, strict=False) if file}
        for named in NAMED
    ]
    outcomes = run_forks(ASK, secure.url, variables)
    for (_, _, words), found in zip(NAMED, outcomes, strict=True):
        if words is None:
            assert found == ["fine", "fine", 200]
        else:
            assert len(found) == 3
            assert all(isinstance(one, str) and words in one for one in found), found
    assert len(secure.requests) == 9


def test_an_argument_goes_before_the_variables(
    secure: MisbehavingServer, files: dict[str, str]
) -> None:
    code = """
ours = sys.argv[3]
def outcomes():
    return [ask(verify=ours), asyncio.run(awaited(verify=ours)), fetched(certificate_bundle=ours),
            ask(verify=False)]
"""
    variables = [dict.fromkeys(VARIABLES, files[named]) for named in ("theirs", "missing")]
    outcomes = run_forks(ASK + code, secure.url, variables, files["ours"])
    assert outcomes == [["fine", "fine", 200, "fine"]] * 2
    assert len(secure.requests) == 8
