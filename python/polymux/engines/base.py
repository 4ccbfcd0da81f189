"""What an engine is to the process that it runs in."""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux._util.deprecation import RenamedAttribute
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from polymux.service.model import Upload


class Cancelled(BaseException):
    """Somebody asked for the end of the work. No `Exception`: engines' own handlers let it pass."""


class Token:
    """Whether somebody has asked for the end of one piece of work. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Whether somebody has.
        self.cancelled = False
        self._callbacks: list[Callable[[], object]] = []

    def check(self) -> None:
        """Ends the work here, where somebody has.

        Raises:
            Cancelled: Somebody has.
        """
        if self.cancelled:
            raise Cancelled

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Calls this when somebody asks, on whatever thread; at once where somebody has."""
        with self._lock:
            if not self.cancelled:
                self._callbacks.append(callback)
                return
        callback()

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class Produced(NamedTuple):
    """A file that an engine has written.

    Attributes:
        path: Where, as `EngineSink.draft` gave it.
        content_type: What it is.
        file_name: What to save it as.
    """

    path: Path
    content_type: str
    file_name: str


class Output(NamedTuple):
    """What came of work.

    Attributes:
        value: JSON, with `Produced` in the place of files.
        version: SHA-256 of the model's file, or a word.
        metrics: Numbers by name.
    """

    value: Any
    version: str = "hidden"
    metrics: Mapping[str, float] = {}


class EngineSink(ABC):
    """Where an engine tells how its work goes. Any thread."""

    @abstractmethod
    def log(self, line: str) -> None:
        """A line for the job's log."""

    @abstractmethod
    def report(self, progress: float) -> None:
        """How much is done, from 0 to 1."""

    @abstractmethod
    def chunk(self, data: Mapping[str, Any]) -> None:
        """A piece of a streamed answer."""

    def preview(self, data: bytes, content_type: str) -> None:  # noqa: B027 - most have nobody
        """A small picture of what is being made, in the place of the last. Default: unseen."""

    @abstractmethod
    def draft(self, expected_bytes: int = 0) -> Path:
        """Where to write a file; it does not exist yet.

        Raises:
            PolymuxError: There is no room.
        """


class Request(NamedTuple):
    """Work as an engine gets it.

    Attributes:
        operation: Such as ``"transcribe"``.
        variant: Id of the variant; empty where there is one only.
        model: The model selector; empty where there is none.
        values: Wire name to value, defaults filled in; a file is an `Upload`.
        given: Names that the caller gave.
    """

    operation: str
    variant: str
    model: str
    values: Mapping[str, Any]
    given: frozenset[str]


class Engine(ABC):
    """One family of models. Made in its process, loaded once, used until the process ends.

    Attributes:
        max_concurrency: How many threads may call `run` at once.
        threads: For its libraries, where its process has other work as well; else 0, and it has
            those of its process.
    """

    max_concurrency: int = 1
    threads: int = 0
    slots = RenamedAttribute("slots", "max_concurrency")

    @abstractmethod
    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Loads models; gives what should be known of them, as JSON.

        Raises:
            PolymuxError: Something that it needs is missing.
        """

    @abstractmethod
    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Does work.

        Raises:
            PolymuxError: It failed.
            Cancelled: `token` asked for it.
        """


_DEFAULT_CONTEXT = 4096


def missing_package(what: str, package: str, extra: str) -> errors.NoBackendError:
    message = f"{what} needs {package}: install it with pip install 'polymux[{extra}]'"
    return status_error(errors.NoBackendError, message)


def threads() -> int:
    """How many threads this process's libraries may use."""
    return int(os.environ.get("POLYMUX_THREADS", "1"))


def hash_of(path: Path) -> str:
    """SHA-256 of a model's file, as predictions tell it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def samples_of(file: Upload, facts: Mapping[str, Any]) -> Any:
    """The samples that the media engine has loaded: rows, columns, channels; of 8 or 16 bits."""
    import numpy

    kind = numpy.uint8 if facts["bits"] == 8 else numpy.uint16
    shape = (facts["height"], facts["width"], facts["channels"])
    return numpy.memmap(file.path, kind, "r", shape=shape)


def context_tokens(options: Mapping[str, Any]) -> int:
    """How much a chat engine's model reads and writes in one chat.

    Example:
        >>> context_tokens({"context": 1024}), context_tokens({})
        (1024, 4096)
    """
    return int(options.get("context", _DEFAULT_CONTEXT))
