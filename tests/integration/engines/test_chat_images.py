"""Images in chats: uploaded or downloaded, decoded in the media process and passed to the model as
pixels.

The vision model has random weights, so the tests show that pixels arrive, not that the model
understands them.
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from PIL import Image
from polymux.errors import BadRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.runtime.settings import EngineSettings
from support.chat_model import model_path
from support.http_server import Exchange, Server
from support.polymux_server import CHAT, PolymuxServer
from support.url_corpus import urls
from support.weights import random_eyes

if TYPE_CHECKING:
    from collections.abc import Iterator

SMOLLM_WIDTH = 576


def png(colour: str, size: tuple[int, int] = (40, 30), kind: str = "PNG", **more: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, kind, **more)
    return buffer.getvalue()


def inline(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def asking(*urls: str, text: str = "What is this?") -> list[dict[str, Any]]:
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [{"type": "text", "text": text}, *pictures]}]


async def answer(exchange: Exchange) -> None:
    """/red.png is an image, /moved redirects to a private host, and /page is not an image."""
    if exchange.target == "/moved":
        await exchange.answer(302, b"", "Location: http://127.0.0.1:1/secret.png")
        return
    found = {"/red.png": png("red"), "/page": b"<html>no picture</html>"}.get(exchange.target)
    await exchange.answer(200 if found else 404, found or b"")


@pytest.fixture(scope="module")
def pictures() -> Iterator[Server]:
    with Server(answer) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pictures: Server) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("pictures")
    eyes = random_eyes(folder / "random-mmproj.gguf", SMOLLM_WIDTH)
    options = {"model": str(model_path()), "mmproj": str(eyes), "context": 256}
    engines = {"chat": EngineSettings("chat", options, threads=1)}
    policy = FetchPolicy(allowed_hosts=(pictures.authority,))
    with PolymuxServer(folder / "s", engines=engines, fetch=policy) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, server.key) as made:
        yield made


def likelihoods(client: polymux.Client, *urls: str) -> list[float]:
    answer = client.chat(
        asking(*urls), max_completion_tokens=4, temperature=0.0, seed=1, logprobs=True
    )
    assert answer.choices[0].logprobs is not None
    return [one["logprob"] for one in answer.choices[0].logprobs["content"]]


def test_pixels_reach_the_model(client: polymux.Client, pictures: Server) -> None:
    blind = client.chat("What is this?", max_completion_tokens=2)
    seen = client.chat(asking(inline(png("red"))), max_completion_tokens=2)
    assert blind.usage is not None
    assert seen.usage is not None
    # An image of 56 x 56 is 16 patches of 14 x 14 with one token each.
    assert seen.usage.prompt_tokens >= blind.usage.prompt_tokens + 16
    red = likelihoods(client, inline(png("red")))
    assert likelihoods(client, inline(png("red"))) == pytest.approx(red, abs=1e-3)
    assert likelihoods(client, inline(png("blue"))) != pytest.approx(red, abs=1e-3)
    assert likelihoods(client, pictures.url("/red.png")) == pytest.approx(red, abs=1e-3)
    # Formats that the model's library does not support, and a rotated image.
    webp = png("red", kind="WEBP", lossless=True)
    assert likelihoods(client, inline(webp, "image/webp")) == pytest.approx(red, abs=1e-3)
    two = client.chat(asking(inline(png("red")), inline(png("blue"))), max_completion_tokens=2)
    assert two.usage is not None
    assert two.usage.prompt_tokens >= seen.usage.prompt_tokens + 16


def refused(server: PolymuxServer, *urls: str) -> tuple[int, str, str]:
    """The status, code and text of a raw request. The client rejects many of these itself."""
    answer = server.json(CHAT, {"model": "default", "messages": asking(*urls)})
    body = answer.json()
    assert "/" not in body.get("code", "")
    return answer.status, body.get("code", ""), body["error"]


def test_what_is_no_picture(
    server: PolymuxServer, client: polymux.Client, pictures: Server
) -> None:
    for url in (
        inline(b"<html></html>"),
        inline(png("red")[:60]),
        "data:text/html;base64,PGh0bWw+",
        "data:image/png,notbase64",
        "data:image/png;base64,@@@@",
        pictures.url("/page"),
        pictures.url("/nowhere.png"),
    ):
        status, code, message = refused(server, url)
        assert (status, code) == (400, "invalid_request"), (url, message)
    with pytest.raises(BadRequestError) as alone:
        client.free_chat("x", image_url=inline(b"<html></html>"))
    assert alone.value.param == "image_url"
    with pytest.raises(BadRequestError, match="404") as missing:
        client.chat(asking(pictures.url("/nowhere.png")))
    assert missing.value.param == "messages"
    assert client.chat("x", max_completion_tokens=1).choices


def test_too_large(server: PolymuxServer) -> None:
    assert refused(server, "data:image/png;base64," + "A" * (28 << 20))[0] == 413
    status, _, message = refused(server, inline(png("red", (9000, 9000))))
    assert status == 413
    assert "megapixels" in message
    body = b'{"model": "default", "messages": [{"role": "user", "content": "'
    assert server.json(CHAT, body + b"A" * (50 << 20) + b'"}]}').status == 413


def test_addresses_that_lead_where_they_may_not(server: PolymuxServer, pictures: Server) -> None:
    before = len(pictures.requests)
    # Names of nonexistent hosts would only test DNS.
    for url in [one for one in urls() if "example" not in one][::4]:
        status, code, _ = refused(server, url)
        assert (status, code) in ((400, "url_refused"), (400, "invalid_request")), url
    assert len(pictures.requests) == before
    status, code, message = refused(server, pictures.url("/moved"))
    assert (status, code) == (400, "url_refused")
    assert "secret" not in message
