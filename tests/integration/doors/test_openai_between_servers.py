"""One polymux asks another as an upstream in OpenAI's shape: each understands the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from polymux.runtime.upstream_settings import UpstreamSettings
from polymux.service.errors import status_error
from support.openai_door import ScriptedDoor
from support.polymux_server import Box, PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPOKEN = {
    "text": "Hello there. Good bye.",
    "chunks": [
        {"text": " Hello there.", "timestamp": [0.5, 2.0]},
        {"text": " Good bye.", "timestamp": [2.5, 4.0]},
    ],
    "language": "de",
}
FILE = ("talk.wav", b"RIFF....WAVE and samples")


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def client(tmp_path: Path, box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[polymux.Client]:
    def make() -> list[ScriptedDoor]:
        box.backend = ScriptedDoor()
        return [box.backend]

    with PolymuxServer(tmp_path / "far", make) as far:
        monkeypatch.setenv("KEY_OF_THE_OTHER", far.key)
        other = UpstreamSettings(
            "openai",
            f"{far.url}/v1",
            key_environment="KEY_OF_THE_OTHER",
            operations=("chat", "transcribe", "generate_image"),
            models={
                "far": "default",
                "turian/insanely-fast-whisper-with-video": "whisper-1",
                "bytedance/sdxl-lightning-4step": "default",
            },
        )
        settings = {"engines": {}, "upstreams": {"other": other}}
        with (
            PolymuxServer(tmp_path / "near", **settings) as near,
            polymux.Client(near.url, near.key, retry=0) as made,
        ):
            yield made


def test_chats(client: polymux.Client, box: Box) -> None:
    assert client.chat("Hi", model="far").text == "read"
    pieces = ["a", "b"]
    box.backend.chunks = [
        {
            "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}],
        }
        for text, reason in zip(pieces, (None, "stop"), strict=True)
    ]  # fmt: skip
    with client.chat("Hi", model="far", stream=True) as stream:
        assert list(stream.texts()) == pieces
    busy = status_error(errors.RateLimitError, "too much for now", retry_after_s=7)
    box.backend.failure = busy
    with pytest.raises(errors.RateLimitError, match="upstream other has a limit") as refused:
        client.chat("Hi", model="far")
    assert refused.value.headers["retry-after"] == "7"


def test_speech(client: polymux.Client, box: Box) -> None:
    box.backend.output = SPOKEN
    box.backend.metrics = {"audio_seconds": 4.5}
    heard = client.transcribe(FILE, language="German")
    assert heard.text == SPOKEN["text"]
    assert [one.timestamp for one in heard.chunks] == [(0.5, 2.0), (2.5, 4.0)]
    assert heard.output["language"] == "de"
    assert heard.metrics is not None
    assert heard.metrics["audio_seconds"] == 4.5
    words = client.transcribe(FILE, timestamp="word")
    assert len(words.chunks) == 2
    assert [one.values["timestamp"] for one in box.backend.began] == ["chunk", "word"]
    assert box.backend.began[0].values["language"] == "de"
