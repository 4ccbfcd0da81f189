"""What the creation of a prediction asks for: its body, and the header fields that it has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import printable, shortened, shown
from polymux.server.compat.replicate.errors import invalid_input
from polymux.server.routes.operations import preferences

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What webhooks can be told of.
EVENTS = ("start", "output", "logs", "completed")
_MEMBERS = (
    "version",
    "input",
    "stream",
    "webhook",
    "webhook_completed",
    "webhook_events_filter",
)
_MAX_WEBHOOK_URL_CHARACTERS = 2048
_DEFAULT_WAIT_S = 60.0
_SPAN = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s?)?", re.ASCII)
_MIN_LIFETIME_S = 5


class Creation(NamedTuple):
    """A prediction that is wanted.

    Attributes:
        version: As it was given; None where there is none.
        input: As it was given.
        stream: Whether its output is to be read while it comes.
        webhook: Address that is told of it; None for nobody.
        events: Of `EVENTS`, what it is told of.
    """

    version: Any
    input: dict[str, Any]
    stream: bool
    webhook: str | None
    events: tuple[str, ...]


def creation(body: Mapping[str, Any]) -> Creation:
    """The body of a creation.

    Args:
        body: Its members.

    Raises:
        UnprocessableEntityError: A member is of a wrong type, or is not known.

    Example:
        >>> creation({"version": "riffusion/riffusion", "input": {"prompt_a": "waves"}}).events
        ('start', 'output', 'logs', 'completed')
    """
    given = {name: value for name, value in body.items() if value is not None}
    for name in given.keys() - set(_MEMBERS):
        words = shortened(printable(name))
        raise invalid_input(f"{words}: is nothing that a prediction has; what it is made of stands "
                            "in input", words)  # fmt: skip
    input_ = given.get("input", {})
    if not isinstance(input_, dict):
        raise invalid_input("input: must be an object", "input")
    stream = given.get("stream", False)
    if not isinstance(stream, bool):
        raise invalid_input("stream: must be true or false", "stream")
    webhook, events = given.get("webhook"), given.get("webhook_events_filter", list(EVENTS))
    if webhook is None and "webhook_completed" in given:
        webhook, events = given["webhook_completed"], ["completed"]
    if webhook is not None and not (
        isinstance(webhook, str) and len(webhook) <= _MAX_WEBHOOK_URL_CHARACTERS
    ):
        raise invalid_input("webhook: must be an https address", "webhook")
    if not isinstance(events, list) or any(one not in EVENTS for one in events):
        raise invalid_input(
            f"webhook_events_filter: must be an array of {', '.join(EVENTS)}",
            "webhook_events_filter",
        )
    ordered = tuple(one for one in EVENTS if one in events)
    return Creation(given.get("version"), input_, stream, webhook, ordered)


def wait_s(prefer: str, max_s: float) -> float | None:
    """How long ``Prefer: wait`` asks to wait (RFC 7240); None where it asks for nothing.

    Args:
        prefer: The header field, all its lines joined by commas.
        max_s: Most that can be asked for, in seconds.

    Example:
        >>> wait_s("wait", 60), wait_s("wait=5", 60), wait_s("wait=500", 60)
        (60, 5.0, 60)
        >>> wait_s("respond-async", 60), wait_s("no-wait", 60), wait_s("wait=soon", 60)
        (None, None, None)
    """
    wait = preferences(prefer).get("wait")
    if wait is None or not (wait == "" or (wait.isascii() and wait.isdigit())):
        return None
    return min(max_s, float(wait or _DEFAULT_WAIT_S))


def span_s(cancel_after: str) -> float:
    """How long ``Cancel-After`` lets a prediction live, in seconds.

    Args:
        cancel_after: The header field, such as ``"90s"``, ``"1m"``, ``"1h30m"``.

    Raises:
        UnprocessableEntityError: It is no span, or one below 5 s.

    Example:
        >>> span_s("1m30s"), span_s("45"), span_s("2h")
        (90.0, 45.0, 7200.0)
    """
    found = _SPAN.fullmatch(cancel_after.strip().lower())
    hours, minutes, seconds = found.groups() if found is not None else (None, None, None)
    total = 3600 * int(hours or 0) + 60 * int(minutes or 0) + int(seconds or 0)
    if total < _MIN_LIFETIME_S:
        raise invalid_input(
            f"Cancel-After: {shown(cancel_after)} is no time from {_MIN_LIFETIME_S} s on, such as "
            "90s, 1m or 1h30m",
            "Cancel-After",
        )
    return float(total)
