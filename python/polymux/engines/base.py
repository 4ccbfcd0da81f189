"""Base classes of engines and their requests, outputs and progress sinks."""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux._util.deprecation import RenamedAttribute
from polymux.engines.registry import missing_library
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from polymux.service.model import Upload


class Cancelled(BaseException):
    """The request was canceled. Not an `Exception`, because engines' handlers must not catch it."""


class Token:
    """Cancellation of one request. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Whether the request was canceled.
        self.cancelled = False
        self._callbacks: list[Callable[[], object]] = []

    def check(self) -> None:
        """Stop here if the request was canceled.

        Raises:
            Cancelled: The request was canceled.
        """
        if self.cancelled:
            raise Cancelled

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call `callback` on cancellation, on any thread; immediately if already canceled."""
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
        path: Path from `EngineSink.draft`.
        content_type: MIME type.
        file_name: Suggested name for saving.
    """

    path: Path
    content_type: str
    file_name: str


class Output(NamedTuple):
    """The result of a request.

    Attributes:
        value: JSON value with `Produced` in place of files.
        version: SHA-256 of the model's file, or another identifier.
        metrics: Numbers by name.
        model: Name of the model that did the work, if it differs from the one in the facts of
            `Engine.load`.
    """

    value: Any
    version: str = "hidden"
    metrics: Mapping[str, float] = {}
    model: str = ""


class EngineSink(ABC):
    """Receives the progress of a request. Thread-safe."""

    @abstractmethod
    def log(self, line: str) -> None:
        """Add a line to the job's log."""

    def warn(self, line: str) -> None:
        """Like `log`, for a part of the request that was ignored, limited or not satisfied."""
        self.log(line)

    @abstractmethod
    def report(self, progress: float) -> None:
        """Report the completed fraction, from 0 to 1."""

    @abstractmethod
    def chunk(self, data: Mapping[str, Any]) -> None:
        """Send a chunk of a streamed response."""

    def preview(self, data: bytes, content_type: str) -> None:  # noqa: B027 - optional
        """Show a small preview image that replaces the last one. Default: do nothing."""

    @abstractmethod
    def draft(self, expected_bytes: int = 0) -> Path:
        """Return the path for a new output file, which does not exist yet.

        Raises:
            PolymuxError: There is not enough space.
        """


class Request(NamedTuple):
    """A request to an engine.

    Attributes:
        operation: Such as ``"transcribe"``.
        variant: ID of the variant; empty if there is only one.
        model: Model selector, or empty.
        values: Values by API field name, with defaults. A file is an `Upload`.
        given: Names of the fields that the client sent.
    """

    operation: str
    variant: str
    model: str
    values: Mapping[str, Any]
    given: frozenset[str]


class Engine(ABC):
    """An engine for one family of models. It is created and loaded once per process.

    Attributes:
        max_concurrency: How many threads may call `run` at the same time.
        threads: Number of library threads if the process does other work too. 0 means that the
            engine uses all threads of its process.
    """

    max_concurrency: int = 1
    threads: int = 0
    slots = RenamedAttribute("slots", "max_concurrency")

    @abstractmethod
    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Load models and return facts about them as JSON.

        Responses show the fact ``model``, a name, as `engine_model`. Jobs show ``version``.

        Raises:
            PolymuxError: A dependency or model is missing.
        """

    @abstractmethod
    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Run a request.

        Raises:
            PolymuxError: The request failed.
            Cancelled: `token` was canceled.
        """


_DEFAULT_CONTEXT = 4096
#: Internal option: the name of an installed model, as in ``polymux models list``.
MODEL_NAME = "model_name"


def missing_package(
    what: str, package: str, extra: str, error: ImportError | None = None
) -> errors.NoBackendError:
    """Create the API error for a package whose import fails, by default because it is missing."""
    if error is None or isinstance(error, ModuleNotFoundError):
        message = f"{what}: the package {package} is not installed"
        remedy = f"pip install 'polymux[{extra}]'"
    else:
        # Import errors may contain paths.
        library, remedy = missing_library(str(error))
        problem = f": the system library {library} is missing" if remedy else ""
        message = f"{what}: the package {package} cannot be loaded{problem}"
        remedy = remedy or "polymux doctor, which shows the reason"
    return status_error(errors.NoBackendError, f"{message}. Run {remedy}")


def threads() -> int:
    """How many threads the libraries of this process may use."""
    return int(os.environ.get("POLYMUX_THREADS", "1"))


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a model's file, which is reported as the job's version."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def model_name(options: Mapping[str, Any], file_name: str) -> str:
    """Return the name of an engine's model: of the installed model, else of its file."""
    return str(options.get(MODEL_NAME) or file_name)


def samples_of(file: Upload, facts: Mapping[str, Any]) -> Any:
    """Return samples from the media engine: rows, columns, channels; 8 or 16 bits."""
    import numpy

    kind = numpy.uint8 if facts["bits"] == 8 else numpy.uint16
    shape = (facts["height"], facts["width"], facts["channels"])
    return numpy.memmap(file.path, kind, "r", shape=shape)


def context_tokens(options: Mapping[str, Any]) -> int:
    """Return the context length of a chat engine: tokens for prompt and response together.

    Example:
        >>> context_tokens({"context": 1024}), context_tokens({})
        (1024, 4096)
    """
    return int(options.get("context", _DEFAULT_CONTEXT))
