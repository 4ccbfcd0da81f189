"""What a stranger gives a client: wrong arguments are told by name, before anything is sent."""

from __future__ import annotations

from typing import Any

import polymux
import pytest
from polymux import errors
from polymux.errors import InvalidRequestError

URL = "http://127.0.0.1:1"
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"verify": None}, TypeError, "verify: a bool or a path, not NoneType"),
    ({"verify": ""}, InvalidRequestError, "verify: the path is empty"),
    ({"verify": "a\0b"}, InvalidRequestError, "verify: the path .* a zero byte"),
    ({"client_certificate": 5}, TypeError, "client_certificate: a path or None, not int"),
    ({"client_certificate": b"a\0"}, InvalidRequestError, "client_certificate: the path"),
    ({"headers": [("X-A", "b")]}, TypeError, "headers: a mapping such as a dict, not list"),
    ({"headers": {"X-A": "b" * 65_537}}, InvalidRequestError, "X-A has 65537 characters"),
    ({"paths": "/x"}, TypeError, "paths: a mapping such as a dict, not str"),
    ({"api_key": "k" * 65_537}, InvalidRequestError, "api_key: has 65537 characters"),
    ({"timeout": float("nan")}, InvalidRequestError, "total=nan"),
    ({"timeout": True}, TypeError, "total: a number of seconds, not bool"),
]


@pytest.mark.parametrize(("given", "kind", "words"), WRONG)
@pytest.mark.parametrize("client", [polymux.Client, polymux.AsyncClient])
def test_wrong_arguments(
    client: Any, given: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        client(URL, **given)
    assert "kkkk" not in str(caught.value)


def test_requests_by_name() -> None:
    client = polymux.Client(URL, retry=0)
    with pytest.raises(TypeError, match="operation is a str, not int"):
        client.request(5)  # type: ignore[arg-type]
    for name in ("nothing", "", "../chat"):
        with pytest.raises(InvalidRequestError, match="there is no operation"):
            client.request(name)
    with pytest.raises(InvalidRequestError, match="messages"):
        client.request("freellm", message="x")
    # Fields by keyword and in a mapping are the same: only now is somebody asked.
    for given in ({"fields": {"messages": "x"}}, {"messages": "x"}):
        with pytest.raises(errors.ConnectError):
            client.request("freellm", **given)


@pytest.mark.parametrize("proxy", ["http://[::1", "http://p:99999", "http://p:0", "http://:80"])
def test_a_proxy_that_cannot_be_one(proxy: str) -> None:
    """Told as every other wrong argument, and not as `urlsplit` has it."""
    with (
        polymux.Client(URL, proxy=proxy) as client,
        pytest.raises(InvalidRequestError, match="proxy: its host or port cannot be one"),
    ):
        client.free_chat("x")
