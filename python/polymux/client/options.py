"""How long a request may take, and when it is sent again."""

from __future__ import annotations

from functools import lru_cache

from polymux._native import core
from polymux._util.deprecation import renamed_arguments
from polymux._util.frozen import Frozen
from polymux.errors import InvalidRequestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from polymux._native._core import CallOptions

__all__ = ["Frozen", "Retry", "Timeout"]


_MAX_TIMEOUT_S = 10 * 365 * 86400.0
_MAX_RETRIES = 100
#: Longest answer that is collected, and longest event of a stream.
MAX_ANSWER_BYTES = 32 << 20
MAX_EVENT_BYTES = 16 << 20
_MAX_LIMIT_BYTES = 1 << 30
#: Longest that a generation may be thought to take, where nobody says otherwise.
MAX_GENERATION_S = 300.0


class Timeout(Frozen):
    """Deadlines of a request, in seconds. All are measured on a clock that never jumps.

    ``math.inf`` is no limit. None takes the client's, and there the default:

    =============  ==================================  ==============================
    deadline       default                             of a chat stream
    =============  ==================================  ==============================
    `connect`      5 s                                 5 s
    `write`        60 s                                60 s
    `first_byte`   none: `total` holds                 300 s, to the first chunk
    `idle`         60 s                                60 s
    `event`        -                                   60 s
    `total`        300 s for chats, search, song       none
                   recognition and text from images,
                   1,900 s for all else
    =============  ==================================  ==============================

    Args:
        total: Everything: all tries, the waiting between them, and for jobs the asking after them.
        connect: Finding the server's address, connecting, TLS.
        write: Without being able to send anything.
        first_byte: From the request's last byte to the answer's first; of a chat stream, to its
            first chunk.
        idle: Between two bytes of an answer.
        event: Between two chunks of a chat stream; comments that keep a connection open do not
            count.

    Raises:
        InvalidRequestError: A deadline that is not above 0.
        TypeError: A deadline that is no number.

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
        """This one, with the other's deadlines where this has none.

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
    """When a request is sent again.

    Always: when there is no connection, after statuses 429 and 503, and when a kept connection
    turns out to be closed before the server has seen anything. After all else the server may have
    done the work already: then only where it is known to honour idempotency keys, as a polymux
    server is from its first answer on, or where `repeatable` says that it does no harm. Never once
    a stream has given a chunk, never after 501, and never a body that can be read only once.

    The wait before try n is random, up to ``first_backoff_s * 2 ** (n - 1)`` seconds (full jitter),
    or what the server asks for: ``Retry-After`` in seconds or as a date, or ``retry-after-ms``.

    Args:
        max_retries: Tries after the first. Default: 2; 0 sends every request once.
        first_backoff_s: In seconds. Default: 0.5.
        max_backoff_s: In seconds. Default: 8.
        max_retry_after_s: A server that asks for more seconds than this is not asked again.
            Default: 120.
        repeatable: Whether repeating a request that may have been worked on does no harm, whatever
            the server. Default: False.

    Raises:
        InvalidRequestError: A value out of its range.
        TypeError: A value of another type.

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
            raise TypeError(f"max_retries: a whole number, not {type(max_retries).__name__}")
        if not 0 <= max_retries <= _MAX_RETRIES:
            raise InvalidRequestError(
                f"max_retries={max_retries}: must be from 0 to {_MAX_RETRIES}"
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
        raise TypeError(f"{name}: a number of seconds, not {type(seconds).__name__}")
    if not (seconds > 0 or (zero and seconds == 0)):
        least = "0 s or more" if zero else "above 0 s"
        raise InvalidRequestError(f"{name}={seconds}: must be {least}")
    return seconds


def as_timeout(timeout: float | Timeout | None) -> Timeout:
    """What a `timeout` argument means: a number is the total.

    Raises:
        TypeError: It is neither.
    """
    if timeout is None:
        return Timeout()
    return timeout if isinstance(timeout, Timeout) else Timeout(timeout)


def as_retry(retry: int | Retry | None) -> Retry:
    """What a `retry` argument means: a number is that of retries."""
    if retry is None:
        return Retry()
    return retry if isinstance(retry, Retry) else Retry(retry)


def as_max_event_bytes(given: int | None) -> int:
    """The longest event of a stream, in bytes; None is the default.

    Raises:
        InvalidRequestError: It is out of its range.
        TypeError: No whole number.
    """
    if given is None:
        return MAX_EVENT_BYTES
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"max_event_bytes: a whole number, not {type(given).__name__}")
    if not 1 <= given <= _MAX_LIMIT_BYTES:
        raise InvalidRequestError(f"max_event_bytes={given}: must be from 1 to {_MAX_LIMIT_BYTES}")
    return given


#: By how long an operation usually takes.
NEVER = float("inf")
QUICK = Timeout(300.0, connect=5.0, write=60.0, first_byte=NEVER, idle=60.0, event=NEVER)
SLOW = QUICK._replace(total=1900.0)
STREAMED = QUICK._replace(total=NEVER, first_byte=300.0, event=60.0)


@lru_cache(256)
def native_options(
    timeout: Timeout, retry: Retry, max_event_bytes: int = MAX_EVENT_BYTES
) -> CallOptions:
    """Both, as the native core takes them; every deadline of `timeout` is set."""
    deadlines = timeout._values()  # noqa: SLF001 - of this module
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
    """Rounded up, so that what is above 0 stays so; None for what is never reached."""
    if seconds is None or seconds > _MAX_TIMEOUT_S:
        return None
    return -int(-seconds * 1000 // 1)


def _bounded_milliseconds(seconds: float) -> int:
    """The same of a wait, which has no value for never: ten years are as long."""
    return _milliseconds(min(seconds, _MAX_TIMEOUT_S)) or 0
