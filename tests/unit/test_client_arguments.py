from __future__ import annotations

from typing import Any

import polymux
import pytest
from polymux import errors
from polymux.errors import InvalidRequestError

URL = "http://127.0.0.1:1"
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"verify": None}, TypeError, "verify.*NoneType"),
    ({"verify": ""}, InvalidRequestError, "verify"),
    ({"verify": "a\0b"}, InvalidRequestError, "verify"),
    ({"client_certificate": 5}, TypeError, "client_certificate.*int"),
    ({"client_certificate": b"a\0"}, InvalidRequestError, "client_certificate"),
    ({"headers": [("X-A", "b")]}, TypeError, "headers.*list"),
    ({"headers": {"X-A": "b" * 65_537}}, InvalidRequestError, "X-A.*65537"),
    ({"paths": "/x"}, TypeError, "paths.*str"),
    ({"api_key": "k" * 65_537}, InvalidRequestError, "api_key.*65537"),
    ({"timeout": float("nan")}, InvalidRequestError, "total.*nan"),
    ({"timeout": True}, TypeError, "total.*bool"),
]


@pytest.mark.parametrize(("given", "kind", "named"), WRONG)
@pytest.mark.parametrize("client", [polymux.Client, polymux.AsyncClient])
def test_wrong_arguments(
    client: Any, given: dict[str, Any], kind: type[Exception], named: str
) -> None:
    with pytest.raises(kind, match=named) as caught:
        client(URL, **given)
    assert "kkkk" not in str(caught.value)


def test_requests_by_name() -> None:
    client = polymux.Client(URL, retry=0)
    with pytest.raises(TypeError, match=r"operation.*int"):
        client.request(5)  # type: ignore[arg-type]
    for name in ("nothing", "", "../chat"):
        with pytest.raises(InvalidRequestError, match=rf"operation.*{name}"):
            client.request(name)
    with pytest.raises(InvalidRequestError, match="messages"):
        client.request("freellm", message="x")
    # Fields by keyword and in a mapping are equal. Both calls get as far as the connection.
    for given in ({"fields": {"messages": "x"}}, {"messages": "x"}):
        with pytest.raises(errors.ConnectError):
            client.request("freellm", **given)


@pytest.mark.parametrize("proxy", ["http://[::1", "http://p:99999", "http://p:0", "http://:80"])
def test_a_proxy_that_cannot_be_one(proxy: str) -> None:
    with (
        polymux.Client(URL, proxy=proxy) as client,
        pytest.raises(InvalidRequestError, match="proxy"),
    ):
        client.free_chat("x")
