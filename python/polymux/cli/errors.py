"""From an exception to the line that people read and the exit code that programs read."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from polymux._util.text import printable
from polymux.errors import (
    APIError,
    APIStatusError,
    AuthenticationError,
    InputNotFoundError,
    InternalServerError,
    InvalidRequestError,
    MissingDependencyError,
    NoMatchError,
    NotFoundError,
    PolymuxError,
    PredictionFailedError,
    RequestTimeoutError,
    StreamInterruptedError,
    TransportError,
)


class ExitCode:
    """What the exit codes of the commands mean."""

    SUCCESS = 0
    FAILURE = 1
    USAGE = 2
    MISSING_DEPENDENCY = 3
    NOT_CONFIGURED = 4
    NOT_FOUND = 5
    REFUSED = 6
    NO_CONNECTION = 7
    TIMED_OUT = 8
    SERVER_FAILED = 9
    INTERRUPTED = 130  # 128 + SIGINT, as shells report it
    TERMINATED = 143  # 128 + SIGTERM


EPILOG = """\
exit codes:
  0    everything was done (what was skipped as asked counts as done)
  1    at least one input failed, or the reader of the output went away
  2    the command line is wrong; nothing was done
  3    a part of this installation is missing; 'polymux doctor' says which
  4    no server is named, or the configuration is wrong; nothing was done
  5    the input, song, job or file does not exist (a server's status 404, too)
  6    the server refuses the request or the key (other statuses from 400 to 499)
  7    there is no connection to the server, or it broke off
  8    a deadline passed
  9    the server or its job failed, or cannot do this (status 500 and above)
  130  interrupted by Ctrl-C; nothing partial is left behind
  143  ended by SIGTERM; nothing partial is left behind
"""
#: The first that fits counts.
_CODES: tuple[tuple[type[PolymuxError], int], ...] = (
    (MissingDependencyError, ExitCode.MISSING_DEPENDENCY),
    (InvalidRequestError, ExitCode.USAGE),
    (NotFoundError, ExitCode.NOT_FOUND),
    (NoMatchError, ExitCode.NOT_FOUND),
    (InputNotFoundError, ExitCode.NOT_FOUND),
    (RequestTimeoutError, ExitCode.TIMED_OUT),
    (InternalServerError, ExitCode.SERVER_FAILED),
    (APIStatusError, ExitCode.REFUSED),
    (APIError, ExitCode.SERVER_FAILED),
    (PredictionFailedError, ExitCode.SERVER_FAILED),
    (TransportError, ExitCode.NO_CONNECTION),
    (StreamInterruptedError, ExitCode.NO_CONNECTION),
)
_SECRETS: list[str] = []
#: Shorter ones would be found in the middle of other words.
_MIN_SECRET_CHARACTERS = 4
_is_here = False
_STATUS_WORDS = "the server answered with status"


class ConfigurationError(PolymuxError):
    """No server is named, or what the environment or the configuration file says is wrong."""

    code = "not_configured"


def is_done_here() -> None:
    """There is no server of which messages could speak."""
    global _is_here  # Of this process, which is one command.
    _is_here = True


def hide(secret: str | None) -> None:
    """Has a key left out of everything that is said from now on, unless it is hardly one."""
    if secret and len(secret) >= _MIN_SECRET_CHARACTERS and secret not in _SECRETS:
        _SECRETS.append(secret)


def say(text: str) -> None:
    """One line on standard error, without control characters and without any key."""
    for secret in _SECRETS:
        text = text.replace(secret, "***")
    with suppress(OSError):
        sys.stderr.write(f"polymux: {printable(text)}\n")
        sys.stderr.flush()


def code_of(error: BaseException) -> int:
    """The exit code for an exception."""
    if isinstance(error, ConfigurationError):
        return ExitCode.NOT_CONFIGURED
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILURE)


def message_of(error: PolymuxError) -> str:
    """What to say about an exception: what was wrong, and what can be done."""
    text = str(error)
    if isinstance(error, MissingDependencyError):
        return f"{text} ('polymux doctor' shows what is there)"
    if _is_here or not isinstance(error, APIStatusError):
        return text
    facts = [] if text.startswith(_STATUS_WORDS) else [f"status {error.status}"]
    if error.request_id:
        facts.append(f"request {error.request_id}")
    if error.headers.get("retry-after"):
        facts.append(f"it asks for a pause of {error.headers['retry-after']}")
    if isinstance(error, AuthenticationError):
        facts.append("the key comes from POLYMUX_API_KEY or the configuration file")
    text = text if text.startswith(_STATUS_WORDS) else f"the server says: {text}"
    return f"{text} ({'; '.join(facts)})" if facts else text


def report(error: Exception) -> int:
    """Says what went wrong; the exit code."""
    if os.environ.get("POLYMUX_DEBUG") == "1":
        from traceback import format_exc

        for line in format_exc().splitlines():
            say(line)
    if isinstance(error, PolymuxError):
        say(message_of(error))
    else:
        what = f"{type(error).__name__}: {error}"
        say(f"this is a defect of polymux: {what} (POLYMUX_DEBUG=1 shows where it happened)")
    return code_of(error)
