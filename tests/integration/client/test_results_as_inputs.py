"""What a call has made goes into the next: files as files, answers as messages."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux.client.remote_file import RemoteFile
from polymux.local.local_file import LocalFile
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.reference import ReferenceServer


@pytest.fixture
def ours(reference: ReferenceServer) -> Iterator[polymux.Client]:
    with polymux.Client(reference.url, KEY, timeout=60) as made:
        yield made


def test_a_file_of_a_server_goes_into_the_next_call(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    """Fetched while it is sent, without the key, by both clients; under the name in its address."""
    made = ours.generate_image("a boat").images[0]
    content = made.read()

    async def main() -> None:
        async with polymux.AsyncClient(reference.url, KEY, timeout=60) as client:
            await client.upscale_image(made)
            await client.upscale_image(("boat.png", made))

    ours.upscale_image(made)
    ours.upscale_image(("boat.png", made))
    asyncio.run(main())
    sent = [one.body.files[0] for one in reference.calls[-4:]]
    assert {one.sha256 for one in sent} == {hashlib.sha256(content).hexdigest()}
    own = str(made).partition("?")[0].rpartition("/")[2]
    assert [one.file_name for one in sent] == [own, "boat.png", own, "boat.png"]
    assert {one.content_type for one in sent} == {"image/png"}
    assert len(reference.media.requests) == 5
    assert all(one.header("authorization") is None for one in reference.media.requests)


def test_a_file_that_is_gone_is_no_end_of_the_file(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    """The call ends with what its own server said of it, or with why it may not be asked."""
    made = ours.generate_image("a boat").images[0]
    reference.media.files.clear()
    with MisbehavingServer() as elsewhere:
        elsewhere.script(steps.answer(200, b"x"), times=None)
        stranger = RemoteFile(f"{elsewhere.url}/a.png")
        for file, kind in ((made, errors.NotFoundError), (stranger, errors.URLRefusedError)):
            calls = len(reference.calls)

            async def main(file: Any = file) -> None:
                async with polymux.AsyncClient(reference.url, KEY, timeout=60) as client:
                    await client.upscale_image(file)

            with pytest.raises(kind):
                ours.upscale_image(file)
            with pytest.raises(kind):
                asyncio.run(main())
            assert len(reference.calls) == calls
        assert not elsewhere.connections


def test_files_of_this_machine(
    reference: ReferenceServer, ours: polymux.Client, tmp_path: Path
) -> None:
    """What was converted here, or made by `Local`."""
    path = tmp_path / "talk.wav"
    path.write_bytes(media.wav())
    for file, name in (
        (polymux.convert_to_mp3(path), "converted.mp3"),
        (polymux.convert_to_mp3(path, tmp_path / "a.mp3"), "a.mp3"),
        (LocalFile(path, "audio/x-wav"), "talk.wav"),
    ):
        ours.transcribe(file)
        sent = reference.calls[-1].body.files[0]
        assert sent.content == file.read()
        assert sent.file_name == name
        assert polymux.probe(file).best_audio_stream is not None
        assert polymux.convert_to_mp3(file).size_bytes
    with pytest.raises(TypeError, match=r"give what its \.read\(\) gives"):
        polymux.probe(RemoteFile("http://127.0.0.1/a.mp3"))
    with (tmp_path / "b.mp3").open("wb") as out, pytest.raises(polymux.InvalidRequestError):
        ours.transcribe(polymux.convert_to_mp3(path, out))


def test_local_takes_what_was_made(tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    path.write_bytes(media.wav())
    with polymux.Local() as local:
        first = local.convert_to_mp3(path)
        for file in (first, polymux.convert_to_mp3(path), LocalFile(path, "audio/x-wav")):
            assert polymux.probe(local.convert_to_mp3(file)).best_audio_stream is not None


def test_an_answer_goes_back_into_its_conversation(server: MisbehavingServer) -> None:
    """With the calls of tools that it asks for, and without its thinking."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "reasoning": "hm", "refusal": None, "tool_calls": [call]}
    answer = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
    plain = json.dumps({"choices": [{"message": {"role": "assistant", "content": "a"}}]}).encode()
    asked = {"role": "user", "content": "x"}
    with polymux.Client(server.url, KEY, retry=0) as client:
        server.script(steps.answer(200, answer))
        first = client.chat("x").choices[0].message
        server.script(steps.answer(200, plain))
        result = {"role": "tool", "tool_call_id": "c1", "content": "5"}
        second = client.chat([asked, first, result]).choices[0].message
        sent = json.loads(server.requests[-1].body)["messages"]
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        assert sent == [asked, said, result]
        server.script(steps.answer(200, b'{"response":"fine"}'))
        client.free_chat((asked, second, asked))
        sent = json.loads(server.requests[-1].body)["messages"]
        assert sent == [asked, {"role": "assistant", "content": "a"}, asked]
        with pytest.raises(TypeError, match="cannot be sent as JSON"):
            client.chat([asked, client])  # type: ignore[list-item]
