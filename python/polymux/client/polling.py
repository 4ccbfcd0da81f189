"""Requests, pages, events and polling intervals of jobs, independent of I/O."""

from __future__ import annotations

import os
from contextlib import contextmanager
from time import monotonic

from polymux._native import core
from polymux._util.logging import log
from polymux._util.text import shown
from polymux.client.answer import Answer, reported_error, status_error
from polymux.client.call import SUCCESSES, log_retries
from polymux.client.options import QUICK, SLOW, STREAMED, as_timeout, native_options
from polymux.client.responses import Prediction
from polymux.client.responses._base import parsed, required_array
from polymux.errors import (
    DecodeError,
    InvalidRequestError,
    RequestTimeoutError,
    StreamInterruptedError,
)

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeGuard

    from polymux.client.connection import Connection
    from polymux.client.options import Timeout
    from polymux.client.settings import Settings

PATH = "/api/v1/predictions"
#: A page's path must end with this; servers may add a prefix or use another API's path.
_LIST = "/predictions"
_FIRST_PAUSE_S = 0.5
_MAX_PAUSE_S = 5.0
_GROWTH = 1.5
#: Maximum interval with a progress callback.
_MAX_WATCHED_PAUSE_S = 2.0
_MAX_PAGES = 10_000
_MAX_ID_CHARACTERS = 200


def path_of(prediction: Prediction | str) -> str:
    """Return the path of a job.

    Raises:
        InvalidRequestError: The ID is missing or invalid.
        TypeError: Neither a job nor an ID.
    """
    from urllib.parse import quote

    name = id_of(prediction)
    try:
        if name and len(name) <= _MAX_ID_CHARACTERS:
            return f"{PATH}/{quote(name, safe='')}"
    except UnicodeEncodeError:  # a lone surrogate
        pass
    raise InvalidRequestError(f"prediction: missing or invalid id (got {shown(name)})")


def id_of(prediction: Prediction | str) -> str | None:
    """Return the ID of a job, or the ID itself.

    Raises:
        TypeError: Neither a job nor an ID.
    """
    if isinstance(prediction, str):
        return prediction

    if not isinstance(prediction, Prediction):
        raise TypeError(
            f"prediction: invalid type (got {type(prediction).__name__}, allowed "
            "polymux.Prediction or its id)"
        )
    return prediction.id


class JobRequests:
    """The requests for jobs, shared by the synchronous and the asynchronous client."""

    __slots__ = ("_connection", "_settings")

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings

    def _request(
        self, method: str, target: str, timeout: float | Timeout | None
    ) -> tuple[str, str, list[str], Any, Any]:
        """Return method, URL, header fields, body and options for the native session."""
        settings = self._settings
        if timeout is not None:
            settings = settings.changed(timeout=timeout)
        deadlines = settings.timeout.over(QUICK)
        # Reading a job is safe to repeat, and so is canceling it.
        retry = settings.retry._replace(repeatable=True)
        options = native_options(deadlines, retry, settings.max_event_bytes)
        fields = [f"{name}: {value}" for name, value in settings.headers]
        # New IDs for each request; all its attempts share them.
        names = [f"X-Request-ID: {os.urandom(12).hex()}"]
        if method == "POST":
            names.append(f"Idempotency-Key: {os.urandom(16).hex()}")
        given = settings.names()
        fields += [name for name in names if name.partition(":")[0].lower() not in given]
        return method, f"{self._connection.base_url}{target}", fields, None, options

    def _events_request(
        self, prediction: Prediction | str, timeout: float | Timeout | None
    ) -> tuple[str, str, list[str], Any, Any]:
        """Return the request for the events of a job; see `_request`."""
        streamed = as_timeout(timeout).over(self._settings.timeout).over(STREAMED)
        request = self._request("GET", f"{path_of(prediction)}/events", streamed)
        if "accept" not in self._settings.names():
            request[2].append("Accept: text/event-stream")
        return request


class Events:
    """Decodes jobs from a stream of server-sent events."""

    def __init__(self, connection: Connection, max_event_bytes: int) -> None:
        self.ended = False
        # The connection is needed for files in the jobs.
        self._answer = Answer((200, b"", b"", 1, 0.0, ()), connection)
        self._splitter = core.EventSplitter(max_event_bytes)

    def read(self, piece: bytes) -> Iterator[Prediction]:
        """Return the jobs that these bytes complete.

        Raises:
            DecodeError: An event is not a job.
            APIError: The server reported a failure.
        """

        with log_failures():
            for kind, data in self._splitter.feed(piece):
                if kind == "error":
                    raise reported_error(data)
                job = Prediction.of_value(parsed(data), self._answer, data)
                self.ended = job.finished
                yield job

    def finish(self) -> None:
        """Handle the end of the stream.

        Raises:
            StreamInterruptedError: The job has not ended.
        """

        if not self.ended:
            message = (
                "event stream ended before the job. Read the events again, or wait for the job"
            )
            error = StreamInterruptedError(message)
            error.retry_safe = True
            raise error


@contextmanager
def log_failures() -> Iterator[None]:
    """Log failures without a response. Responses with a status are already logged."""
    started = monotonic()
    try:
        yield
    except Exception as error:
        if getattr(error, "status", None) is None:
            log_retries("predictions", error)
            name, took_s = type(error).__name__, monotonic() - started
            log("debug", "predictions: %s after %.3f s", name, took_s)
        raise


def checked_answer(answer: Answer) -> Answer:
    """Return the response if its status is a success.

    Raises:
        APIStatusError: It is not.
    """
    log_retries("predictions", answer)
    log("debug", "predictions: status %d in %.3f s", answer.status, answer.elapsed_s)
    if answer.status not in SUCCESSES:
        raise status_error(answer)
    return answer


class Paginator:
    """Iterates over the pages of a list."""

    def __init__(self) -> None:
        self._target: str | None = PATH
        self._next: object = None
        self._count = 0

    def target(self) -> str | None:
        """Return path and query of the next page; None after the last.

        Only the query of the URL is used, and only if its path is that of the list: servers may
        know themselves by another name than clients, and the key must not be sent elsewhere.

        Raises:
            DecodeError: The last page has an invalid URL of the next one.
        """
        if not self._count:
            return self._target
        if self._next in (None, "") or self._count >= _MAX_PAGES:
            return None
        target = _page_at(self._next)
        if target is None or target == self._target:
            allowed = "another page than the last one" if target else "a page of jobs"
            raise DecodeError(
                f"next: invalid URL of the next page (got {shown(self._next)}, allowed {allowed})"
            )
        self._target = target
        return target

    def read(self, answer: Answer) -> list[Prediction]:
        """Return the jobs of a page.

        Raises:
            DecodeError: The response is not a list of jobs.
        """

        page = parsed(answer.body)
        items = page if isinstance(page, list) else required_array(page, "results", "")
        self._next = page.get("next") if isinstance(page, dict) else None
        self._count += 1
        return [
            Prediction.of_value(one, answer, path=f"results[{i}]") for i, one in enumerate(items)
        ]


def _page_at(address: object) -> str | None:
    """Return path and query on the client's server; None if it is not a page of jobs."""
    from urllib.parse import urlsplit

    if not isinstance(address, str) or not address.isascii() or not address.isprintable():
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    named = parts.path.rstrip("/").endswith(_LIST) or not (parts.path or parts.netloc)
    if not named or " " in parts.query or parts.scheme not in ("", "http", "https"):
        return None
    return f"{PATH}?{parts.query}" if parts.query else PATH


class JobPoller:
    """Computes the polling interval and the remaining time, and detects changes."""

    def __init__(
        self,
        settings: Settings,
        prediction: Prediction | str,
        timeout: float | Timeout | None,
        *,
        has_callback: bool,
    ) -> None:
        """Start the clock. `has_callback`: whether there is a progress callback."""
        self._timeout = as_timeout(timeout).over(settings.timeout.over(SLOW))
        self._name = id_of(prediction)
        self._until = monotonic() + (self._timeout.total or 0.0)
        self._pause = _FIRST_PAUSE_S
        self._max_pause_s = _MAX_WATCHED_PAUSE_S if has_callback else _MAX_PAUSE_S
        self._reported: Prediction | None = None

    def is_news(self, job: Prediction | None) -> TypeGuard[Prediction]:
        """Return whether the job has changed. A change resets the polling interval."""
        if job is None or job == self._reported:
            return False
        self._pause = _FIRST_PAUSE_S
        self._reported = job
        return True

    def pause(self) -> float:
        """Return the seconds until the next request.

        Raises:
            RequestTimeoutError: No time is left.
        """
        left = self._left()
        pause = min(self._pause, left)
        self._pause = min(self._pause * _GROWTH, self._max_pause_s)
        return pause

    def rest(self) -> Timeout:
        """Return the remaining time."""
        return self._timeout._replace(total=self._left())

    def _left(self) -> float:
        left = self._until - monotonic()
        if left > 0:
            return left

        error = RequestTimeoutError(
            f"job {self._name}: timed out after {self._timeout.total:g} s (timeout "
            "'total'); the job is still running. Use client.predictions.wait to wait longer, or "
            "client.predictions.cancel to cancel it"
        )
        error.limit = "total"
        raise error
