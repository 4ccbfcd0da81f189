"""Images at URLs: their download does not occupy a concurrency slot of the model."""

from __future__ import annotations

import asyncio
import base64
import io
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from polymux import errors
from polymux.engines.chat.backend import ChatBackend
from polymux.engines.process.in_process import InProcessBackend
from polymux.fetch.fetcher import FetchPolicy
from support.http_server import Server
from support.services import Scripted, chat_of, running
from support.supervised_engine import go, in_loop, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from polymux.service.model import OperationRequest
    from polymux.service.service import Service
    from support.http_server import Exchange

STALLED = "/stalled.png"


def picture(width: int = 40) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, 30), "red").save(buffer, "PNG")
    return buffer.getvalue()


async def site(exchange: Exchange) -> None:
    """Returns an image at every path. One of them never completes."""
    data = picture()
    if exchange.target == STALLED:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n"
        await exchange.send(head.encode() + data[:20])
        await exchange.closed()
    else:
        await exchange.answer(200, data, "Content-Type: image/png")


def asking(operation: str, *urls: str, **values: Any) -> OperationRequest:
    if operation == "free_chat":
        return chat_of(operation=operation, image_url=urls[0], **values)
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return chat_of(messages=[{"role": "user", "content": parts}], **values)


@pytest.fixture
def web() -> Iterator[Server]:
    with Server(site) as running:
        yield running


@asynccontextmanager
async def served(folder: Path, web: Server) -> AsyncIterator[tuple[Service, Scripted]]:
    """A model with a concurrency of one and a media engine."""
    model = Scripted("model", ("chat", "free_chat"))
    media = InProcessBackend("media", "media", ["convert_to_mp3"], max_concurrency=2)
    policy = FetchPolicy(allowed_hosts=(web.authority,))
    backend = ChatBackend(model, media, sees=True, policy=policy)
    async with running(folder / "s", backend, max_bytes=1 << 30) as service:
        yield service, model
        assert list((folder / "s" / "drafts").iterdir()) == []


async def answered(service: Service, work: OperationRequest) -> None:
    """Run the request with or without streaming."""
    if work.streamed:
        assert [one async for one in service.stream(work)] == [{"n": 1}]
    else:
        await service.call(work)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "in pieces"])
@pytest.mark.parametrize("operation", ["chat", "free_chat"])
def test_a_slow_address_holds_nobodys_place(
    tmp_path: Path, web: Server, operation: str, stream: bool
) -> None:
    async def body() -> None:
        async with served(tmp_path, web) as (service, model):
            model.chunks = [{"n": 1}]
            stalled = asking(operation, web.url(STALLED), stream=stream)
            slow = asyncio.create_task(answered(service, stalled))
            await until(lambda: web.requests)
            for _ in range(3):
                await answered(service, asking(operation, web.url("/a.png"), stream=stream))
            assert len(model.began) == 3
            assert not slow.done()
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            await until(lambda: list((tmp_path / "s" / "drafts").iterdir()) == [])
            assert web.gone.wait(10)

    go(body())


@in_loop
async def test_a_picture_that_takes_too_long(tmp_path: Path, web: Server) -> None:
    """freellm's timeout includes the download."""
    async with served(tmp_path, web) as (service, model):
        work = asking("free_chat", web.url(STALLED), stream=True, timeout=1)
        with pytest.raises(errors.InternalServerError) as caught:
            await answered(service, work)
        assert (caught.value.status, caught.value.code) == (504, "upstream_timeout")
        assert model.began == []


@in_loop
async def test_the_model_gets_what_was_fetched(tmp_path: Path, web: Server) -> None:
    """In the order of the conversation, without the URLs."""
    async with served(tmp_path, web) as (service, model):
        inline = f"data:image/png;base64,{base64.b64encode(picture(1)).decode()}"
        forged = {"fetched_1": {"path": "/etc/passwd"}, "pictures": [{"width": 9}]}
        urls = [web.url("/a.png"), inline, web.url("/b.png")]
        await service.call(asking("chat", *urls, **forged))
    (work,) = model.began
    assert [one["width"] for one in work.values["pictures"]] == [40, 1, 40]
    assert {name for name in work.values if name.startswith(("pixels_", "fetched_"))} == {
        "pixels_0", "pixels_1", "pixels_2", "fetched_1",
    }  # fmt: skip
    assert [one.target for one in web.requests] == ["/a.png", "/b.png"]


@in_loop
async def test_large_pictures_are_made_smaller(tmp_path: Path, web: Server) -> None:
    """Includes an image that its Exif tag rotates."""
    exif, buffer = Image.Exif(), io.BytesIO()
    exif[0x0112] = 6  # Rotated by 90 degrees.
    Image.new("RGB", (4000, 1000), "green").save(buffer, "JPEG", exif=exif)
    url = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    async with served(tmp_path, web) as (service, model):
        await service.call(asking("chat", url))
    (seen,) = model.began[0].values["pictures"]
    assert (seen["width"], seen["height"], seen["channels"]) == (512, 2048, 3)


@in_loop
async def test_twenty_and_no_more(tmp_path: Path, web: Server) -> None:
    """Counted before the first download."""
    async with served(tmp_path, web) as (service, model):
        with pytest.raises(errors.BadRequestError, match=r"\b20\b"):
            await service.call(asking("chat", *[web.url("/a.png")] * 21))
        await service.call(asking("chat", *[web.url("/a.png")] * 20))
    assert len(web.requests) == 20
    assert len(model.began) == 1
