"""Looks at jobs, whoever sends them: requests, pages, events, and how long is waited."""

from __future__ import annotations

import os
from contextlib import contextmanager
from time import monotonic

from polymux._native import core
from polymux._util.logging import log
from polymux._util.text import shown
from polymux.client.answer import Answer, status_error, told_error
from polymux.client.call import SUCCESSES
from polymux.client.options import QUICK, SLOW, STREAMED, as_timeout, native_options
from polymux.client.responses import Prediction
from polymux.client.responses._base import parsed, required_array
from polymux.errors import (
    DecodeError,
    InvalidRequestError,
    RequestTimeoutError,
    StreamInterruptedError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeGuard

    from polymux.client.connection import Connection
    from polymux.client.options import Timeout
    from polymux.client.settings import Settings

PATH = "/api/v1/predictions"
#: What the path of a page ends with, whatever stands before: a prefix, or another interface's.
_LIST = "/predictions"
_FIRST_PAUSE_S = 0.5
_MAX_PAUSE_S = 5.0
_GROWTH = 1.5
#: Where somebody watches.
_MAX_WATCHED_PAUSE_S = 2.0
_MAX_PAGES = 10_000
_MAX_ID_CHARACTERS = 200


def path_of(prediction: Prediction | str) -> str:
    """Where a server has a job.

    Raises:
        InvalidRequestError: It has no id, or one that cannot be.
        TypeError: It is no job, and no id.
    """
    from urllib.parse import quote

    name = id_of(prediction)
    try:
        if name and len(name) <= _MAX_ID_CHARACTERS:
            return f"{PATH}/{quote(name, safe='')}"
    except UnicodeEncodeError:  # half a surrogate pair
        pass
    raise InvalidRequestError(f"the prediction has no id that could be asked for: {shown(name)}")


def id_of(prediction: Prediction | str) -> str | None:
    """The id of a job that was given as one, or as its id.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(prediction, str):
        return prediction

    if not isinstance(prediction, Prediction):
        raise TypeError(
            f"a prediction is a polymux.Prediction or its id, not {type(prediction).__name__}"
        )
    return prediction.id


class JobRequests:
    """What both ways to the jobs of a server share: the requests that they send."""

    __slots__ = ("_connection", "_settings")

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings

    def _request(
        self, method: str, target: str, timeout: float | Timeout | None
    ) -> tuple[str, str, list[str], Any, Any]:
        """Method, address, header fields, body and options for the native session."""
        settings = self._settings
        if timeout is not None:
            settings = settings.changed(timeout=timeout)
        deadlines = settings.timeout.over(QUICK)
        # Looking at a job, and cancelling it twice, does no harm.
        retry = settings.retry._replace(repeatable=True)
        options = native_options(deadlines, retry, settings.max_event_bytes)
        fields = [f"{name}: {value}" for name, value in settings.headers]
        # New for each request, the same for all its tries.
        names = [f"X-Request-ID: {os.urandom(12).hex()}"]
        if method == "POST":
            names.append(f"Idempotency-Key: {os.urandom(16).hex()}")
        given = settings.names()
        fields += [name for name in names if name.partition(":")[0].lower() not in given]
        return method, f"{self._connection.base_url}{target}", fields, None, options

    def _events_request(
        self, prediction: Prediction | str, timeout: float | Timeout | None
    ) -> tuple[str, str, list[str], Any, Any]:
        """The same for the events of a job."""
        streamed = as_timeout(timeout).over(self._settings.timeout).over(STREAMED)
        request = self._request("GET", f"{path_of(prediction)}/events", streamed)
        if "accept" not in self._settings.names():
            request[2].append("Accept: text/event-stream")
        return request


class Events:
    """Jobs out of the bytes of a stream of events."""

    def __init__(self, connection: Connection, max_event_bytes: int) -> None:
        self.ended = False
        # Whose files the jobs name.
        self._answer = Answer((200, b"", b"", 1, 0.0), connection)
        self._splitter = core.EventSplitter(max_event_bytes)

    def read(self, piece: bytes) -> Iterator[Prediction]:
        """The jobs that these bytes complete.

        Raises:
            DecodeError: An event is no job.
            APIError: The server told of a failure.
        """

        with failures_told():
            for kind, data in self._splitter.feed(piece):
                if kind == "error":
                    raise told_error(data)
                job = Prediction.of_value(parsed(data), self._answer, data)
                self.ended = job.finished
                yield job

    def finish(self) -> None:
        """No more will come.

        Raises:
            StreamInterruptedError: The job's end was not told.
        """

        if not self.ended:
            message = "the server ended the stream of events, and the job goes on still"
            error = StreamInterruptedError(message)
            error.retry_safe = True
            raise error


@contextmanager
def failures_told() -> Iterator[None]:
    """A line for what came to no answer; what has a status has its line already."""
    started = monotonic()
    try:
        yield
    except Exception as error:
        if getattr(error, "status", None) is None:
            name, took_s = type(error).__name__, monotonic() - started
            log("debug", "predictions: %s after %.3f s", name, took_s)
        raise


def checked_answer(answer: Answer) -> Answer:
    """The answer, when it is a success.

    Raises:
        APIStatusError: It is none.
    """
    log("debug", "predictions: status %d in %.3f s", answer.status, answer.elapsed_s)
    if answer.status not in SUCCESSES:
        raise status_error(answer)
    return answer


class Paginator:
    """Page after page of a list."""

    def __init__(self) -> None:
        self._target: str | None = PATH
        self._next: object = None
        self._count = 0

    def target(self) -> str | None:
        """Path and query of the page that comes next; None after the last.

        Of its address only the query counts, and that it is the list's: servers know themselves by
        other names than clients do, and nothing else is asked with the key.

        Raises:
            DecodeError: The last page named one that cannot be asked for.
        """
        if not self._count:
            return self._target
        if self._next in (None, "") or self._count >= _MAX_PAGES:
            return None
        target = _page_at(self._next)
        if target is None or target == self._target:
            where = "to the same page" if target else "to no page of jobs"
            raise DecodeError(f"next: leads {where}: {shown(self._next)}")
        self._target = target
        return target

    def read(self, answer: Answer) -> list[Prediction]:
        """The jobs of a page.

        Raises:
            DecodeError: It is no list of jobs.
        """

        page = parsed(answer.body)
        items = page if isinstance(page, list) else required_array(page, "results", "")
        self._next = page.get("next") if isinstance(page, dict) else None
        self._count += 1
        return [
            Prediction.of_value(one, answer, path=f"results[{i}]") for i, one in enumerate(items)
        ]


def _page_at(address: object) -> str | None:
    """Path and query on the client's own server; None for what is no page of its jobs."""
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
    """How long a job is waited for, and who is told of it."""

    def __init__(
        self,
        settings: Settings,
        prediction: Prediction | str,
        timeout: float | Timeout | None,
        *,
        told: bool,
    ) -> None:
        """The clock starts. `told`: somebody wants to know of what is new."""
        self._timeout = as_timeout(timeout).over(settings.timeout.over(SLOW))
        self._name = id_of(prediction)
        self._until = monotonic() + (self._timeout.total or 0.0)
        self._pause = _FIRST_PAUSE_S
        self._max_pause_s = _MAX_WATCHED_PAUSE_S if told else _MAX_PAUSE_S
        self._told: Prediction | None = None

    def is_news(self, job: Prediction | None) -> TypeGuard[Prediction]:
        """Whether the job is not as it was; then it is soon asked for again."""
        if job is None or job == self._told:
            return False
        self._pause = _FIRST_PAUSE_S
        self._told = job
        return True

    def pause(self) -> float:
        """Seconds until it is asked for again.

        Raises:
            RequestTimeoutError: There is no time left.
        """
        left = self._left()
        pause = min(self._pause, left)
        self._pause = min(self._pause * _GROWTH, self._max_pause_s)
        return pause

    def rest(self) -> Timeout:
        """The time that is left, as a `Timeout`."""
        return self._timeout._replace(total=self._left())

    def _left(self) -> float:
        left = self._until - monotonic()
        if left > 0:
            return left

        error = RequestTimeoutError(
            f"the prediction {self._name} goes on still after {self._timeout.total:g} s (deadline "
            "'total'); client.predictions.wait waits on, client.predictions.cancel ends it"
        )
        error.limit = "total"
        raise error
