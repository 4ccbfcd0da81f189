"""`Local` accepts the same file inputs as a client and reads them only during the call."""

from __future__ import annotations

import asyncio
import io
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.fetches import wait_until
from support.hostile_check import PATIENCE
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_S = 20 * PATIENCE


class Bound(Scripted):
    def bind(self, service: Any) -> None:
        self.store = service.store


class BytesPath:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> bytes:
        return os.fsencode(self._path)


def test_file_objects_that_a_client_takes(tmp_path: Path) -> None:
    path, odd = tmp_path / "a.wav", os.fsencode(tmp_path) + b"/caf\xe9.wav"
    data = b"RIFF and samples"
    path.write_bytes(data)
    Path(os.fsdecode(odd)).write_bytes(data)
    backend = Scripted()
    with (
        tempfile.TemporaryFile() as number,
        open(os.fsencode(path), "rb") as of_bytes,  # noqa: PTH123
        path.open("rb") as of_text,
        open(odd, "rb") as of_odd,  # noqa: PTH123 - its name is no text
        polymux.Local(backends=[backend]) as local,
    ):
        number.write(data)
        number.seek(0)
        other: Any = type("Other", (), {"name": ["x"], "read": io.BytesIO(data).read})()
        given: list[tuple[Any, str]] = [
            (number, "file"), (of_bytes, "a.wav"), (of_odd, "caf\ufffd.wav"),
            (os.fsdecode(odd), "caf\ufffd.wav"), (BytesPath(path), "a.wav"),
            (("b.wav", of_text), "b.wav"), (other, "file"),
        ]  # fmt: skip
        for one, name in given:
            local.convert_to_mp3(one)
            upload = backend.began[-1].values["file"]
            assert (upload.file_name, upload.size_bytes) == (name, len(data))


def test_paths_that_cannot_be() -> None:
    with polymux.Local(backends=[Scripted()]) as local:
        for path in ("a\0.wav", "a\ud800.wav"):
            with pytest.raises(polymux.InvalidRequestError):
                local.convert_to_mp3(path)
    with pytest.raises(polymux.InvalidRequestError):
        polymux.Local("a\0").read_text(b"x")


def test_a_deadline_is_over_the_reading(tmp_path: Path) -> None:
    """It includes reading the input. The partial copy is deleted when the reader returns."""
    goes_on = threading.Event()

    def slow() -> Iterator[bytes]:
        yield bytes(2_000_000)
        goes_on.wait(MAX_S)
        yield bytes(2_000_000)
        raise AssertionError

    backend, drafts = Bound(), tmp_path / "drafts"
    with polymux.Local(tmp_path, backends=[backend]) as local:
        with pytest.raises(polymux.RequestTimeoutError, match=r"convert_to_mp3\b.*\b0\.5 s\b"):
            local.convert_to_mp3(slow(), timeout=0.5)
        assert len(list(drafts.iterdir())) == 1
        goes_on.set()
        wait_until(lambda: not list(drafts.iterdir()))
        assert backend.store.media.used_bytes == 0


def test_cancelled_while_it_is_read(tmp_path: Path) -> None:
    goes_on = threading.Event()

    def slow() -> Iterator[bytes]:
        yield bytes(2_000_000)
        goes_on.wait(MAX_S)

    async def main() -> None:
        backend = Bound()
        async with polymux.AsyncLocal(tmp_path / "kept", backends=[backend]) as local:
            for _ in range(3):
                with pytest.raises(TimeoutError) as caught:
                    async with asyncio.timeout(0.2):
                        await local.convert_to_mp3(slow())
                assert not isinstance(caught.value, polymux.PolymuxError)
            drafts = tmp_path / "kept" / "drafts"
            assert len(list(drafts.iterdir())) == 3
            goes_on.set()
            await asyncio.to_thread(wait_until, lambda: not list(drafts.iterdir()))
            assert backend.store.media.used_bytes == 0

    asyncio.run(main())
