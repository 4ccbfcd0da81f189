"""Six operations with real engines, asked in seven ways: each answers the same question alike.

By hand over a socket, by curl's program, by the command, by both clients, by Local and AsyncLocal.
"""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from PIL import Image, ImageDraw, ImageFont
from polymux import contract
from polymux.errors import NoBackendError
from polymux.runtime.settings import EngineSettings
from support.chat_model import model_path
from support.commands import run
from support.conversions import wav
from support.polymux_server import PolymuxServer, form
from support.weights import upscaler, whisper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PLAIN = {"max_completion_tokens": 8, "temperature": 0.0, "seed": 1}
MESSAGES = [{"role": "user", "content": "Name three colours."}]
TEXT = "POLYMUX 2026"


@dataclass(frozen=True)
class Face:
    """An operation and how its answer is made comparable.

    Attributes:
        method: Its name in Python.
        values: Its fields; bytes are files.
        told: What is compared, of the answer as JSON and of a function that fetches files.
        words: Of the command, after its name.
        exact: Whether the same engine must say the same thing again.
    """

    method: str
    values: Mapping[str, Any]
    told: Callable[[Any, Callable[[str], bytes]], Any]
    words: tuple[str, ...]
    exact: bool = True


def page() -> bytes:
    picture = Image.new("RGB", (420, 90), "white")
    font = ImageFont.load_default(40)
    ImageDraw.Draw(picture).text((20, 20), TEXT, fill="black", font=font)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def small() -> bytes:
    buffer = io.BytesIO()
    Image.effect_mandelbrot((40, 30), (-2, -1.5, 1, 1.5), 50).convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


def spoken() -> bytes:
    command = ["espeak-ng", "-s", "140", "--stdout", "The weather is fine today."]
    return subprocess.run(command, check=True, capture_output=True).stdout


def size_of(data: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(data)).size


FACES = {
    "chat": Face(
        "chat", {"messages": MESSAGES, "model": "chat", **PLAIN},
        lambda told, _: told["choices"][0]["message"]["content"],
        (MESSAGES[0]["content"], "--model", "chat", "--no-stream", "--json", "--temperature", "0",
         "--seed", "1", "--max-completion-tokens", "8"),
    ),
    "free_chat": Face(
        "free_chat", {"messages": MESSAGES, "model": "gpt-4"},
        lambda told, _: len(told["response"]) > 3,
        (MESSAGES[0]["content"], "--model", "gpt-4", "--no-stream", "--json"),
    ),
    "transcribe": Face(
        "transcribe", {"audio": spoken(), "language": "en"},
        lambda told, _: [word for word in ("fine", "today")
                         if word in told["output"]["text"].lower()],
        ("FILE", "--language", "en", "--json"),
    ),
    "upscale_image": Face(
        "upscale_image", {"image": small(), "scale": 2},
        lambda told, fetch: size_of(fetch(told["output"])),
        ("FILE", "--scale", "2", "--json"),
    ),
    "convert_to_mp3": Face(
        "convert_to_mp3", {"file": wav(1), "bitrate": "128k"},
        lambda told, fetch: fetch(told["response"]),
        ("FILE", "--bitrate", "128k", "-o", "OUT"),
    ),
    "read_text": Face(
        "read_text", {"file": page()}, lambda told, _: told["text"].strip(), ("FILE", "--json"),
    ),
}  # fmt: skip
EXPECTED = {
    "free_chat": True, "transcribe": ["fine", "today"], "upscale_image": (80, 60),
    "read_text": TEXT,
}  # fmt: skip


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EngineSettings]:
    folder = tmp_path_factory.mktemp("models")
    speech = {"model": str(whisper(folder)), "compute": "int8", "beam": 1}
    chat = {"model": str(model_path()), "context": 256}
    network = {"model": str(upscaler()), "factor": 2}
    return {
        "media": EngineSettings("media", threads=1),
        "chat": EngineSettings("chat", chat, threads=1),
        "speech": EngineSettings("speech", speech, threads=1),
        "upscale": EngineSettings("upscale", network, threads=1),
        "ocr": EngineSettings("rapidocr", threads=1),
    }


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, engines: dict[str, EngineSettings]
) -> Iterator[PolymuxServer]:
    with PolymuxServer(tmp_path_factory.mktemp("faces") / "s", engines=engines) as running:
        running.token = running.key  # type: ignore[attr-defined] - as the commands' tests call it
        running.answer_within_s = 120.0
        yield running


def path_of(name: str) -> str:
    operation = contract.operation(name)
    model = {"upscale_image": "?model=nightmareai/real-esrgan"}.get(name, "")
    return f"{operation.path}{model}"


def fetched(server: PolymuxServer) -> Callable[[str], bytes]:
    def fetch(url: str) -> bytes:
        answer = server.ask("GET", url.removeprefix(server.url), key=None)
        assert answer.status == 200
        return answer.body

    return fetch


def by_hand(server: PolymuxServer, name: str) -> Any:
    face = FACES[name]
    if name in ("chat", "free_chat"):
        answer = server.json(path_of(name), face.values)
    else:
        fields = [(key, ("a", value) if isinstance(value, bytes) else str(value))
                  for key, value in face.values.items()]  # fmt: skip
        body, headers = form(*fields)
        answer = server.ask("POST", path_of(name), body, headers)
    assert answer.status == 200, answer.body
    return face.told(answer.json(), fetched(server))


def by_curl(server: PolymuxServer, name: str, folder: Path) -> Any:
    face = FACES[name]
    curl = shutil.which("curl")
    assert curl is not None, "the program curl is missing: scripts/setup test installs it"
    words = [curl, "-sS", "--fail-with-body", "-H", f"Authorization: Bearer {server.key}"]
    if name in ("chat", "free_chat"):
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(face.values)]
    for key, value in () if name in ("chat", "free_chat") else face.values.items():
        if isinstance(value, bytes):
            (folder / "input").write_bytes(value)
            value = "@input"
        words += ["-F", f"{key}={value}"]
    done = subprocess.run(
        [*words, server.url + path_of(name)], cwd=folder, capture_output=True, check=True
    )
    return face.told(json.loads(done.stdout), fetched(server))


def by_command(server: PolymuxServer, name: str, folder: Path) -> Any:
    face = FACES[name]
    data = next((one for one in face.values.values() if isinstance(one, bytes)), b"")
    (folder / "FILE").write_bytes(data)
    words = [name.replace("_", "-"), *face.words]
    if name == "convert_to_mp3":
        words += ["--server", server.url]
    if name == "upscale_image":
        words += ["--model", "nightmareai/real-esrgan"]
    done = run(*words, cwd=folder, server=server)
    if name == "convert_to_mp3":
        return (folder / "OUT").read_bytes()
    return face.told(json.loads(done.stdout), fetched(server))


def asked(caller: Any, name: str) -> Any:
    face = FACES[name]
    more = {"model": "nightmareai/real-esrgan"} if name == "upscale_image" else {}
    return getattr(caller, face.method)(**in_python(name, face.values), **more)


def in_python(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by the names that methods have for them."""
    python_names = {
        one.name: one.python_name for one in contract.operation(name).variants[-1].fields
    }
    return {python_names.get(key, key): value for key, value in values.items()}


def told_of(name: str, result: Any) -> Any:
    """What `Face.told` makes of JSON, of a result in Python."""
    if name == "convert_to_mp3":
        return result.read()
    if name == "upscale_image":
        return size_of(result.images[0].read())
    return FACES[name].told(result.json(), lambda _: b"")


async def of_asyncio(caller: Any, name: str) -> Any:
    result = await asked(caller, name)
    return await asyncio.to_thread(told_of, name, result)


async def by_async_client(server: PolymuxServer, name: str) -> Any:
    async with polymux.AsyncClient(server.url, server.key) as client:
        return await of_asyncio(client, name)


async def by_async_local(engines: dict[str, EngineSettings], name: str) -> Any:
    async with polymux.AsyncLocal(engines=engines) as local:
        return await of_asyncio(local, name)


@pytest.mark.parametrize("name", FACES)
def test_every_face_answers_alike(
    name: str, server: PolymuxServer, engines: dict[str, EngineSettings], tmp_path: Path
) -> None:
    first = by_hand(server, name)
    assert first == EXPECTED.get(name, first)
    assert first
    assert by_curl(server, name, tmp_path) == first
    assert by_command(server, name, tmp_path) == first
    with polymux.Client(server.url, server.key) as client:
        assert told_of(name, asked(client, name)) == first
    assert asyncio.run(by_async_client(server, name)) == first
    with polymux.Local(engines=engines) as local:
        assert told_of(name, asked(local, name)) == first
    assert asyncio.run(by_async_local(engines, name)) == first


WITHOUT: dict[str, dict[str, Any]] = {
    "search_music": {"song": "blue danube"},
    "generate_image": {"prompt": "a lighthouse"},
    "upscale_image": {"image": small(), "model": "philz1337x/clarity-upscaler"},
    "generate_video": {"prompt": "waves"},
    "generate_music": {"prompt_a": "slow piano"},
    "identify_song": {"file": wav(1)},
}
#: What reaches out: `tests/integration/downloads/test_operations.py`.
OUTSIDE = ("download_video", "summarize_video", "download_music")


@pytest.mark.parametrize("name", WITHOUT)
def test_the_rest_says_that_nothing_here_does_it(
    name: str, server: PolymuxServer, engines: dict[str, EngineSettings]
) -> None:
    with polymux.Client(server.url, server.key) as client, polymux.Local(engines=engines) as local:
        for caller in (client, local):
            with pytest.raises(NoBackendError) as refused:
                getattr(caller, name)(**in_python(name, WITHOUT[name]))
            assert (refused.value.status, refused.value.code) == (501, "no_backend")
            assert "retry-after" not in refused.value.headers


def test_all_operations_are_here() -> None:
    assert {one.name for one in contract.operations()} == {*FACES, *WITHOUT, *OUTSIDE}
