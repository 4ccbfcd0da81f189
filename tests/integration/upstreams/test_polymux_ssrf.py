"""URLs in requests for another polymux server: this server's SSRF protection checks them first."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.model import Upload
from servers import media
from support.decoy_operations import REQUESTS, with_url
from support.polymux_server import form
from support.upstreams import before_reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.reference import ReferenceServer
    from support.polymux_server import Answer, PolymuxServer

METADATA = "http://169.254.169.254/latest"
ALLOWED = "10.1.2.3:8080"
#: URLs that this server allows or cannot resolve. The other server decides.
PASSED = ["https://no-such-name.invalid/x", f"http://{ALLOWED}/x", "http://203.0.113.9/x"]
PICTURE = f"data:image/png;base64,{base64.b64encode(media.png()).decode()}"
CHATS = ("chat.messages.content.image_url.url", "free_chat.image_url")


@pytest.fixture(scope="module")
def server(
    reference: ReferenceServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("addresses")
    policy = FetchPolicy(allowed_hosts=(ALLOWED,), allowed_networks=("203.0.113.0/24",))
    with before_reference(folder, reference, fetch=policy) as running:
        yield running


def asked(server: PolymuxServer, field: str, url: str, **more: Any) -> Answer:
    """Send a request with the URL in the given field."""
    described = contract.operation(field.partition(".")[0])
    given = with_url(REQUESTS[field], url) | more
    variant = next(one for one in described.variants if given.keys() <= names(one))
    path = f"{described.path}?model={variant.model}" if variant.model else described.path
    if variant.encoding == "json":
        return server.json(path, given)
    files = {
        name: ("a.png", media.png()) if isinstance(one, Upload) else one
        for name, one in given.items()
    }
    body, head = form(*files.items())
    return server.ask("POST", path, body, head)


def names(variant: contract.Variant) -> set[str]:
    return {one.name for one in variant.fields}


@pytest.mark.parametrize("url", [METADATA, "http://203.0.113.9:22/x"])
@pytest.mark.parametrize("field", REQUESTS)
def test_an_address_within_is_refused(
    server: PolymuxServer, reference: ReferenceServer, field: str, url: str
) -> None:
    """Tests every ``url`` field of the contract. The request is never forwarded."""
    before = len(reference.requests)
    answer = asked(server, field, url)
    body = answer.json()
    assert (answer.status, body["code"], body["param"]) == (400, "url_refused", field.split(".")[1])
    assert len(reference.requests) == before


def test_one_text_may_hold_several(server: PolymuxServer, reference: ReferenceServer) -> None:
    """The other server may split the text into several URLs."""
    before = len(reference.requests)
    links = f"http://203.0.113.7/a.safetensors,{METADATA}"
    answer = asked(server, "upscale_image.lora_links", links)
    body = answer.json()
    assert (answer.status, body["code"], body["param"]) == (400, "url_refused", "lora_links")
    assert len(reference.requests) == before


@pytest.mark.parametrize("field", CHATS)
def test_streams_are_judged_as_well(
    server: PolymuxServer, reference: ReferenceServer, field: str
) -> None:
    before = len(reference.requests)
    answer = asked(server, field, METADATA, stream=True)
    assert (answer.status, answer.json()["code"]) == (400, "url_refused")
    assert len(reference.requests) == before


@pytest.mark.parametrize("url", PASSED)
@pytest.mark.parametrize("field", REQUESTS)
def test_other_addresses_go_on(
    server: PolymuxServer, reference: ReferenceServer, field: str, url: str
) -> None:
    """Includes names that only the other server can resolve. It checks them itself."""
    assert asked(server, field, url).status == 200
    assert sent(reference, field) == with_url(REQUESTS[field], url)[field.split(".")[1]]


@pytest.mark.parametrize("field", CHATS)
def test_a_picture_within_the_request_goes_on(
    server: PolymuxServer, reference: ReferenceServer, field: str
) -> None:
    for stream in (False, True):
        assert asked(server, field, PICTURE, stream=stream).status == 200
        assert PICTURE in json.dumps(sent(reference, field))


@pytest.mark.parametrize("scheme", ["socks5", "SOCKS5"])
def test_proxies_of_other_kinds(
    server: PolymuxServer, reference: ReferenceServer, scheme: str
) -> None:
    """The check uses the host, whatever the proxy scheme is."""
    before = len(reference.requests)
    answer = asked(server, "search_music.proxy", f"{scheme}://127.0.0.1:1080")
    assert (answer.status, answer.json()["code"]) == (400, "url_refused")
    assert len(reference.requests) == before
    assert asked(server, "search_music.proxy", f"{scheme}://{ALLOWED}").status == 200


def sent(reference: ReferenceServer, field: str) -> Any:
    return reference.calls[-1].body.get(field.split(".")[1])
