"""Input files of `Local` and `AsyncLocal`, copied into the store if necessary."""

from __future__ import annotations

import asyncio
import contextvars
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from polymux._util.text import shown
from polymux.client.multipart import _own_name
from polymux.errors import (
    InputNotFoundError,
    InputUnreadableError,
    InvalidRequestError,
    OperationCancelledError,
)
from polymux.media.inputs import file_given, path_bytes
from polymux.service.model import Upload

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.service.media_store import MediaStore
    from polymux.service.temporary_files import TempFile

Result = TypeVar("Result")


class Intake:
    """The files of one call, read on a separate thread.

    Reading an arbitrary iterable can block without limit and cannot be interrupted. Therefore
    nothing waits for the thread after the call is canceled or the program ends. The thread stops at
    its next piece and removes its copies. No other thread removes them while it reads.

    Args:
        media: Store for copies of files that are not on disk.
    """

    def __init__(self, media: MediaStore) -> None:
        self._media = media
        self._drafts: list[TempFile] = []
        self._lock = threading.Lock()
        self._is_reading = self._is_given_up = False
        #: Whether a job discards the files when it ends.
        self.is_of_job = False

    async def read(self, work: Callable[[], Result]) -> Result:
        """Run a function on the thread. Its exceptions are raised here."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        outcome: list[tuple[Result, None] | tuple[None, BaseException]] = []

        def tell() -> None:
            if not done.done():
                done.set_result(None)

        def read() -> None:
            try:
                outcome.append((work(), None))
            except BaseException as error:
                # Also SystemExit, which belongs to the caller.
                outcome.append((None, error))
            self._end_reading()
            with suppress(RuntimeError):  # The loop has ended in the meantime.
                loop.call_soon_threadsafe(tell)

        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(read,), name="polymux-reading", daemon=True)
        self._is_reading = True
        try:
            thread.start()
        except BaseException:
            self._is_reading = False
            raise
        await done
        made, error = outcome.pop()
        if error is None:
            return made  # type: ignore[return-value]  # set if there is no error
        try:
            raise error
        finally:
            del error  # Breaks the reference cycle with its traceback.

    def _end_reading(self) -> None:
        with self._lock:
            self._is_reading = False
            if self._is_given_up:
                self._discard()

    def check(self) -> None:
        """Stop reading after a discard; called between two pieces, on the reading thread.

        Raises:
            OperationCancelledError: The files were discarded.
        """
        if self._is_given_up:
            raise OperationCancelledError("canceled: the call has ended")

    def draft(self) -> TempFile:
        """Create a temporary file for a copy."""
        self.check()
        made = self._media.draft()
        self._drafts.append(made)
        return made

    def discard(self) -> None:
        """Remove the copies, now or when the thread has its next piece. Idempotent."""
        with self._lock:
            self._is_given_up = True
            if not self._is_reading:
                self._discard()

    def _discard(self) -> None:
        for draft in self._drafts:
            draft.discard()


def upload_of(value: Any, intake: Intake) -> Upload:
    """Convert a caller's file: use a path directly, and copy other sources to a temporary file.

    Raises:
        InvalidRequestError: The path is invalid, or the value cannot be read.
        InputError: It cannot be read.
    """
    name, data = (value[0], value[1]) if isinstance(value, tuple) else (None, value)
    made = file_given(data)  # A result of this or another call.
    if made is not None:
        name, data = name or made[0], made[1]
    if isinstance(data, (str, os.PathLike)):
        path = Path(os.fsdecode(path_bytes(data))).absolute()
        return Upload(path, name or _name_of(path), "", _size_of(path))
    draft = intake.draft()
    with draft.create() as file:
        for piece in _pieces(data):
            intake.check()
            draft.write_to(file, piece)
        size = file.tell()
    draft.reserve(size)
    return Upload(draft.path, name or _name_of(data) or "file", "", size)


def _name_of(content: Any) -> str:
    """Return the file name as a client sends it, without lone surrogates."""
    name = _own_name(content)
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in name)


def _size_of(path: Path) -> int:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise InputNotFoundError("file not found", input_name=os.fspath(path)) from None
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise InputUnreadableError(
            f"{shown(os.fspath(path))}: not a file", input_name=os.fspath(path)
        )
    try:
        # An engine would read the file much later, and could not name the user's mistake.
        with path.open("rb"):
            return status.st_size
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> InputUnreadableError:
    words = f"cannot read {shown(os.fspath(path))}: {error.strerror}"
    return InputUnreadableError(words, input_name=os.fspath(path), errno=error.errno)


def _pieces(data: Any) -> Any:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return (bytes(data),)
    if hasattr(data, "read") and file_given(data) is None:
        return iter(lambda: data.read(1 << 20), b"")
    try:
        return iter(data)
    except TypeError:
        raise InvalidRequestError(
            f"file: invalid type (got {type(data).__name__}, allowed a path, bytes, a binary file "
            "object or an iterable of bytes)"
        ) from None
