"""Results as inputs of the next call: files as files, answers as messages."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from polymux.client.remote_file import RemoteFile
from polymux.local.local_file import LocalFile
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.client_calls import FINE, KINDS, called

if TYPE_CHECKING:
    from pathlib import Path

    from servers.reference import ReferenceServer


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_a_server_goes_into_the_next_call(
    kind: type, reference: ReferenceServer, ours: polymux.Client
) -> None:
    """Downloaded during the upload, without the API key. Its default name is from its URL."""
    made = ours.generate_image("a boat").images[0]
    digest = hashlib.sha256(made.read()).hexdigest()
    own = str(made).partition("?")[0].rpartition("/")[2]
    for given, name in ((made, own), (("boat.png", made), "boat.png")):
        called(kind, reference.url, lambda client: client.upscale_image(given))  # noqa: B023
        (sent,) = reference.calls[-1].body.files
        assert (sent.sha256, sent.file_name, sent.content_type) == (digest, name, "image/png")
    assert len(reference.media.requests) == 3
    assert all(one.header("authorization") is None for one in reference.media.requests)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_gone_is_no_end_of_the_file(
    kind: type, reference: ReferenceServer, ours: polymux.Client
) -> None:
    """The call raises the error of the download. It must not send a truncated file."""
    made = ours.generate_image("a boat").images[0]
    reference.media.files.clear()
    with MisbehavingServer() as elsewhere:
        foreign = RemoteFile(f"{elsewhere.url}/a.png")
        for file, error in ((made, errors.NotFoundError), (foreign, errors.URLRefusedError)):
            calls = len(reference.calls)
            with pytest.raises(error):
                called(kind, reference.url, lambda client: client.upscale_image(file))  # noqa: B023
            assert len(reference.calls) == calls
        assert not elsewhere.connections


def test_files_of_this_machine(
    reference: ReferenceServer, ours: polymux.Client, tmp_path: Path
) -> None:
    """Files that were converted on this machine or created by `Local`."""
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
    with pytest.raises(TypeError, match=r"\.read\(\)"):
        polymux.probe(RemoteFile("http://127.0.0.1/a.mp3"))
    with (tmp_path / "b.mp3").open("wb") as out, pytest.raises(polymux.InvalidRequestError):
        ours.transcribe(polymux.convert_to_mp3(path, out))


def test_an_answer_goes_back_into_its_conversation(
    server: MisbehavingServer, client: polymux.Client
) -> None:
    """Tool calls are included, reasoning is not."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "reasoning": "hm", "refusal": None, "tool_calls": [call]}
    plain = {"role": "assistant", "content": "a"}
    for one in (message, plain):
        server.script(steps.answer(200, json.dumps({"choices": [{"message": one}]}).encode()))
    server.script(FINE)
    asked = {"role": "user", "content": "x"}
    result = {"role": "tool", "tool_call_id": "c1", "content": "5"}
    first = client.chat("x").choices[0].message
    second = client.chat([asked, first, result]).choices[0].message
    client.free_chat((asked, second, asked))
    reply = {"role": "assistant", "content": None, "tool_calls": [call]}
    sent = [json.loads(request.body)["messages"] for request in server.requests]
    assert sent[1:] == [[asked, reply, result], [asked, plain, asked]]
    with pytest.raises(TypeError, match="JSON"):
        client.chat([asked, client])  # type: ignore[list-item]
