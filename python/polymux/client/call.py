"""A call of an operation, independent of I/O: its request, its deadlines and its result."""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, Any

from polymux._util.imports import IMPORTING
from polymux._util.logging import log
from polymux.client import options, responses
from polymux.client.answer import Answer, error_in, status_error
from polymux.client.methods.results import JOBS, RESULTS
from polymux.client.request import build_request
from polymux.client.settings import resolved
from polymux.errors import DecodeError, NoMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux._native import _core
    from polymux.client.answer import Native
    from polymux.client.connection import Connection
    from polymux.client.options import Timeout
    from polymux.client.responses import Prediction
    from polymux.client.settings import Settings

SUCCESSES = range(200, 300)
_ACCEPTED = 202
#: Seconds for which the client asks the server to hold back the response of a running job (RFC
#: 7240), without and with a progress callback.
_PREFERRED_WAIT_S = 50
_WATCHED_WAIT_S = 2
_STREAMING = ("chat", "free_chat")
_ID_FIELDS = ("x-request-id", "idempotency-key")


class Plan:
    """The parts of a request that all calls of an operation by one client share."""

    __slots__ = ("fields", "identified", "job", "options", "path", "result", "timeout")

    def __init__(
        self, settings: Settings, operation: str, *, stream: bool, wait_s: int | None
    ) -> None:
        """`wait_s`: seconds to wait for a job's response; None returns at once."""
        quick = options.STREAMED if stream else options.QUICK
        self.job = operation in JOBS
        self.result = RESULTS[operation]
        self.timeout = settings.timeout.over(options.SLOW if self.job else quick)
        self.options = options.native_options(
            self.timeout, settings.retry, settings.max_event_bytes
        )
        self.path = dict(settings.paths).get(operation)
        self.fields = [f"{name}: {value}" for name, value in settings.headers]
        own = settings.names()
        if stream and "accept" not in own:
            self.fields.append("Accept: text/event-stream, application/json")
        if self.job and "prefer" not in own:
            wish = "respond-async" if wait_s is None else f"wait={wait_s}"
            self.fields.append(f"Prefer: {wish}")
        self.identified = own.isdisjoint(_ID_FIELDS)


class Call:
    __slots__ = (
        "body", "connection", "on_progress", "on_upload", "operation", "plan", "session", "started",
        "stream", "target", "type", "wait",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        plans: dict[Any, Plan],
        operation: str,
        values: dict[str, Any],
        *,
        model: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
        awaited: bool = False,
    ) -> None:
        """Validate and build the request without sending it. `awaited`: asyncio sends it."""
        self.started = monotonic()
        self.connection = connection
        self.session = connection.session()
        self.on_upload, self.on_progress, self.wait = on_upload, on_progress, wait
        if awaited and on_upload is not None:
            with IMPORTING:
                from polymux.media.media_file import refuse_asynchronous

            refuse_asynchronous("on_upload", on_upload)
        if resolved(operation) == "chat" and values.get("model") is None:
            values["model"] = settings.chat_model or connection.chat_model or "default"
        request = build_request(
            operation,
            values,
            model=model,
            extra_body=extra_body,
            on_progress=on_upload,
            awaited=awaited,
        )
        if not awaited and not isinstance(request.body, bytes):
            _refuse_asynchronous(values)
        self.operation = name = request.operation
        self.body, self.type, self.target = request.body, request.content_type, request.target
        self.stream = bool(values.get("stream")) and name in _STREAMING
        wait_s = None if not wait else _PREFERRED_WAIT_S if on_progress is None else _WATCHED_WAIT_S
        if timeout is not None:
            self.plan = Plan(
                settings.changed(timeout=timeout), name, stream=self.stream, wait_s=wait_s
            )
            return
        key = (name, self.stream, wait_s)
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = Plan(settings, name, stream=self.stream, wait_s=wait_s)
        self.plan = plan

    def arguments(self) -> tuple[str, str, list[str], Any, _core.CallOptions]:
        """Return method, URL, header fields, body and options for the native session."""
        plan = self.plan
        fields = [f"Content-Type: {self.type}", *plan.fields]
        # New IDs for each call; all attempts of a call share them.
        name = os.urandom(28).hex()
        if plan.identified:
            fields += (f"X-Request-ID: {name[:24]}", f"Idempotency-Key: {name[24:]}")
        else:
            given = {field.partition(":")[0].lower() for field in plan.fields}
            ids = zip(("X-Request-ID", "Idempotency-Key"), (name[:24], name[24:]), strict=True)
            fields += [f"{field}: {own}" for field, own in ids if field.lower() not in given]
        url = f"{self.connection.base_url}{self.target if plan.path is None else plan.path}"
        return "POST", url, fields, self.body, plan.options

    def answer(self, native: Native) -> Answer:
        """Return the response if its status is a success.

        Raises:
            APIStatusError: It is not.
            NoMatchError: No song matches.
        """
        answer = Answer(native, self.connection)
        log_retries(self.operation, answer)
        log("debug", "%s: status %d in %.3f s", self.operation, answer.status, answer.elapsed_s)
        if answer.status in SUCCESSES:
            return answer
        error = status_error(answer)
        if self.operation == "identify_song" and error.code == "no_match":
            raise NoMatchError(error.message) from error
        raise error

    def check_begun(self, exchange: _core.Exchange) -> None:
        """Raise the error of a stream that failed before its start; see `answer`."""
        head = exchange.head
        if head is not None and head[0] in SUCCESSES:
            log_retries(self.operation, exchange)
            log("debug", "%s: status %d, streaming", self.operation, head[0])
        if exchange.ended and (head is None or head[0] not in SUCCESSES):
            self.answer(exchange.outcome())

    def tell_failure(self, error: Exception) -> None:
        """Log a call without a response. Responses with a status are already logged."""
        if getattr(error, "status", None) is None:
            log_retries(self.operation, error)
            name, took_s = type(error).__name__, monotonic() - self.started
            log("debug", "%s: %s after %.3f s", self.operation, name, took_s)

    def result(self, answer: Answer) -> Any:
        """Return the response of an operation without a job as the operation's result class.

        Raises:
            APIError: The response is an error, although its status is a success.
            DecodeError: The response is not a valid result.
            NoMatchError: No song matches.
        """
        name = self.plan.result
        try:
            if name == "MediaFile":
                return answer.file(responses.media_url(answer.body))
            result = getattr(responses, name).of_answer(answer)
        except DecodeError:
            error = error_in(answer)
            if error is None:
                raise
            raise error from None
        if name == "Song" and not result.is_match:
            raise NoMatchError("no song matches this recording")
        return result

    def rest(self) -> Timeout:
        """Return the remaining time."""
        timeout = self.plan.timeout
        left = max((timeout.total or 0.0) - (monotonic() - self.started), 0.001)
        return timeout._replace(total=left)

    def result_of_job(self, job: Prediction) -> Any:
        """Return the operation's result from a job that succeeded.

        Raises:
            DecodeError: The job's output is not a valid result.
        """
        name = self.plan.result
        if name == "Prediction":
            return job
        if name != "MediaFile":
            return getattr(responses, name)({"response": job.output})
        if job.audio is None:
            raise DecodeError("output: missing (expected the URL of a file)")
        return job.audio

    def job(self, answer: Answer) -> Prediction | None:
        """Return the job if the response is one, else None."""
        plan = self.plan
        if not plan.job or (answer.status != _ACCEPTED and plan.result != "Prediction"):
            return None
        return responses.Prediction.of_answer(answer)


def log_retries(operation: str, source: object) -> None:
    for number, reason in enumerate(getattr(source, "retry_reasons", ()), 1):
        log("info", "%s: retry %d: %s", operation, number, reason)


def _refuse_asynchronous(values: Mapping[str, Any]) -> None:
    """Reject files that only an event loop can read; the native thread would wait forever."""
    ways = ("read", "__iter__", "__fspath__")
    for name, value in values.items():
        content = value[1] if type(value) is tuple and value[1:] else value
        if hasattr(content, "__aiter__") and not any(hasattr(content, one) for one in ways):
            raise TypeError(
                f"file {name!r}: asynchronous iterables are not supported here. Use AsyncClient, "
                "or pass an iterable of bytes"
            )
