"""Which authorities a program trusts that names none: the variables', else the system's (K13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from servers import steps
from servers.certificates import Authority
from servers.misbehaving import MisbehavingServer
from support.client_children import run, run_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

GOOD = steps.answer(200, b'{"response":"fine"}')
FINE = ["fine", "fine", 200]
#: A call, an awaited call and the fetcher: what each of them came to, or its words.
ASK = """
from polymux.errors import TLSError
from polymux.fetching import FetchPolicy, fetch

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
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "POLYMUX_CA_FILE"):
        monkeypatch.delenv(name, raising=False)


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
        run(ASK + code, secure.url, files["ours"], environment=environment)
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
    run(ASK + code, secure.url, files["ours"], *later)
    assert len(secure.requests) == 11
