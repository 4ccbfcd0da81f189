"""Text, image and audio by real engines: equal from curl, the command, both clients and Local."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from PIL import Image
from polymux import contract
from polymux.errors import NoBackendError
from polymux.runtime.settings import EngineSettings
from support import programs
from support.chat_model import model_path
from support.commands import run
from support.conversions import wav
from support.polymux_server import PolymuxServer
from support.weights import upscaler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PLAIN = {"max_completion_tokens": 8, "temperature": 0.0, "seed": 1}
MESSAGES = [{"role": "user", "content": "Name three colours."}]


def small() -> bytes:
    buffer = io.BytesIO()
    Image.effect_mandelbrot((40, 30), (-2, -1.5, 1, 1.5), 50).convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


@dataclass(frozen=True)
class Face:
    """An operation and how to compare its results.

    Attributes:
        values: The fields. Bytes are files.
        extract: Returns a comparable value of a JSON response. Also gets a function that downloads
    files.
        words: Arguments of the command after its name.
        model: The model selector.
    """

    values: Mapping[str, Any]
    extract: Callable[[Any, Callable[[str], bytes]], Any]
    words: tuple[str, ...]
    model: str = ""


FACES = {
    "chat": Face(
        {"messages": MESSAGES, "model": "chat", **PLAIN},
        lambda body, _: body["choices"][0]["message"]["content"],
        (MESSAGES[0]["content"], "--model", "chat", "--no-stream", "--json", "--temperature", "0",
         "--seed", "1", "--max-completion-tokens", "8"),
    ),
    "upscale_image": Face(
        {"image": small(), "scale": 2},
        lambda body, fetch: Image.open(io.BytesIO(fetch(body["output"]))).size,
        ("FILE", "--scale", "2", "--json"), "nightmareai/real-esrgan",
    ),
    "convert_to_mp3": Face(
        {"file": wav(1), "bitrate": "128k"},
        lambda body, fetch: fetch(body["response"]),
        ("FILE", "--bitrate", "128k", "-o", "OUT"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def engines() -> dict[str, EngineSettings]:
    network = {"model": str(upscaler()), "factor": 2}
    return {
        "media": EngineSettings("media", threads=1),
        "chat": EngineSettings("chat", {"model": str(model_path()), "context": 256}, threads=1),
        "upscale": EngineSettings("upscale", network, threads=1),
    }


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, engines: dict[str, EngineSettings]
) -> Iterator[PolymuxServer]:
    with PolymuxServer(tmp_path_factory.mktemp("faces") / "s", engines=engines) as running:
        running.token = running.key  # type: ignore[attr-defined] - as the commands' tests call it
        running.answer_within_s = 120.0
        yield running


@pytest.fixture(scope="module")
def local(engines: dict[str, EngineSettings]) -> Iterator[polymux.Local]:
    with polymux.Local(engines=engines) as running:
        yield running


def path_of(name: str) -> str:
    model = FACES[name].model
    return contract.operation(name).path + (f"?model={model}" if model else "")


def fetched(server: PolymuxServer) -> Callable[[str], bytes]:
    def fetch(url: str) -> bytes:
        answer = server.ask("GET", url.removeprefix(server.url), key=None)
        assert answer.status == 200
        return answer.body

    return fetch


def by_curl(server: PolymuxServer, name: str, folder: Path) -> Any:
    face = FACES[name]
    key = f"Authorization: Bearer {server.key}"
    words = [programs.find("curl"), "-sS", "--fail-with-body", "-H", key]
    if name == "chat":
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(face.values)]
    for key, value in () if name == "chat" else face.values.items():
        if isinstance(value, bytes):
            (folder / "input").write_bytes(value)
            value = "@input"
        words += ["-F", f"{key}={value}"]
    done = subprocess.run(
        [*words, server.url + path_of(name)], cwd=folder, capture_output=True, check=True
    )
    return face.extract(json.loads(done.stdout), fetched(server))


def by_command(server: PolymuxServer, name: str, folder: Path) -> Any:
    face = FACES[name]
    data = next((one for one in face.values.values() if isinstance(one, bytes)), b"")
    (folder / "FILE").write_bytes(data)
    words = [name.replace("_", "-"), *face.words]
    if name == "convert_to_mp3":
        words += ["--server", server.url]
    if face.model:
        words += ["--model", face.model]
    done = run(*words, cwd=folder, server=server)
    if name == "convert_to_mp3":
        return (folder / "OUT").read_bytes()
    return face.extract(json.loads(done.stdout), fetched(server))


def in_python(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields by Python parameter name."""
    python_names = {
        one.name: one.python_name for one in contract.operation(name).variants[-1].fields
    }
    found = {python_names.get(key, key): value for key, value in values.items()}
    model = FACES[name].model
    return ({"model": model} if model else {}) | found


def comparable(name: str, result: Any) -> Any:
    """Convert a Python result to the value that `Face.extract` returns for JSON."""
    if name == "convert_to_mp3":
        return result.read()
    if name == "upscale_image":
        return Image.open(io.BytesIO(result.images[0].read())).size
    return FACES[name].extract(result.json(), lambda _: b"")


@pytest.mark.parametrize("name", FACES)
def test_every_face_answers_alike(
    name: str, server: PolymuxServer, local: polymux.Local, tmp_path: Path
) -> None:
    first = by_curl(server, name, tmp_path)
    assert first
    assert by_command(server, name, tmp_path) == first
    values = in_python(name, FACES[name].values)
    with polymux.Client(server.url, server.key) as client:
        assert comparable(name, getattr(client, name)(**values)) == first
    assert asyncio.run(by_async_client(server, name, values)) == first
    assert comparable(name, getattr(local, name)(**values)) == first


async def by_async_client(server: PolymuxServer, name: str, values: dict[str, Any]) -> Any:
    async with polymux.AsyncClient(server.url, server.key) as client:
        result = await getattr(client, name)(**values)
        return await asyncio.to_thread(comparable, name, result)


def test_unavailable_operations_fail_alike(server: PolymuxServer, local: polymux.Local) -> None:
    """`test_unavailable_operations.py` lists the operations that are not available by default."""
    with polymux.Client(server.url, server.key) as client:
        for caller in (client, local):
            with pytest.raises(NoBackendError) as refused:
                caller.generate_video("waves")
            assert (refused.value.status, refused.value.code) == (501, "no_backend")
            assert "retry-after" not in refused.value.headers
