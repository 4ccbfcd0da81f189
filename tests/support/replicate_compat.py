"""Servers with /replicate/v1 for the replicate package, over TLS with the test's authority."""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import replicate
from polymux.service.model import OperationResult, OutputFile, Upload
from servers import media

from support.polymux_server import Box, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from polymux.service.model import OperationRequest, ProgressSink
    from servers.certificates import Authority

OPERATIONS = (
    "chat", "free_chat", "search_music", "generate_image", "upscale_image", "transcribe",
    "generate_video", "generate_music", "identify_song", "download_video", "summarize_video",
    "download_music", "convert_to_mp3", "read_text",
)  # fmt: skip
SONG = {
    "song_name": "Blue Danube - Strauss",
    "songid_url": "https://songs.example/1",
    "song_image": "https://songs.example/1.png",
}
#: Data that is not text. Nothing decodes it.
PICTURE = media.png(8, 8)
MP3 = b"ID3 and frames"


class ScriptedModels(Scripted):
    """Finishes every operation immediately, keeps the input files, and sends `pieces` in chats."""

    def __init__(self, *operations: str) -> None:
        super().__init__("scripted", operations or OPERATIONS, 8)
        self.models = ("small", "maker/large")
        self.files: list[dict[str, bytes]] = []
        self.pieces = ["Hel", "lo ", "there"]

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        self.files.append(
            {name: one.path.read_bytes() for name, one in work.values.items()
             if isinstance(one, Upload)}
        )  # fmt: skip
        product = await super().run(work, sink)
        if work.operation != "convert_to_mp3":
            product = OperationResult(self._output(work, sink), "v1")
        return product

    def _output(self, work: OperationRequest, sink: ProgressSink) -> Any:
        if work.operation in ("generate_image", "generate_video"):
            count = work.values.get("num_outputs", work.values.get("batch_size", 1))
            return [self._made(sink, number) for number in range(count)]
        outputs: dict[str, Any] = {
            "search_music": [SONG],
            "identify_song": SONG,
            "summarize_video": {"response": "a video"},
            "transcribe": {"text": "Hello there.", "chunks": []},
            "read_text": {"text": "read"},
        }
        if work.operation in outputs:
            return outputs[work.operation]
        if work.operation == "upscale_image":
            return [self._made(sink, 0)] if work.variant == "A" else self._made(sink, 0)
        if work.operation == "generate_music":
            return {"audio": self._made(sink, 0), "spectrogram": self._made(sink, 1)}
        return {"response": self._made(sink, 0)}

    def _made(self, sink: ProgressSink, number: int) -> OutputFile:
        return self.file(sink, PICTURE + str(number).encode(), name=f"{number}.png")

    async def stream(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AsyncIterator[dict[str, Any]]:
        self.began.append(work)
        try:
            for number, text in enumerate(self.pieces):
                if number == 1:
                    await self.gate.wait()
                yield (
                    {"response": text}
                    if work.operation == "free_chat"
                    else {"choices": [{"index": 0, "delta": {"content": text}}]}
                )
            if self.failure is not None:
                raise self.failure
            yield {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
        finally:
            self.ended.append("closed")


@contextmanager
def scripted_server(
    folder: Path,
    box: Box,
    authority: Authority | None = None,
    *,
    store: dict[str, Any] | None = None,
    **settings: Any,
) -> Iterator[PolymuxServer]:
    """A server with `ScriptedModels`, with TLS if an authority is given."""

    def make() -> list[ScriptedModels]:
        box.backend = ScriptedModels()
        return [box.backend]

    if authority is not None:
        certificate = authority.certificate()
        settings |= {"tls_cert": certificate.chain, "tls_key": certificate.key}
    made = PolymuxServer(folder / "s", make, **settings)
    made.settings = replace(made.settings, store=replace(made.settings.store, **(store or {})))
    with made as running, closed_clients():
        yield running


#: The package's clients have no close method.
_CLIENTS: list[replicate.Client] = []


@contextmanager
def closed_clients() -> Iterator[None]:
    """Close the connections of all clients that `of` makes in the block."""
    try:
        yield
    finally:
        while _CLIENTS:
            _CLIENTS.pop()._client.close()


def of(
    server: PolymuxServer, authority: Authority | None = None, key: str | None = None
) -> replicate.Client:
    """The replicate client of a server, which trusts only the authority and never retries."""
    made = replicate.Client(
        key or server.key,
        base_url=f"{server.url}/replicate",
        transport=httpx.HTTPTransport(verify=_trust(authority)),
    )
    _CLIENTS.append(made)
    return made


def of_asyncio(server: PolymuxServer, authority: Authority | None = None) -> replicate.Client:
    return replicate.Client(
        server.key,
        base_url=f"{server.url}/replicate",
        transport=httpx.AsyncHTTPTransport(verify=_trust(authority)),
    )


def _trust(authority: Authority | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=None if authority is None else str(authority.ca))
