"""Six operations with real engines, asked in five ways: each answers the same question alike.

By curl's program, by the command, by both clients and by Local.
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
from support.polymux_server import PolymuxServer
from support.weights import upscaler, whisper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PLAIN = {"max_completion_tokens": 8, "temperature": 0.0, "seed": 1}
MESSAGES = [{"role": "user", "content": "Name three colours."}]
TEXT = "POLYMUX 2026"


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


@dataclass(frozen=True)
class Face:
    """An operation and how its answer is made comparable.

    Attributes:
        values: Its fields; bytes are files.
        told: What is compared, of the answer as JSON and of a function that fetches files.
        words: Of the command, after its name.
        model: Its selector.
    """

    values: Mapping[str, Any]
    told: Callable[[Any, Callable[[str], bytes]], Any]
    words: tuple[str, ...]
    model: str = ""


FACES = {
    "chat": Face(
        {"messages": MESSAGES, "model": "chat", **PLAIN},
        lambda told, _: told["choices"][0]["message"]["content"],
        (MESSAGES[0]["content"], "--model", "chat", "--no-stream", "--json", "--temperature", "0",
         "--seed", "1", "--max-completion-tokens", "8"),
    ),
    "free_chat": Face(
        {"messages": MESSAGES, "model": "gpt-4"},
        lambda told, _: len(told["response"]) > 3,
        (MESSAGES[0]["content"], "--model", "gpt-4", "--no-stream", "--json"),
    ),
    "transcribe": Face(
        {"audio": spoken(), "language": "en"},
        lambda told, _: [word for word in ("fine", "today")
                         if word in told["output"]["text"].lower()],
        ("FILE", "--language", "en", "--json"),
    ),
    "upscale_image": Face(
        {"image": small(), "scale": 2},
        lambda told, fetch: Image.open(io.BytesIO(fetch(told["output"]))).size,
        ("FILE", "--scale", "2", "--json"), "nightmareai/real-esrgan",
    ),
    "convert_to_mp3": Face(
        {"file": wav(1), "bitrate": "128k"},
        lambda told, fetch: fetch(told["response"]),
        ("FILE", "--bitrate", "128k", "-o", "OUT"),
    ),
    "read_text": Face(
        {"file": page()}, lambda told, _: told["text"].strip(), ("FILE", "--json"),
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
    if face.model:
        words += ["--model", face.model]
    done = run(*words, cwd=folder, server=server)
    if name == "convert_to_mp3":
        return (folder / "OUT").read_bytes()
    return face.told(json.loads(done.stdout), fetched(server))


def in_python(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by the names that methods have for them."""
    python_names = {
        one.name: one.python_name for one in contract.operation(name).variants[-1].fields
    }
    found = {python_names.get(key, key): value for key, value in values.items()}
    model = FACES[name].model if name in FACES else ""
    return ({"model": model} if model else {}) | found


def told_of(name: str, result: Any) -> Any:
    """What `Face.told` makes of JSON, of a result in Python."""
    if name == "convert_to_mp3":
        return result.read()
    if name == "upscale_image":
        return Image.open(io.BytesIO(result.images[0].read())).size
    return FACES[name].told(result.json(), lambda _: b"")


@pytest.mark.parametrize("name", FACES)
def test_every_face_answers_alike(
    name: str, server: PolymuxServer, local: polymux.Local, tmp_path: Path
) -> None:
    first = by_curl(server, name, tmp_path)
    assert first == EXPECTED.get(name, first)
    assert first
    assert by_command(server, name, tmp_path) == first
    values = in_python(name, FACES[name].values)
    with polymux.Client(server.url, server.key) as client:
        assert told_of(name, getattr(client, name)(**values)) == first
    assert asyncio.run(by_async_client(server, name, values)) == first
    assert told_of(name, getattr(local, name)(**values)) == first


async def by_async_client(server: PolymuxServer, name: str, values: dict[str, Any]) -> Any:
    async with polymux.AsyncClient(server.url, server.key) as client:
        result = await getattr(client, name)(**values)
        return await asyncio.to_thread(told_of, name, result)


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
    name: str, server: PolymuxServer, local: polymux.Local
) -> None:
    with polymux.Client(server.url, server.key) as client:
        for caller in (client, local):
            with pytest.raises(NoBackendError) as refused:
                getattr(caller, name)(**in_python(name, WITHOUT[name]))
            assert (refused.value.status, refused.value.code) == (501, "no_backend")
            assert "retry-after" not in refused.value.headers


def test_all_operations_are_here() -> None:
    assert {one.name for one in contract.operations()} == {*FACES, *WITHOUT, *OUTSIDE}
