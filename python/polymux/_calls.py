"""What a call of an operation is, whoever sends it: its request, its deadlines, its result."""

from __future__ import annotations

import os

from polymux import call_options
from polymux._answers import Answer, status_error
from polymux._frozen import Frozen
from polymux.config import Configuration, checked_base_url, checked_key, configuration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from polymux import _core
    from polymux._answers import Native
    from polymux.call_options import Retry, Timeout
    from polymux.errors import NoMatchError
    from polymux.remote_file import RemoteFile
    from polymux.request import Request
    from polymux.responses import Prediction

SUCCESSES = range(200, 300)
ACCEPTED = 202
#: Seconds that a server is asked to keep a job's answer back before it tells where the job is.
_PREFERRED_WAIT_S = 50
#: The client's own; a caller's would break the exchange.
_OWN_FIELDS = ("content-length", "transfer-encoding", "host", "connection", "expect", "te")


class Settings(Frozen):
    """What a client was told; clients made of each other share their connections."""

    __slots__ = ("chat_model", "headers", "paths", "retry", "timeout")
    chat_model: str | None
    headers: tuple[tuple[str, str], ...]
    paths: tuple[tuple[str, str], ...]
    retry: Retry
    timeout: Timeout

    def __init__(
        self,
        *,
        chat_model: str | None = None,
        headers: Mapping[str, str] | None = None,
        paths: Mapping[str, str] | None = None,
        retry: int | Retry | None = None,
        timeout: float | Timeout | None = None,
    ) -> None:
        """Checks what is given."""
        self._set(
            chat_model=chat_model,
            headers=tuple(checked_header(*one) for one in (headers or {}).items()),
            paths=tuple(checked_path(*one) for one in (paths or {}).items()),
            retry=call_options.as_retry(retry),
            timeout=call_options.as_timeout(timeout),
        )

    def changed(self, **given: Any) -> Settings:
        """A copy with what is given; header fields are added."""
        new = Settings(**given)
        changes: dict[str, Any] = {
            name: getattr(new, name) for name in given if given[name] is not None
        }
        if new.headers:
            changes["headers"] = tuple({**dict(self.headers), **dict(new.headers)}.items())
        if "timeout" in changes:
            changes["timeout"] = new.timeout.over(self.timeout)
        return self._replace(**changes)


def checked_header(name: str, value: str) -> tuple[str, str]:
    """A header field that a caller adds to requests.

    Raises:
        InvalidRequestError: Not a field of HTTP (RFC 9110, 5), or one that is the client's own.
        TypeError: Not a text.
    """
    from polymux._text import shown
    from polymux.errors import InvalidRequestError

    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError("headers: names and values are str")
    token = name.isascii() and name.replace("-", "a").replace("_", "a").isalnum()
    if not token or name.lower() in _OWN_FIELDS:
        raise InvalidRequestError(f"headers: {shown(name)} is no field that can be added")
    if not value.isascii() or any(char < " " or char == "\x7f" for char in value):
        # Not shown: it may well be a key.
        message = f"headers: the value of {name} holds a control or non-ASCII character"
        raise InvalidRequestError(message)
    return name, value


def checked_path(operation: str, path: str) -> tuple[str, str]:
    """Where a server has an operation: a path, perhaps with a query, and nothing of a host.

    Raises:
        InvalidRequestError: Something else; joined to the server's address it could name another.
        TypeError: Not a text.
    """
    from polymux._text import shown
    from polymux.errors import InvalidRequestError

    if not isinstance(operation, str) or not isinstance(path, str):
        raise TypeError("paths: operations and paths are str")
    printable = path.isascii() and path.isprintable() and not set(path) & set(" #\\")
    if not path.startswith("/") or not printable:
        message = (
            f"paths: {shown(path)} is no path: it begins with '/', and holds no space, '#', "
            "backslash, control or non-ASCII character"
        )
        raise InvalidRequestError(message)
    return operation, path


class Connection:
    """Where requests go, and the native session that carries them; made at the first request."""

    __slots__ = ("_closed", "_given", "_made", "_options", "configuration", "secrets")

    def __init__(
        self, base_url: str | None, api_key: str | None, options: Mapping[str, Any]
    ) -> None:
        """Checks what is given; looks at nothing else."""
        self._given = (
            None if base_url is None else checked_base_url(base_url),
            None if api_key is None else checked_key(api_key),
        )
        self._options = dict(options)
        # Filled by `setdefault`, of which one thread's counts. A lock would not do: in the child of a
        # fork it may be held for ever, by a thread that is not there.
        self._made: dict[str, _core.Session] = {}
        self._closed = False
        self.configuration: Configuration | None = None
        self.secrets: tuple[str, ...] = (api_key,) if api_key else ()

    @property
    def given_url(self) -> str | None:
        """The server's address where it is known without looking for it."""
        return self.configuration.base_url if self.configuration else self._given[0]

    def session(self) -> _core.Session:
        """The session; made by whoever comes first.

        Raises:
            InvalidRequestError: The client was closed before its first request.
        """
        session = self._made.get("session")
        if session is not None:
            return session
        own = None if self._closed else self._open()
        if own is None:
            from polymux.errors import InvalidRequestError

            raise InvalidRequestError("the client is closed")
        session = self._made.setdefault("session", own)
        if session is not own or self._closed:
            own.close()
        return session

    def _open(self) -> _core.Session:
        from polymux import _proxies
        from polymux._native_core import core
        from polymux._version import __version__

        self.configuration = found = configuration(*self._given)
        headers = [f"User-Agent: polymux/{__version__}", "Accept: application/json, */*;q=0.1"]
        if found.api_key:
            headers.append(f"Authorization: Bearer {found.api_key}")
            self.secrets = (found.api_key,)
        proxy, no_proxy = _proxies.chosen(
            found.base_url, self._options["proxy"], trust_env=self._options["trust_env"]
        )
        verify = self._options["verify"]
        certificates = "" if isinstance(verify, bool) else os.fspath(verify)
        return core.Session(
            headers=headers,
            proxy=proxy,
            no_proxy=no_proxy,
            certificates=certificates,
            verify=bool(verify),
            http2=bool(self._options["http2"]),
        )

    def answer(self, native: Native) -> Answer:
        """An answer of this server."""
        assert self.configuration is not None  # noqa: S101 - `session` comes first
        verify = self._options["verify"]
        return Answer(
            native,
            host=host_of(self.configuration.base_url),
            certificates=None if isinstance(verify, bool) else os.fspath(verify),
        )

    def url(self, target: str) -> str:
        """A path on the server, as an address."""
        assert self.configuration is not None  # noqa: S101 - `session` comes first
        return self.configuration.base_url + target

    def close(self) -> None:
        """Closes all connections; what runs ends. Idempotent."""
        self._closed = True
        session = self._made.get("session")
        if session is not None:
            session.close()


class Call:
    """One call of one operation."""

    __slots__ = ("answers", "connection", "job", "operation", "request", "settings", "stream")

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        operation: str,
        values: Mapping[str, Any],
        *,
        model: str | None,
        extra_body: Mapping[str, Any] | None,
        timeout: float | Timeout | None,
        on_upload: Callable[[int, int | None], object] | None,
        awaited: bool = False,
    ) -> None:
        """Checks and builds the request; nothing is sent. `awaited`: an event loop will send it."""
        from polymux.operations.results import JOBS
        from polymux.request import build_request

        self.connection = connection
        self.settings = settings if timeout is None else settings.changed(timeout=timeout)
        if operation == "chat" and values.get("model") is None:
            values = {**values, "model": self._chat_model()}
        self.request: Request = build_request(
            operation,
            values,
            model=model,
            extra_body=extra_body,
            on_progress=on_upload,
            awaited=awaited,
        )
        self.operation = self.request.operation
        self.job = self.operation in JOBS
        self.stream = bool(values.get("stream")) and self.operation in ("chat", "free_chat")

    def _chat_model(self) -> str:
        if self.settings.chat_model:
            return self.settings.chat_model
        self.connection.session()
        found = self.connection.configuration
        return (found.chat_model if found else None) or "default"

    @property
    def timeout(self) -> Timeout:
        """Every deadline."""
        quick = call_options.STREAMED if self.stream else call_options.QUICK
        return self.settings.timeout.over(call_options.SLOW if self.job else quick)

    def options(self) -> _core.CallOptions:
        """Deadlines and retries for the native core."""
        return native_call_options(self.timeout, self.settings.retry)

    def arguments(self, *, wait: bool) -> tuple[str, str, list[str], Any, _core.CallOptions]:
        """Method, address, header fields, body and options for the native session."""
        request = self.request
        path = dict(self.settings.paths).get(self.operation)
        target = request.target if path is None else path
        fields = [f"Content-Type: {request.content_type}", *self._ids()]
        if self.stream:
            fields.append("Accept: text/event-stream, application/json")
        if self.job:
            fields.append(f"Prefer: {f'wait={_PREFERRED_WAIT_S}' if wait else 'respond-async'}")
        fields += [f"{name}: {value}" for name, value in self.settings.headers]
        return "POST", self.connection.url(target), fields, request.body, self.options()

    def _ids(self) -> list[str]:
        """New for each call, the same for all its tries."""
        own = {name.lower() for name, _ in self.settings.headers}
        fields = {"X-Request-ID": os.urandom(12).hex(), "Idempotency-Key": os.urandom(16).hex()}
        return [f"{name}: {value}" for name, value in fields.items() if name.lower() not in own]

    def checked(self, answer: Answer) -> Answer:
        """The answer, when it is a success.

        Raises:
            APIStatusError: It is none.
            NoMatchError: The server knows no such song.
        """
        from polymux._log import log

        log("debug", "%s: status %d in %.3f s", self.operation, answer.status, answer.elapsed_s)
        if answer.status in SUCCESSES:
            return answer
        error = status_error(answer, self.connection.secrets)
        if self.operation == "identify_song" and error.code == "no_match":
            raise no_match(error.message) from error
        raise error

    def result(self, answer: Answer) -> Any:
        """The answer as the operation's class.

        Raises:
            DecodeError: It is something else.
            PredictionFailedError: It is a job that failed.
        """
        from polymux import responses
        from polymux.operations.results import RESULTS

        name = RESULTS[self.operation]
        if name == "MediaFile":
            return remote_file(responses.media_url(answer.body), answer)
        result = getattr(responses, name).of_answer(answer)
        if isinstance(result, responses.Prediction):
            return result.raise_for_status()
        if isinstance(result, responses.Song) and not result.is_match:
            raise no_match("the server knows no song like this recording")
        return result

    def rest(self, started: float) -> Timeout:
        """What is left of the deadlines since then, on `time.monotonic`'s clock."""
        from time import monotonic

        timeout = self.timeout
        left = max((timeout.total or 0.0) - (monotonic() - started), 0.001)
        return timeout._replace(total=left)

    def result_of_job(self, job: Prediction) -> Any:
        """What the operation gives, from the job that has succeeded.

        Raises:
            DecodeError: The job's output is something else.
        """
        from polymux import responses
        from polymux.errors import DecodeError
        from polymux.operations.results import RESULTS

        name = RESULTS[self.operation]
        if name == "Prediction":
            return job
        if name != "MediaFile":
            return getattr(responses, name)({"response": job.output})
        if job.audio is None:
            raise DecodeError("output: is missing; it must be the address of a file")
        return job.audio

    def unfinished(self, answer: Answer) -> Prediction | None:
        """The job, where the answer is one that goes on; else None."""
        from polymux.operations.results import RESULTS

        if not self.job or (answer.status != ACCEPTED and RESULTS[self.operation] != "Prediction"):
            return None
        from polymux.predictions import as_prediction

        job = as_prediction(answer)
        return None if job.finished else job


def remote_file(url: str, answer: Answer) -> RemoteFile:
    """A file that an answer names."""
    from polymux.remote_file import RemoteFile

    return RemoteFile(url, host=answer.host, certificates=answer.certificates)


def no_match(message: str) -> NoMatchError:
    """The exception for a song that nobody knows."""
    from polymux.errors import NoMatchError

    return NoMatchError(message)


def host_of(base_url: str) -> str:
    """``name:port`` of a server's address, the port always there."""
    scheme, _, rest = base_url.partition("://")
    host = rest.partition("/")[0]
    has_port = ":" in host.rpartition("]")[2]
    return host if has_port else f"{host}:{443 if scheme == 'https' else 80}"


def native_call_options(timeout: Timeout, retry: Retry) -> _core.CallOptions:
    """Deadlines and retries for the native core; the same object for the same values."""
    found = _OPTIONS.get((timeout, retry))
    if found is None:
        if len(_OPTIONS) >= _MOST_KEPT:
            _OPTIONS.clear()
        found = _OPTIONS[timeout, retry] = call_options.native_options(timeout, retry)
    return found


_MOST_KEPT = 256
_OPTIONS: dict[tuple[Timeout, Retry], _core.CallOptions] = {}
