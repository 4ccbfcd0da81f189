"""What docs/client.md promises of uploads, jobs, files and the ways to a server."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import pickle
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from servers.misbehaving import MisbehavingServer
from servers.proxies import nghttpx
from servers.reference import ReferenceServer
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from servers.certificates import Authority

SAID = "You said: hello"
FINE = steps.answer(200, b'{"response":"fine"}')


@pytest.fixture
def ours(reference: ReferenceServer) -> Iterator[polymux.Client]:
    with polymux.Client(reference.url, KEY, timeout=60) as made:
        yield made


def pieces() -> Iterator[bytes]:
    yield from (b"ab", b"cd")


async def awaited_pieces() -> AsyncIterator[bytes]:
    for piece in pieces():
        await asyncio.sleep(0)
        yield piece


def test_uploads_of_every_kind(
    reference: ReferenceServer, ours: polymux.Client, tmp_path: Path
) -> None:
    """Bytes, paths, files and iterables, of both kinds, arrive the same."""
    path = tmp_path / "page.png"
    path.write_bytes(b"abcd")
    with path.open("rb") as file:
        for image in (b"abcd", path, str(path), file, ("page.png", b"abcd"), pieces()):
            assert ours.read_text(image).text == "Dear Ada,\nhello."

    async def main() -> None:
        async with polymux.AsyncClient(reference.url, KEY) as client:
            for image in (b"abcd", path, pieces(), awaited_pieces()):
                await client.read_text(image)

    asyncio.run(main())
    bodies = [call.request.body for call in reference.calls]
    assert len(bodies) == 10
    assert all(b"\r\n\r\nabcd\r\n--" in one for one in bodies)


def test_upload_progress(ours: polymux.Client, tmp_path: Path) -> None:
    """Bytes of the body so far, growing, of how many; the last are all."""
    page = tmp_path / "page.png"
    with page.open("wb") as file:
        file.truncate(32 << 20)
    told: list[tuple[int, int | None]] = []
    ours.read_text(page, on_upload=lambda sent, total: told.append((sent, total)))
    sent = [one for one, _ in told]
    assert sent == sorted(sent)
    assert told[-1][0] == told[-1][1]
    assert told[-1][0] > 32 << 20


def test_what_upload_progress_raises_ends_the_upload(ours: polymux.Client) -> None:
    def refuse(sent: int, total: int | None) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        ours.read_text(bytes(8 << 20), on_upload=refuse)
    assert ours.read_text(b"x").text


def test_jobs(reference: ReferenceServer, ours: polymux.Client) -> None:
    """Waited for, watched, looked at, listed, cancelled."""
    reference.predictions.job_s = 0.3
    assert ours.generate_image("a boat").succeeded
    seen: list[str] = []
    reference.predictions.unfinished_status = 202
    job = ours.generate_image("a boat", wait=False)
    assert not job.finished
    done = ours.predictions.wait(job, on_progress=lambda one: seen.append(one.status))
    assert done.succeeded
    assert seen[-1] == "succeeded"
    assert ours.predictions.get(job).id == done.id
    assert next(ours.predictions.list()).id == done.id
    reference.predictions.job_s = 60
    begun = ours.generate_image("a boat", wait=False)
    assert ours.predictions.cancel(begun).status == "canceled"
    with pytest.raises(errors.PredictionFailedError) as failed:
        ours.predictions.wait(begun)
    assert failed.value.prediction is not None
    reference.predictions.job_s = 0.3
    watched = ours.generate_image("a boat", wait=False)
    states = [one.status for one in ours.predictions.events(watched)]
    assert states[-1] == "succeeded"


def test_pages_of_jobs(reference: ReferenceServer, ours: polymux.Client) -> None:
    """The list goes on over the server's pages, each asked for when it is reached."""
    made = [ours.generate_image("a boat", wait=False).id for _ in range(205)]
    jobs = ours.predictions.list()
    asked = len(reference.requests)
    assert next(jobs).id == made[-1]
    assert len(reference.requests) == asked + 1
    assert [one.id for one in jobs] == made[-2::-1]
    assert len(reference.requests) == asked + 3


def test_files_of_answers(reference: ReferenceServer, ours: polymux.Client, tmp_path: Path) -> None:
    """Fetched when they are asked for, without the key, whole or not at all; shown in notebooks."""
    job = ours.generate_image("a boat", num_outputs=2)
    assert not reference.media.requests
    first, second = job.images
    told: list[tuple[int, int | None]] = []
    saved = first.save(tmp_path / "boat.png", on_progress=lambda *one: told.append(one))
    assert saved.read_bytes() == first.read()
    assert told[-1][0] == saved.stat().st_size
    assert b"".join(second).startswith(b"\x89PNG")
    assert '<img src="data:image/png;base64,' in second._repr_html_()

    async def main() -> tuple[bytes, Path]:
        return await first.aread(), await second.asave(tmp_path / "other.png")

    data, path = asyncio.run(main())
    assert data == path.read_bytes()
    assert len(reference.media.requests) == 6
    assert all(one.header("authorization") is None for one in reference.media.requests)
    reference.media.files.clear()
    with pytest.raises(errors.NotFoundError):
        first.save(tmp_path / "gone.png")
    assert sorted(os.listdir(tmp_path)) == ["boat.png", "other.png"]  # noqa: PTH208


def test_options_for_one_call_and_for_many(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    """A client made of another shares its connections; fields that nobody knows go along."""
    other = ours.with_options(headers={"X-Team": "blue"}, chat_model="large")
    assert other.chat("hello", extra_body={"new_thing": 5}).text == SAID
    call = reference.calls[-1]
    assert call.request.header("x-team") == "blue"
    assert call.body.get("model") == "large"
    assert call.body.get("new_thing") == 5
    assert ours.chat("hello").text == SAID
    assert reference.calls[-1].request.header("x-team") is None
    assert len(reference.connections) == 1
    found = ours.request("musicsearch", {"song": "Blue Danube", "limit": 2})
    assert len(found) == 2


def test_a_path_of_another_server(server: MisbehavingServer) -> None:
    server.script(steps.answer(200, b'{"choices":[{"message":{"content":"Hi"}}]}'))
    with polymux.Client(server.url, paths={"chat": "/v1/chat/completions"}) as client:
        assert client.chat("hello").text == "Hi"
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].header("authorization") is None


@pytest.mark.parametrize("named", ["argument", "environment"])
def test_proxies(named: str, server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is given, or that of the environment where that is asked for; else none."""
    server.script(FINE, times=None)
    options: dict[str, Any] = {"proxy": server.url}
    if named == "environment":
        monkeypatch.setenv("http_proxy", server.url)
        options = {"trust_env": True}
    with polymux.Client("http://server.example", KEY, **options) as client:
        assert client.free_chat("hello").text == "fine"
    assert server.requests[-1].target == "http://server.example/api/v1/freellm"
    monkeypatch.setenv("http_proxy", server.url)
    with ReferenceServer(token=KEY) as direct, polymux.Client(direct.url, KEY) as client:
        assert client.chat("hello").text == SAID
    if named == "environment":
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with (
            ReferenceServer(token=KEY) as direct,
            polymux.Client(direct.url, KEY, trust_env=True) as client,
        ):
            assert client.chat("hello").text == SAID


def test_certificates(authority: Authority) -> None:
    """One that nobody here trusts is refused; a file that trusts it, or no check, let it pass."""
    with MisbehavingServer(tls=authority.certificate().context()) as server:
        server.script(FINE, times=None)
        with polymux.Client(server.url, KEY, retry=0) as client:
            with pytest.raises(errors.TLSError, match="certificate") as refused:
                client.free_chat("hello")
            assert refused.value.stage == "tls"
        assert not server.requests
        for verify in (authority.ca, str(authority.ca), False):
            with polymux.Client(server.url, KEY, verify=verify) as client:
                assert client.free_chat("hello").text == "fine"
    with (
        MisbehavingServer(tls=authority.certificate("expired").context()) as server,
        polymux.Client(server.url, KEY, verify=authority.ca, retry=0) as client,
        pytest.raises(errors.TLSError, match="expired"),
    ):
        client.free_chat("hello")


def test_http2(authority: Authority, tmp_path: Path) -> None:
    """Where the server offers it, for calls and streams."""
    with (
        ReferenceServer(token=KEY) as reference,
        nghttpx(reference.port, authority.certificate(), tmp_path) as proxy,
    ):
        reference.chats.pause_s = 0.05

        async def main(**options: bool) -> list[str]:
            made = polymux.AsyncClient(proxy.url, KEY, verify=proxy.ca, **options)
            async with made as client:
                await client.chat("hello")
                answers = await asyncio.gather(*(client.chat("hello") for _ in range(20)))
                async with await client.chat("hello", stream=True) as stream:
                    texts = [one async for one in stream.texts()]
            return [*(one.text for one in answers), "".join(texts)]

        assert asyncio.run(main()) == [SAID] * 21
        via = {one.header("via") for one in reference.requests}
        assert via == {"2 nghttpx"}
        assert asyncio.run(main(http2=False)) == [SAID] * 21
        assert reference.requests[-1].header("via") == "1.1 nghttpx"


def test_the_log(
    reference: ReferenceServer, ours: polymux.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Operation, status and time, and neither key nor content."""
    with caplog.at_level(logging.DEBUG, logger="polymux"):
        ours.chat("a secret between us")
    (record,) = [one for one in caplog.records if one.name == "polymux"]
    assert "chat: status 200" in record.getMessage()
    assert KEY not in caplog.text
    assert "secret between" not in caplog.text


def test_nothing_shows_the_key(reference: ReferenceServer, ours: polymux.Client) -> None:
    """Not the client, nor its errors where the server repeats it; and it is not pickled."""
    reference.fail(401, f"{KEY} is not known here", body=f'{{"error":"{KEY} is wrong"}}'.encode())
    with pytest.raises(errors.AuthenticationError) as refused:
        ours.chat("hello")
    for shown in (repr(ours), str(refused.value), repr(refused.value), str(vars(refused.value))):
        assert KEY not in shown
    assert "*** is wrong" in str(refused.value)
    with pytest.raises(TypeError, match="key"):
        pickle.dumps(ours)


@pytest.mark.parametrize("operation", [polymux.Client, polymux.AsyncClient])
def test_copies_share_connections(operation: Callable[..., Any]) -> None:
    client = operation("http://127.0.0.1:8000", KEY)
    assert copy.copy(client)._connection is client._connection
    assert copy.deepcopy(client)._connection is client._connection
