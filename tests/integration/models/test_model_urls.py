"""Models from URLs: downloaded with SSRF protection and stored only if the hash matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import (
    ConnectionLostError,
    InputNotFoundError,
    InvalidRequestError,
    URLRefusedError,
)
from polymux.fetch.fetcher import FetchPolicy
from polymux.models import download
from polymux.models.errors import ModelError
from polymux.models.partial_file import UnfinishedFile
from support.http_server import Exchange, Server
from support.models import GGUF, contents, cut, sha256

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.models.folder import ModelsFolder


@pytest.fixture
def web() -> Iterator[Server]:
    async def answer(exchange: Exchange) -> None:
        if exchange.target == "/m.gguf":
            await exchange.answer(200, GGUF)
        elif exchange.target == "/text":
            await exchange.answer(200, b"no model")
        elif exchange.target == "/cut":
            await cut(exchange)
        else:
            await exchange.answer(404, b"no")

    with Server(answer) as server:
        yield server


def test_a_model_at_an_address(web: Server, folder: ModelsFolder) -> None:
    model = download.of_url("mine", web.url("/m.gguf"), sha256(GGUF).upper(), license="own")
    policy = FetchPolicy(allowed_hosts=(web.authority,))
    made = download.pull(model, folder, policy=policy)
    assert contents(folder.path).keys() == {"mine/mine.gguf", "mine/polymux-model.json"}
    assert made.engine_options() == {"model": str(folder.path / "mine" / "mine.gguf")}
    assert (made.manifest.license, made.manifest.source) == ("own", web.url("/m.gguf"))


@pytest.mark.parametrize(
    ("path", "data", "kind", "words"),
    [
        ("/m.gguf", b"other", ModelError, "SHA-256"),
        ("/text", b"no model", ModelError, "mine"),
        ("/nothing", b"no", ModelError, "404"),
        ("/cut", b"x", ConnectionLostError, None),
    ],
)
def test_addresses_without_a_model(
    web: Server, folder: ModelsFolder, path: str, data: bytes, kind: type[Exception], words: Any
) -> None:
    policy = FetchPolicy(allowed_hosts=(web.authority,))
    model = download.of_url("mine", web.url(path), sha256(data))
    with pytest.raises(kind, match=words):
        download.pull(model, folder, policy=policy)
    assert folder.find("mine") is None
    # Only the partial file of an interrupted download remains.
    kept = {f".mine.part/unfinished/{sha256(data)}{end}" for end in ("", ".json")}
    assert contents(folder.path).keys() <= ({".mine.part/lock"} | kept if path == "/cut" else set())
    with pytest.raises(InputNotFoundError):
        folder.get("mine")


@pytest.mark.parametrize(
    "digest", ["../../escaped", "{elsewhere}/escaped", "", "0" * 63, "g" * 64, sha256(GGUF) + "\n"]
)
def test_hashes_that_are_none(
    web: Server, folder: ModelsFolder, tmp_path: Path, digest: str
) -> None:
    """The hash is part of the temporary file's name, so an invalid one must not write anywhere."""
    (tmp_path / "elsewhere").mkdir()
    wanted = digest.format(elsewhere=tmp_path / "elsewhere")
    policy = FetchPolicy(allowed_hosts=(web.authority,))
    with pytest.raises(InvalidRequestError, match=r"sha256.*\b64\b"):
        download.pull(download.of_url("mine", web.url("/cut"), wanted), folder, policy=policy)
    assert [one.name for one in tmp_path.rglob("*")] == ["elsewhere"]
    assert web.connections == 0
    with pytest.raises(ValueError):
        UnfinishedFile(tmp_path, wanted, "", None, ModelError)


def test_addresses_pass_the_guard(web: Server, folder: ModelsFolder) -> None:
    for url in (web.url("/m.gguf"), "file:///etc/passwd", "http://localhost/m.gguf"):
        with pytest.raises(URLRefusedError):
            download.pull(download.of_url("mine", url, sha256(GGUF)), folder)
    assert web.connections == 0
