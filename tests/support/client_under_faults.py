"""A client whose n-th system call fails, for every n. Needs the preloaded fault library.

``python -m support.client_under_faults URL FOLDER MOST CALL:ERRNO...`` prints one JSON line with
the outcome for each system call, each piece of work and each n up to MOST.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import itertools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
from polymux import errors
from polymux._util.atomic_file import write_atomically
from polymux.client.remote_file import RemoteFile
from polymux.fetch.fetcher import FetchPolicy, fetch

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "canary-key-5f2b7c"
BODY = b"body of a file " * 20_000
_library = ctypes.CDLL(None)


class Works:
    """Pieces of work. Each opens new connections, so every n occurs again."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._host = url.removeprefix("http://")
        self._upload = folder / "a.png"
        self._retry = polymux.Retry(1, first_backoff_s=0.01)
        self._loop = asyncio.new_event_loop()
        self.target = folder / "saved" / "file.bin"

    def _client(self) -> polymux.Client:
        return polymux.Client(self._url, KEY, retry=self._retry, timeout=30)

    def _remote(self) -> RemoteFile:
        return RemoteFile(f"{self._url}/file.bin", host=self._host)

    def call(self) -> None:
        with self._client() as client:
            assert client.free_chat("x").text == "fine"

    def stream(self) -> None:
        with self._client() as client:
            stream = client.chat("x", stream=True)
            assert "".join(stream.texts()) == "fine"
            assert stream.finished

    def upload(self) -> None:
        with self._client() as client:
            assert client.read_text(self._upload).text == "fine"

    def fetch(self) -> None:
        policy = FetchPolicy(allowed_hosts=(self._host,))
        fetched = fetch(f"{self._url}/moved", policy=policy)
        assert fetched.data == BODY
        assert fetch(f"{self._url}/file.bin", policy=policy, destination=self.target).ok

    def save(self) -> None:
        self._remote().save(self.target)

    def save_anew(self) -> None:
        self.target.unlink(missing_ok=True)
        self._remote().save(self.target, overwrite=False)

    def save_bytes(self) -> None:
        write_atomically(self.target, BODY, overwrite=True)  # like `MediaFile.save`

    def asynchronous(self) -> None:
        async def work() -> None:
            async with polymux.AsyncClient(self._url, KEY, retry=self._retry, timeout=30) as client:
                assert (await client.free_chat("x")).text == "fine"
                assert (await client.read_text(self._upload)).text == "fine"

        self._loop.run_until_complete(work())


#: Faults skip the event loop's own thread here, because asyncio handles them in its own way.
_BY_OTHER_THREADS = ("asynchronous",)
NAMES = ("call", "stream", "upload", "fetch", "save", "save_anew", "save_bytes", "asynchronous")


def outcome(work: Callable[[], None]) -> str:
    """``"fine"`` or the class name of a PolymuxError. Any other exception fails the test."""
    try:
        work()
    except (errors.PolymuxError, MemoryError) as error:
        return "a key in a message" if KEY in str(error) else type(error).__name__
    return "fine"


def once(works: Works, name: str, call: str, n: int, error: int) -> dict[str, Any]:
    works.target.write_bytes(b"before")
    work = getattr(works, name)
    _library.fail(b"", call.encode(), ctypes.c_long(n), error, 0, name in _BY_OTHER_THREADS)
    try:
        found = outcome(work)
    finally:
        fired = bool(_library.has_failed())
        _library.fail(b"", b"", ctypes.c_long(0), 0, 0, 0)
    there = works.target.read_bytes() if works.target.exists() else b""
    return {
        "call": call,
        "work": name,
        "n": n,
        "fired": fired,
        "outcome": found,
        "left": [one.name for one in works.target.parent.iterdir() if one != works.target],
        "file": {BODY: "new", b"before": "before", b"": "none"}.get(there, "torn"),
        "again": outcome(work),
    }


def main() -> None:
    """For every system call and every work, raise n until no call of this kind fails."""
    url, folder, most, *faults = sys.argv[1:]
    works = Works(url, Path(folder))
    for name in NAMES:
        assert outcome(getattr(works, name)) == "fine", name
    for fault, name in itertools.product(faults, NAMES):
        call, error = fault.split(":")
        for n in range(1, int(most) + 1):
            one = once(works, name, call, n, getattr(errno, error))
            print(json.dumps(one), flush=True)
            if not one["fired"]:
                break


if __name__ == "__main__":
    main()
