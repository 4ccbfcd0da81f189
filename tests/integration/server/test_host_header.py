"""Links always use the configured URL, whatever Host a client sends (A13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.polymux_server import Box, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.polymux_server import Answer

PUBLIC = "https://tools.example/all"
EVIL = "evil.example"
#: Header fields of a proxy, which any client can forge.
FORWARDED = [("X-Forwarded-Host", EVIL), ("X-Forwarded-Proto", "gopher"),
             ("Forwarded", f"host={EVIL};proto=gopher")]  # fmt: skip
SMALL = b"ID3 and frames"


@pytest.fixture
def public(tmp_path: Path) -> Iterator[PolymuxServer]:
    """A server behind a proxy without configured hosts, so any Host is accepted."""
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()], public_url=PUBLIC) as running:
        running.url = f"http://127.0.0.1:{running.state.settings.port}"
        yield running


def seen(answer: Answer) -> str:
    """All parts of a response that may contain a link."""
    return "\n".join([*answer.lines, answer.body.decode()])


@pytest.mark.parametrize("host", [EVIL, f"{EVIL}:1", "127.0.0.1:9", "localhost"])
def test_links_begin_as_the_settings_say(public: PolymuxServer, host: str) -> None:
    """Links to results and jobs never contain a host from the request."""
    named = [("Host", host), *FORWARDED]
    answer = public.convert(*named)
    assert answer.status == 200, answer.body
    assert answer.json()["response"].startswith(f"{PUBLIC}/media/")
    later = public.convert(*named, ("Prefer", "respond-async"))
    assert later.status == 202
    assert later.headers["location"] == later.json()["urls"]["get"]
    assert all(one.startswith(f"{PUBLIC}/") for one in later.json()["urls"].values())
    listed = public.ask("GET", "/api/v1/predictions", headers=named)
    assert listed.json()["results"][-1]["output"].startswith(f"{PUBLIC}/media/")
    page = public.ask("GET", "/", headers=named, key=None)
    assert page.headers["location"] == "page/"
    for one in (answer, later, listed, page):
        assert EVIL not in seen(one).lower()
        assert "gopher" not in seen(one)


def test_a_link_is_signed_for_its_file_and_for_no_host(public: PolymuxServer) -> None:
    """The link works under every Host. A wrong signature fails under every Host."""
    link = public.convert().json()["response"].removeprefix(PUBLIC)
    for host in ("tools.example", EVIL, f"{EVIL}:8443", "[::1]"):
        named = [("Host", host), *FORWARDED]
        answer = public.ask("GET", link, headers=named, key=None)
        assert (answer.status, answer.body) == (200, SMALL), host
        assert "location" not in answer.headers
        assert EVIL not in "\n".join(answer.lines)
        assert public.ask("HEAD", link, headers=named, key=None).status == 200
        wrong = public.ask("GET", f"{link[:-1]}x", headers=named, key=None)
        assert (wrong.status, wrong.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("settings", "ours", "others"),
    [
        ({}, ["localhost", "127.0.0.1:9", "[::1]"],
         [EVIL, "tools.example", "127.0.0.1.evil.example"]),
        ({"allowed_hosts": ("tools.example",)}, ["tools.example", "TOOLS.example:8443"],
         [EVIL, "x.tools.example", "tools.example.evil.example", "127.0.0.1"]),
        ({"allowed_hosts": ("tools.example:8443",)}, ["tools.example:8443"],
         ["tools.example", "tools.example:80"]),
    ],
)  # fmt: skip
def test_a_link_under_a_host_that_is_none_of_ours(
    tmp_path: Path, settings: dict[str, Any], ours: list[str], others: list[str]
) -> None:
    """Although a link needs no key, it returns nothing to a page that uses DNS rebinding."""
    box = Box()
    with PolymuxServer(tmp_path / "s", box.makes(), **settings) as server:
        # The test server's own health check also needs an allowed host.
        server._host = lambda: ours[0]  # type: ignore[method-assign]
        url = server.convert(("Host", ours[0])).json()["response"]
        assert url.startswith(f"{server.url}/media/")
        link = url.removeprefix(server.url)
        for host in ours:
            answer = server.ask("GET", link, headers=[("Host", host)], key=None)
            assert (answer.status, answer.body) == (200, SMALL), host
        for host in others:
            answer = server.ask("GET", link, headers=[("Host", host)], key=None)
            assert (answer.status, answer.json()["code"]) == (421, "wrong_host"), host
            assert SMALL not in answer.body
            assert server.convert(("Host", host)).status == 421
        assert len(box.backend.began) == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_checks_use_the_address_of_the_machine(tmp_path: Path, path: str) -> None:
    box = Box()
    with PolymuxServer(tmp_path / "s", box.makes(), allowed_hosts=("tools.example",)) as server:
        server._host = lambda: "tools.example"  # type: ignore[method-assign]
        for host in ("127.0.0.1:8000", "10.1.2.3:8000", "[::1]:8000", "[fd00::1]"):
            assert server.ask("GET", path, headers=[("Host", host)], key=None).status == 200
            assert server.convert(("Host", host)).status == 421
        for host in (EVIL, "10.1.2.3.evil.example", "localhost"):
            assert server.ask("GET", path, headers=[("Host", host)], key=None).status == 421


#: Problem with the Host -> a request for a link that has it.
ODD: dict[str, Callable[[str], str]] = {
    "none": lambda link: f"GET {link} HTTP/1.1\r\n",
    "two": lambda link: f"GET {link} HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
    "another as well": lambda link: f"GET {link} HTTP/1.1\r\nHost: localhost\r\nHost: {EVIL}\r\n",
    "a path in it": lambda link: f"GET {link} HTTP/1.1\r\nHost: a/b?c#d\r\n",
    "a user in it": lambda link: f"GET {link} HTTP/1.1\r\nHost: localhost@{EVIL}\r\n",
    "in the target": lambda link: f"GET http://{EVIL}{link} HTTP/1.1\r\nHost: localhost\r\n",
}


@pytest.mark.parametrize("name", ODD)
def test_a_link_with_an_odd_host(public: PolymuxServer, name: str) -> None:
    """Returns no file, even with a valid signature."""
    link = public.convert().json()["response"].removeprefix(PUBLIC)
    data = f"{ODD[name](link)}Connection: close\r\n\r\n".encode()
    answer = public.raw(data, half_close=True)
    assert (answer.status, answer.json()["code"]) == (400, "invalid_request")
    assert SMALL not in answer.body
