"""Jobs on a server: looked at, watched, waited for and cancelled."""

from __future__ import annotations

import os

from polymux import call_options
from polymux._answers import Answer, status_error
from polymux._calls import SUCCESSES, native_call_options
from polymux._log import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from polymux._connection import Connection
    from polymux._settings import Settings
    from polymux.call_options import Timeout
    from polymux.errors import APIError
    from polymux.responses import Prediction

__all__ = ["Predictions"]

PATH = "/api/v1/predictions"
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 5.0
_GROWTH = 1.5
_MOST_PAGES = 10_000
_LONGEST_ID = 200


class Predictions:
    """The jobs of a server; `polymux.Client.predictions`."""

    __slots__ = ("_connection", "_settings")

    def __init__(self, connection: Connection, settings: Settings) -> None:
        """Of a client's connection."""
        self._connection = connection
        self._settings = settings

    def get(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Prediction:
        """A job as it is now.

        Args:
            prediction: The job, or its id.
            timeout: Seconds that this may take, or a `Timeout`. Default: the client's.

        Raises:
            NotFoundError: The server does not know it, or not any more.
            APIStatusError: The server refuses or fails otherwise.
            DecodeError: The answer is no job.
        """
        return as_prediction(self._ask("GET", path_of(prediction), timeout))

    def list(self, *, timeout: float | Timeout | None = None) -> Iterator[Prediction]:
        """The jobs of the client's key, newest first; further pages are asked for as they are read.

        Args:
            timeout: Seconds that each page may take, or a `Timeout`. Default: the client's.
        """
        pages = Pages(self._connection)
        while pages.target:
            yield from pages.read(self._ask("GET", pages.target, timeout))

    def cancel(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Prediction:
        """Asks for the end of a job, and gives it as it is then.

        Args:
            prediction: The job, or its id.
            timeout: Seconds that this may take, or a `Timeout`. Default: the client's.

        Raises:
            NotFoundError: The server does not know it, or not any more.
            APIStatusError: The server refuses or fails otherwise.
        """
        return as_prediction(self._ask("POST", f"{path_of(prediction)}/cancel", timeout))

    def events(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Iterator[Prediction]:
        """A job as it changes, from now until its end, as the server tells it by itself.

        Args:
            prediction: The job, or its id.
            timeout: Seconds that this may take in all, or a `Timeout`. Default: the client's; there
                is no limit on the whole then.

        Raises:
            NotFoundError: The server does not know it, or not any more.
            APIStatusError: The server refuses or fails otherwise.
            StreamInterruptedError: The server told no end.
        """
        session = self._connection.session()
        request = events_request(self._connection, self._settings, prediction, timeout)
        exchange = session.open(*request, "pieces")
        news = Events(self._connection, self._settings.longest_event_bytes)
        try:
            while not news.ended:
                exchange.wait_for_news()
                ended = exchange.ended
                yield from news.read(exchange.take_bytes())
                if ended:
                    checked_answer(Answer(exchange.outcome(), self._connection))
                    news.finish()
        finally:
            exchange.close()

    def wait(
        self,
        prediction: Prediction | str,
        *,
        on_progress: Callable[[Prediction], object] | None = None,
        timeout: float | Timeout | None = None,
    ) -> Prediction:
        """Waits for the end of a job.

        Args:
            prediction: The job, or its id.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.
            timeout: Seconds to wait in all, or a `Timeout`. Default: the client's, else 1,900 s.

        Returns:
            The job that has succeeded.

        Raises:
            PredictionFailedError: It failed or was cancelled; `prediction` is the job.
            RequestTimeoutError: It goes on still.
            APIStatusError: The server refuses or fails.
        """
        watch = Watch(self._settings, prediction, on_progress, timeout)
        job = None if isinstance(prediction, str) else prediction
        from time import sleep

        while not watch.ended(job):
            if job is not None:
                sleep(watch.pause())
            job = self.get(prediction, timeout=watch.rest())
        assert job is not None  # noqa: S101 - it has ended
        return job.raise_for_status()

    def _ask(self, method: str, target: str, timeout: float | Timeout | None) -> Answer:
        session = self._connection.session()
        request = prediction_request(self._connection, self._settings, method, target, timeout)
        return checked_answer(Answer(session.perform(*request), self._connection))


def path_of(prediction: Prediction | str) -> str:
    """Where a server has a job.

    Raises:
        InvalidRequestError: It has no id, or one that cannot be.
    """
    from urllib.parse import quote

    from polymux._text import shown
    from polymux.errors import InvalidRequestError

    name = prediction if isinstance(prediction, str) else prediction.id
    if not name or len(name) > _LONGEST_ID:
        raise InvalidRequestError(
            f"the prediction has no id that could be asked for: {shown(name)}"
        )
    return f"{PATH}/{quote(name, safe='')}"


def prediction_request(
    connection: Connection,
    settings: Settings,
    method: str,
    target: str,
    timeout: float | Timeout | None,
) -> tuple[str, str, list[str], Any, Any]:
    """Method, address, header fields, body and options for the native session."""
    if timeout is not None:
        settings = settings.changed(timeout=timeout)
    deadlines = settings.timeout.over(call_options.QUICK)
    # Looking at a job, and cancelling it twice, does no harm.
    retry = settings.retry._replace(repeatable=True)
    options = native_call_options(deadlines, retry, settings.longest_event_bytes)
    fields = [f"{name}: {value}" for name, value in settings.headers]
    # New for each request, the same for all its tries.
    names = [f"X-Request-ID: {os.urandom(12).hex()}"]
    if method == "POST":
        names.append(f"Idempotency-Key: {os.urandom(16).hex()}")
    given = settings.names()
    fields += [name for name in names if name.partition(":")[0].lower() not in given]
    return method, f"{connection.base_url}{target}", fields, None, options


def events_request(
    connection: Connection,
    settings: Settings,
    prediction: Prediction | str,
    timeout: float | Timeout | None,
) -> tuple[str, str, list[str], Any, Any]:
    """The same for the events of a job."""
    given = call_options.as_timeout(timeout).over(settings.timeout)
    streamed = given.over(call_options.STREAMED)
    method, url, fields, body, options = prediction_request(
        connection, settings, "GET", f"{path_of(prediction)}/events", streamed
    )
    if "accept" not in settings.names():
        fields.append("Accept: text/event-stream")
    return method, url, fields, body, options


class Events:
    """Jobs out of the bytes of a stream of events."""

    def __init__(self, connection: Connection, longest_event_bytes: int) -> None:
        """Nothing has come."""
        from polymux._native_core import core

        self.ended = False
        # Whose files the jobs name.
        self._answer = Answer((200, b"", b"", 1, 0.0), connection)
        self._splitter = core.EventSplitter(longest_event_bytes)

    def read(self, piece: bytes) -> Iterator[Prediction]:
        """The jobs that these bytes complete.

        Raises:
            DecodeError: An event is no job.
            APIError: The server told of a failure.
        """
        from polymux.responses import Prediction
        from polymux.responses._base import parsed

        for kind, data in self._splitter.feed(piece):
            if kind == "error":
                raise event_error(data)
            job = Prediction.of_value(parsed(data), self._answer, data)
            self.ended = job.finished
            yield job

    def finish(self) -> None:
        """No more will come.

        Raises:
            StreamInterruptedError: The job's end was not told.
        """
        from polymux.errors import StreamInterruptedError

        if not self.ended:
            message = "the server ended the stream of events, and the job goes on still"
            error = StreamInterruptedError(message)
            error.retry_safe = True
            raise error


def event_error(data: bytes) -> APIError:
    """The exception for an event by which a server tells of a failure."""
    from polymux._text import printable, shortened
    from polymux.errors import APIError

    return APIError(shortened(printable(data.decode("utf-8", "backslashreplace"))))


def checked_answer(answer: Answer) -> Answer:
    """The answer, when it is a success.

    Raises:
        APIStatusError: It is none.
    """
    log("debug", "predictions: status %d in %.3f s", answer.status, answer.elapsed_s)
    if answer.status not in SUCCESSES:
        raise status_error(answer)
    return answer


def as_prediction(answer: Answer) -> Prediction:
    """The job that was answered.

    Raises:
        DecodeError: It is none.
    """
    from polymux.responses import Prediction

    return Prediction.of_answer(answer)


class Pages:
    """Page after page of a list."""

    def __init__(self, connection: Connection) -> None:
        """Begins with the first."""
        self.target: str | None = PATH
        self._connection = connection
        self._count = 0

    def read(self, answer: Answer) -> list[Prediction]:
        """The jobs of a page; `target` is that of the next then.

        Raises:
            DecodeError: It is no list of jobs.
        """
        from polymux.responses import Prediction
        from polymux.responses._base import parsed, required_array

        page = parsed(answer.body)
        items = page if isinstance(page, list) else required_array(page, "results", "")
        following = page.get("next") if isinstance(page, dict) else None
        self._count += 1
        self.target = self._own(following) if self._count < _MOST_PAGES else None
        return [
            Prediction.of_value(one, answer, path=f"results[{i}]") for i, one in enumerate(items)
        ]

    def _own(self, address: object) -> str | None:
        """The path of a page on this server: nothing else is asked with its key."""
        base = self._connection.base_url or ""
        if not isinstance(address, str):
            return None
        target = address.removeprefix(base)
        printable = target.isascii() and target.isprintable() and " " not in target
        return target if printable and target.startswith(PATH) else None


class Watch:
    """How long a job is waited for, and who is told of it."""

    def __init__(
        self,
        settings: Settings,
        prediction: Prediction | str,
        on_progress: Callable[[Prediction], object] | None,
        timeout: float | Timeout | None,
    ) -> None:
        """The clock starts."""
        from time import monotonic

        self._timeout = call_options.as_timeout(timeout).over(
            settings.timeout.over(call_options.SLOW)
        )
        self._name = prediction if isinstance(prediction, str) else prediction.id
        self._on_progress = on_progress
        self._clock = monotonic
        self._until = monotonic() + (self._timeout.total or 0.0)
        self._pause = _FIRST_PAUSE_S
        self._told: Prediction | None = None

    def ended(self, job: Prediction | None) -> bool:
        """Whether it has come to an end; tells of what is new."""
        if job is None:
            return False
        if self._on_progress is not None and job != self._told:
            self._on_progress(job)
            self._pause = _FIRST_PAUSE_S
        self._told = job
        return job.finished

    def pause(self) -> float:
        """Seconds until it is asked for again.

        Raises:
            RequestTimeoutError: There is no time left.
        """
        left = self._left()
        pause = min(self._pause, left)
        self._pause = min(self._pause * _GROWTH, _LONGEST_PAUSE_S)
        return pause

    def rest(self) -> Timeout:
        """The time that is left, as a `Timeout`."""
        return self._timeout._replace(total=self._left())

    def _left(self) -> float:
        left = self._until - self._clock()
        if left > 0:
            return left
        from polymux.errors import RequestTimeoutError

        error = RequestTimeoutError(
            f"the prediction {self._name} goes on still after {self._timeout.total:g} s (deadline "
            "'total'); client.predictions.wait waits on, client.predictions.cancel ends it"
        )
        error.limit = "total"
        raise error
