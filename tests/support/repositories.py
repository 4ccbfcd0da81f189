"""Model repositories on loopback: Hugging Face's file lists and its storage."""

from __future__ import annotations

import hashlib
import json
import struct
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from support.http_server import Exchange, Server
from support.models import sha256

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from support.http_server import Script

COMMIT = "c0ffee" * 6 + "abcd"
NAME = "owner/model"
_SMALL = (".json", ".txt", ".md")


def safetensors(**shapes: tuple[int, ...]) -> bytes:
    """A safetensors file with zeros in half precision."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, shape in shapes.items():
        count = 2
        for one in shape:
            count *= one
        span = [place, place + count]
        head[name.replace("__", ".")] = {"dtype": "F16", "shape": shape, "data_offsets": span}
        place = span[1]
    data = json.dumps(head).encode()
    return struct.pack("<Q", len(data)) + data + bytes(place)


def pipeline(
    weights: Mapping[str, str] | None = None, kind: str = "StableDiffusionPipeline"
) -> dict[str, bytes]:
    """The files of a diffusers pipeline; of its components, unet and vae have weights."""
    index = {
        "_class_name": kind,
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"],
        "feature_extractor": [None, None],
    }
    plain = "diffusion_pytorch_model.safetensors"
    named = {"unet": plain, "vae": plain, **(weights or {})}
    return {
        "model_index.json": json.dumps(index).encode(),
        "unet/config.json": b'{"_class_name": "UNet2DConditionModel"}',
        f"unet/{named['unet']}": safetensors(a=(3, 5), b=(7,)),
        "vae/config.json": b'{"_class_name": "AutoencoderKL"}',
        f"vae/{named['vae']}": safetensors(c=(2,)),
        "tokenizer/vocab.json": b"{}",
        "tokenizer/merges.txt": b"#version: 0.2\n",
    }


def write(place: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place


def described(wanted: str = "", files: str = "", name: str = "tiny") -> str:
    """A registry with a diffusion model: all folders of `NAME`, or the given entries."""
    folders = (".", "unet", "vae", "tokenizer")
    lines = wanted or "".join(f'{{source = "r", path = "{one}"}},' for one in folders)
    return f"""
[source.r]
repository = "{NAME}"
revision = "main"
[source.other]
repository = "other/painter"
revision = "main"
[[model]]
name = "{name}"
family = "diffusion"
title = "paints"
license = "CC0-1.0"
license_source = "this test"
license_note = "a note"
about_bytes = 5000
paths = {{ model = "." }}
file = [{files}]
wanted = [{lines}]
"""


@dataclass
class Hub:
    """Repositories, scripted faults, and a record of requests.

    Attributes:
        files: Repository to path to content.
        listed: Path to members that replace the true ones in the file list.
        sent: Path to bytes that replace the content.
        stored: Path to a handler for requests to the storage.
        status: Part of a URL to the status of its answers.
        about: Extra members of a repository's description.
        page: Files per page of a list.
        asked: The paths of the requested files.
    """

    files: dict[str, dict[str, bytes]]
    listed: dict[str, dict[str, Any]] = field(default_factory=dict)
    sent: dict[str, bytes] = field(default_factory=dict)
    stored: dict[str, Script] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    page: int = 100
    asked: list[str] = field(default_factory=list)
    url: str = ""
    storage: str = ""

    async def answer(self, exchange: Exchange) -> None:
        target = exchange.target
        refused = next((code for part, code in self.status.items() if part in target), None)
        owner_name = "/".join(target.removeprefix("/api/models").strip("/").split("/")[:2])
        if refused is not None or owner_name not in self.files:
            await exchange.answer(refused or 404)
        elif "/revision/" in target:
            await exchange.answer(200, json.dumps({"sha": COMMIT, **self.about}).encode())
        elif f"/tree/{COMMIT}" in target:
            await self._list(exchange, owner_name)
        elif f"/resolve/{COMMIT}/" in target or "/resolve/main/" in target:
            path = unquote(target.split("/resolve/")[1].partition("/")[2])
            self.asked.append(path)
            # Large files are on another server.
            await exchange.answer(302, b"", f"Location: {self.storage}/{owner_name}/{path}")
        else:
            await exchange.answer(404)

    async def _list(self, exchange: Exchange, repository: str) -> None:
        names = sorted(self.files[repository])
        query = exchange.target.partition("cursor=")[2]
        first = int(query or 0)
        entries: list[Any] = [{"type": "directory", "path": "unet", "oid": "0" * 40, "size": 0}]
        entries += [
            entry(path, self.files[repository][path]) | self.listed.get(path, {})
            for path in names[first : first + self.page]
        ]
        headers = []
        if first + self.page < len(names):
            following = f"{self.url}{exchange.target.partition('&')[0]}&cursor={first + self.page}"
            headers = [f'Link: <{following}>; rel="next"']
        await exchange.answer(200, json.dumps(entries).encode(), *headers)

    async def store(self, exchange: Exchange) -> None:
        owner, name, path = unquote(exchange.target.strip("/")).split("/", 2)
        if path in self.stored:
            await self.stored[path](exchange)
            return
        data = self.sent.get(path, self.files[f"{owner}/{name}"].get(path))
        await (exchange.answer(404) if data is None else exchange.answer(200, data))


def entry(path: str, data: bytes) -> dict[str, Any]:
    """A list entry: small files have git's hash, large ones a SHA-256."""
    blob = hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
    plain: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": blob}
    if not path.endswith(_SMALL):
        plain["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 130}
    return plain


@contextmanager
def hub(files: Mapping[str, Mapping[str, bytes]]) -> Iterator[Hub]:
    made = Hub({name: dict(one) for name, one in files.items()})
    with Server(made.answer) as server, Server(made.store) as storage:
        made.url, made.storage = server.url().rstrip("/"), storage.url().rstrip("/")
        yield made


def pickled(tensors: Mapping[str, tuple[bytes, tuple[int, ...]]], **more: object) -> bytes:
    """A torch.save file with 32-bit tensors (name to bytes and shape) and `more`."""
    import io

    import torch

    file = io.BytesIO()
    table = {
        name: torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(shape)
        for name, (data, shape) in tensors.items()
    }
    torch.save(table | more, file)
    return file.getvalue()
