"""Timeouts and retries of requests."""

from __future__ import annotations

from functools import lru_cache

from polymux._native import core
from polymux._util.deprecation import renamed_arguments
from polymux._util.frozen import Frozen
from polymux.errors import InvalidRequestError

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from polymux._native._core import CallOptions

__all__ = ["Frozen", "Retry", "Timeout"]


_MAX_TIMEOUT_S = 10 * 365 * 86400.0
_MAX_RETRIES = 100
#: Maximum size of a buffered response, and of an event of a stream.
MAX_ANSWER_BYTES = 32 << 20
MAX_EVENT_BYTES = 16 << 20
_MAX_LIMIT_BYTES = 1 << 30
#: Default maximum estimated duration of a local generation, in seconds.
MAX_GENERATION_S = 300.0


class Timeout(Frozen):
    """Timeouts of a request in seconds, measured on a monotonic clock.

    ``math.inf`` means no limit. None uses the client's value, or else the default:

    =============  ==================================  ==============================
    timeout        default                             default for chat streams
    =============  ==================================  ==============================
    `connect`      5 s                                 5 s
    `write`        60 s                                60 s
    `first_byte`   none: only `total` applies          300 s, to the first chunk
    `idle`         60 s                                60 s
    `event`        -                                   60 s
    `total`        300 s for chats, search, song       none
                   recognition and text from images,
                   1,900 s for other operations
    =============  ==================================  ==============================

    Args:
        total: The whole call: all attempts, the waits between them, and for jobs the polling.
        connect: DNS lookup, connection and TLS handshake.
        write: Time without being able to send data.
        first_byte: From the last byte of the request to the first byte of the response. For chat
            streams, to the first chunk.
        idle: Between two bytes of a response.
        event: Between two chunks of a chat stream. Keep-alive comments do not count.

    Raises:
        InvalidRequestError: A timeout is not above 0.
        TypeError: A timeout is not a number.

    Example:
        >>> import polymux
        >>> polymux.Timeout(30, connect=2).total
        30
    """

    __slots__ = ("connect", "event", "first_byte", "idle", "total", "write")
    total: float | None
    connect: float | None
    write: float | None
    first_byte: float | None
    idle: float | None
    event: float | None

    def __init__(
        self,
        total: float | None = None,
        *,
        connect: float | None = None,
        write: float | None = None,
        first_byte: float | None = None,
        idle: float | None = None,
        event: float | None = None,
    ) -> None:
        self._set(
            total=_seconds("total", total),
            connect=_seconds("connect", connect),
            write=_seconds("write", write),
            first_byte=_seconds("first_byte", first_byte),
            idle=_seconds("idle", idle),
            event=_seconds("event", event),
        )

    def over(self, other: Timeout) -> Timeout:
        """Return a copy in which the other's values replace missing ones.

        Example:
            >>> import polymux
            >>> polymux.Timeout(30).over(polymux.Timeout(60, idle=5))
            Timeout(connect=None, event=None, first_byte=None, idle=5, total=30, write=None)
        """
        own = {name: one for name, one in self._values().items() if one is not None}
        return other._replace(**own)


@renamed_arguments(
    first_backoff="first_backoff_s",
    longest_backoff="max_backoff_s",
    longest_retry_after="max_retry_after_s",
)
class Retry(Frozen):
    """Retry policy of requests.

    Requests are always retried after failed connections, after statuses 429 and 503, if the server
    closed a kept-alive connection before it received anything, and if an HTTP/2 server refused the
    request (REFUSED_STREAM, or GOAWAY before its stream). After other failures, the server may
    already have processed the request. Such requests are retried only if the server supports
    idempotency keys, which a polymux server reports in its first response, or if `repeatable` is
    True. Requests are never retried after a stream has returned a chunk, after status 501, or if
    the body can be read only once.

    The wait before retry n is random, up to ``first_backoff_s * 2 ** (n - 1)`` seconds (full
    jitter), or the time in ``Retry-After`` (seconds or a date) or ``retry-after-ms``.

    Args:
        max_retries: Maximum number of retries. Default: 2; 0 disables retries.
        first_backoff_s: Upper limit of the first wait, in seconds. Default: 0.5.
        max_backoff_s: Upper limit of every wait, in seconds. Default: 8.
        max_retry_after_s: Maximum wait in seconds that a server may ask for; longer waits are not
            retried. Default: 120.
        repeatable: Whether it is safe to repeat a request that the server may have processed.
            Default: False.

    Raises:
        InvalidRequestError: A value is out of range.
        TypeError: A value has the wrong type.

    Example:
        >>> import polymux
        >>> polymux.Retry(0).max_retries
        0
    """

    __slots__ = (
        "first_backoff_s",
        "max_backoff_s",
        "max_retries",
        "max_retry_after_s",
        "repeatable",
    )
    max_retries: int
    first_backoff_s: float
    max_backoff_s: float
    max_retry_after_s: float
    repeatable: bool

    def __init__(
        self,
        max_retries: int = 2,
        *,
        first_backoff_s: float = 0.5,
        max_backoff_s: float = 8.0,
        max_retry_after_s: float = 120.0,
        repeatable: bool = False,
    ) -> None:
        if isinstance(max_retries, bool) or not isinstance(max_retries, int):
            raise TypeError(
                f"max_retries: invalid type (got {type(max_retries).__name__}, allowed int)"
            )
        if not 0 <= max_retries <= _MAX_RETRIES:
            raise InvalidRequestError(
                f"max_retries: out of range (got {max_retries}, allowed 0 to {_MAX_RETRIES})"
            )
        self._set(
            max_retries=max_retries,
            first_backoff_s=_seconds("first_backoff_s", first_backoff_s, zero=True),
            max_backoff_s=_seconds("max_backoff_s", max_backoff_s, zero=True),
            max_retry_after_s=_seconds("max_retry_after_s", max_retry_after_s, zero=True),
            repeatable=bool(repeatable),
        )


def _seconds(name: str, seconds: float | None, *, zero: bool = False) -> float | None:
    if seconds is None and not zero:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(
            f"{name}: invalid type (got {type(seconds).__name__}, allowed a number of seconds)"
        )
    if not (seconds > 0 or (zero and seconds == 0)):
        least = "0 s or more" if zero else "above 0 s"
        raise InvalidRequestError(f"{name}: out of range (got {seconds}, allowed {least})")
    return seconds


def as_timeout(timeout: float | Timeout | None) -> Timeout:
    """Convert a `timeout` argument; a number is the total in seconds.

    Raises:
        TypeError: It is neither a number nor a `Timeout`.
    """
    if timeout is None:
        return Timeout()
    return timeout if isinstance(timeout, Timeout) else Timeout(timeout)


def as_retry(retry: int | Retry | None) -> Retry:
    """Convert a `retry` argument; a number is the maximum number of retries."""
    if retry is None:
        return Retry()
    return retry if isinstance(retry, Retry) else Retry(retry)


def as_max_event_bytes(given: int | None) -> int:
    """Validate the maximum size of a stream's events, in bytes; None is the default.

    Raises:
        InvalidRequestError: It is out of range.
        TypeError: It is not an int.
    """
    if given is None:
        return MAX_EVENT_BYTES
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"max_event_bytes: invalid type (got {type(given).__name__}, allowed int)")
    if not 1 <= given <= _MAX_LIMIT_BYTES:
        raise InvalidRequestError(
            f"max_event_bytes: out of range (got {given}, allowed 1 to {_MAX_LIMIT_BYTES})"
        )
    return given


#: Default timeouts by the usual duration of an operation.
NEVER = float("inf")
QUICK = Timeout(300.0, connect=5.0, write=60.0, first_byte=NEVER, idle=60.0, event=NEVER)
SLOW = QUICK._replace(total=1900.0)
STREAMED = QUICK._replace(total=NEVER, first_byte=300.0, event=60.0)


@lru_cache(256)
def native_options(
    timeout: Timeout, retry: Retry, max_event_bytes: int = MAX_EVENT_BYTES
) -> CallOptions:
    """Convert both to the native core's options. All values of `timeout` must be set."""
    deadlines = timeout._values()  # noqa: SLF001 - same module
    return core.CallOptions(
        **{f"{name}_ms": _milliseconds(value) for name, value in deadlines.items()},
        max_retries=retry.max_retries,
        first_backoff_ms=_bounded_milliseconds(retry.first_backoff_s),
        max_backoff_ms=_bounded_milliseconds(retry.max_backoff_s),
        max_retry_after_ms=_bounded_milliseconds(retry.max_retry_after_s),
        repeatable=retry.repeatable,
        max_answer_bytes=MAX_ANSWER_BYTES,
        max_event_bytes=max_event_bytes,
    )


def _milliseconds(seconds: float | None) -> int | None:
    """Convert to milliseconds, rounded up so that positive values stay positive; None: no limit."""
    if seconds is None or seconds > _MAX_TIMEOUT_S:
        return None
    return -int(-seconds * 1000 // 1)


def _bounded_milliseconds(seconds: float) -> int:
    """Convert a wait, which has no value for infinity, limited to ten years."""
    return _milliseconds(min(seconds, _MAX_TIMEOUT_S)) or 0
