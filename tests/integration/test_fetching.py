"""The fetcher with SSRF protection and local servers: responses, redirects, credentials, TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux import errors
from polymux.fetch.fetcher import Fetched, FetchLimits, FetchPolicy, fetch
from support.fetches import answering, failure, got
from support.http_server import Server
from support.video_site import certified

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange, Script


def test_an_answer_comes_as_it_was_sent() -> None:
    body = bytes(range(256)) * 4096
    script = answering(200, body, "Content-Type: Audio/Mpeg; q=1", "X-Two: a", "x-two: b")
    with Server(script) as server:
        fetched = got(server, "/a?b=c#d")
    assert fetched.data == body
    assert fetched.url == server.url("/a?b=c")
    assert (fetched.status, fetched.ok, fetched.redirects) == (200, True, 0)
    assert fetched.content_type == "Audio/Mpeg; q=1"
    assert fetched.header("X-TWO") == "a"
    assert fetched.headers[2:] == (("X-Two", "a"), ("x-two", "b"))
    assert fetched.body_bytes == fetched.received_bytes == len(body)
    assert fetched.header("absent") is None
    assert "b=c" not in repr(fetched)
    asked = dict(server.requests[0].headers)
    assert asked["User-Agent"].startswith("polymux/")
    assert asked["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("status", [204, 404, 429, 500])
def test_a_status_is_a_result(status: int) -> None:
    body = b"" if status == 204 else b"no"
    with Server(answering(status, body, "WWW-Authenticate: Basic")) as server:
        fetched = got(server)
    assert (fetched.status, fetched.data, fetched.ok) == (status, body, status == 204)
    assert server.connections == 1


def hops(*locations: str, status: int = 302) -> Script:
    """Redirect request n to location n, then answer 200."""
    left = list(locations)

    async def script(exchange: Exchange) -> None:
        if left:
            await exchange.answer(status, b"not this", f"Location: {left.pop(0)}")
        else:
            await exchange.answer(200, b"this")

    return script


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (301, "/b"),
        (302, "b"),
        (303, "?b"),
        (307, "//{host}/b"),
        (308, "http://{host}/b"),
        (302, "#b"),
    ],
)
def test_redirects_are_followed(status: int, location: str) -> None:
    """The redirected request has only the required headers."""
    with Server(answering()) as server:
        server.script = hops(location.format(host=server.authority), status=status)
        fetched = got(server, "/a/b")
    assert (fetched.data, fetched.redirects) == (b"this", 1)
    assert server.connections == 2
    for exchange in server.requests:
        assert [name for name, _ in exchange.headers] == [
            "Host", "User-Agent", "Accept", "Accept-Encoding",
        ]  # fmt: skip


def test_a_redirect_without_a_place_and_a_refresh_are_answers() -> None:
    for status in (300, 304, 305, 306):
        with Server(answering(status, b"", "Location: /b")) as server:
            assert got(server).status == status
    body = b'<meta http-equiv="refresh" content="0; url=/b"><video src="/c">'
    with Server(answering(302, body, "Refresh: 0; url=/b")) as server:
        fetched = got(server)
    assert (fetched.status, fetched.data, server.connections) == (302, body, 1)


def test_five_redirects_and_no_more() -> None:
    with Server(hops(*(f"/{n}" for n in range(5)))) as server:
        assert got(server).redirects == 5
    with Server(hops(*(f"/{n}" for n in range(6)))) as server:
        error = failure(errors.URLRefusedError, server)
    assert error.limit == "redirects"
    assert server.connections == 6
    with Server(answering(302, b"", "Location: /")) as server:
        failure(errors.URLRefusedError, server)
        assert server.connections == 6
        failure(errors.URLRefusedError, server, limits=FetchLimits(redirects=0))
        assert server.connections == 7


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "http:b", "///{host}/", "//user:secret@{host}/", "\\\\{host}/", "/%zz",
     "", "http://127.0.0.2:{port}/", "//[::1]:{port}/", "/" + "a" * 9000],
)  # fmt: skip
def test_redirects_are_judged_like_the_first_url(location: str) -> None:
    with Server(answering()) as server, Server(answering(), host="127.0.0.2") as decoy:
        place = location.format(host=server.authority, port=decoy.port)
        server.script = answering(302, b"", f"Location: {place}")
        error = failure(errors.URLRefusedError, server)
    assert "redirect 1" in str(error)
    assert "secret" not in repr(error)
    assert (server.connections, decoy.connections) == (1, 0)


def test_two_different_places_are_none() -> None:
    with Server(answering(302, b"", "Location: /a", "Location: /b")) as server:
        failure(errors.URLRefusedError, server)
    assert server.connections == 1


def test_a_redirect_with_an_endless_body_costs_nothing() -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.target == "/b":
            await exchange.answer(200, b"this")
            return
        await exchange.send(b"HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n")
        while True:
            await exchange.send(b"x" * 65536)

    with Server(script) as server:
        assert got(server, limits=FetchLimits(body_bytes=10)).data == b"this"


def test_nobody_listens() -> None:
    with Server(answering()) as server:
        pass
    failure(errors.ConnectError, server)


def test_cookies_are_not_kept() -> None:
    cookie = "Set-Cookie: a=b; Path=/"

    async def script(exchange: Exchange) -> None:
        if exchange.target == "/":
            await exchange.answer(302, b"", cookie, "Location: /b")
        else:
            await exchange.answer(200, b"", cookie)

    with Server(script) as server:
        got(server)
        got(server)
    assert len(server.requests) == 4
    assert all(name != "Cookie" for each in server.requests for name, _ in each.headers)


def test_proxies_and_netrc_of_the_machine_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Server(answering()) as server, Server(answering(), host="127.0.0.2") as decoy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://{decoy.authority}/")
            monkeypatch.setenv(name.upper(), f"http://{decoy.authority}/")
        entry = f"machine {server.host} login planted password secret\ndefault login a password b\n"
        (tmp_path / ".netrc").write_text(entry)
        (tmp_path / ".curlrc").write_text(f'proxy = "http://{decoy.authority}/"\n')
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        monkeypatch.setenv("CURL_HOME", str(tmp_path))
        got(server)
        assert decoy.connections == 0
    assert "Authorization" not in dict(server.requests[0].headers)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    return certified(folder, "IP:127.0.0.1").with_name("both.pem")


def secure(server: Server, bundle: Path | None, path: str = "/") -> Fetched:
    policy = FetchPolicy(allowed_hosts=(server.authority,), certificate_bundle=bundle)
    return fetch(server.url(path), policy=policy)


def test_certificates_are_checked(certificates: Path) -> None:
    with Server(answering(200, b"safe"), certificate=certificates) as server:
        assert secure(server, certificates.with_name("certificate.pem")).data == b"safe"
        with pytest.raises(errors.TLSError):
            secure(server, None)
        with pytest.raises(errors.TLSError):
            secure(server, certificates.with_name("missing.pem"))
    other = Server(answering(), host="127.0.0.2", certificate=certificates)
    with other, pytest.raises(errors.TLSError):
        secure(other, certificates.with_name("certificate.pem"))
    assert other.requests == []


def test_https_leads_to_https_alone(certificates: Path) -> None:
    bundle = certificates.with_name("certificate.pem")
    with (
        Server(answering(200, b"plain")) as plain,
        Server(answering(), certificate=certificates) as safe,
    ):
        policy = FetchPolicy(
            allowed_hosts=(plain.authority, safe.authority), certificate_bundle=bundle
        )
        safe.script = answering(302, b"", f"Location: {plain.url()}")
        with pytest.raises(errors.URLRefusedError, match=r"\bhttps\b.*\bhttp\b"):
            fetch(safe.url(), policy=policy)
        assert plain.connections == 0
        safe.script = answering(200, b"safe")
        plain.script = answering(302, b"", f"Location: {safe.url()}")
        assert fetch(plain.url(), policy=policy).data == b"safe"
