"""Converts exceptions to error messages and exit codes."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress

from polymux._util.text import display_name, printable
from polymux.cli.terminal import RED, has_colors, styled
from polymux.errors import (
    APIError,
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    InputNotFoundError,
    InternalServerError,
    InvalidRequestError,
    MissingDependencyError,
    NoBackendError,
    NoMatchError,
    NotFoundError,
    PolymuxError,
    PredictionFailedError,
    RequestTimeoutError,
    StreamInterruptedError,
    TransportError,
)

TYPE_CHECKING = bool()  # see polymux/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class ExitCode:
    """Exit codes of the commands; see `EXIT_CODES`."""

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


#: Last line of the help of each command.
EPILOG = "Exit codes: see 'polymux help exit-codes'.\n"
EXIT_CODES = """\
exit codes:
  0    success (skipped inputs count as success)
  1    an input failed, at least one of several inputs, or standard output was closed
  2    invalid command line or request; nothing was done
  3    missing dependency or model; 'polymux doctor' shows which
  4    no server configured, or invalid configuration; nothing was done
  5    not found: an input, song, job or file (also HTTP 404)
  6    rejected by the server, such as an invalid API key (other HTTP 4xx)
  7    connection failed or lost
  8    timed out
  9    the server or its job failed, or the request is not supported (HTTP 5xx)
  130  interrupted (Ctrl-C); no partial files are left
  143  terminated (SIGTERM); no partial files are left
"""
#: The first matching class determines the code.
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
#: Shorter secrets could match parts of other words.
_MIN_SECRET_CHARACTERS = 4
_is_here = False
_STATUS_WORDS = "the server returned status"


class ConfigurationError(PolymuxError):
    """No server is configured, or the environment or configuration file is invalid."""

    code = "not_configured"


def is_done_here() -> None:
    """Record that the command runs locally, so messages do not mention a server."""
    global _is_here  # One process runs one command.
    _is_here = True


def hide(secret: str | None) -> None:
    """Redact a key in all further messages, unless it is too short to be one."""
    if secret and len(secret) >= _MIN_SECRET_CHARACTERS and secret not in _SECRETS:
        _SECRETS.append(secret)


def say(text: str, style: str = "") -> None:
    """Print a line to standard error, with control characters escaped and keys redacted.

    Args:
        text: The line.
        style: Its style on a terminal; see `terminal.styled`. Default: none.
    """
    for secret in _SECRETS:
        text = text.replace(secret, "***")
    with suppress(OSError):
        line = f"polymux: {printable(text)}"
        if style and has_colors(sys.stderr):
            line = styled(line, style)
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


@contextmanager
def invalid_configuration() -> Iterator[None]:
    """Report invalid settings in a configuration file with the exit code 4.

    Raises:
        ConfigurationError: The settings are invalid.
    """
    try:
        yield
    except InvalidRequestError as error:
        raise ConfigurationError(error.message) from None


@contextmanager
def setting(file: Path, table: str) -> Iterator[None]:
    """Name the file and the table of an invalid setting.

    Raises:
        InvalidRequestError: The setting is invalid.
    """
    try:
        yield
    except InvalidRequestError as error:
        raise InvalidRequestError(
            f"configuration file {display_name(str(file))}: {table}.{error}"
        ) from None


def code_of(error: BaseException) -> int:
    if isinstance(error, ConfigurationError):
        return ExitCode.NOT_CONFIGURED
    if _is_here and isinstance(error, APIStatusError):
        return _local_code(error)
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILURE)


def _local_code(error: APIStatusError) -> int:
    """Return the code of an error of a local engine, which has no server that rejects requests."""
    if isinstance(error, BadRequestError):
        return ExitCode.USAGE
    if isinstance(error, NotFoundError):
        return ExitCode.NOT_FOUND
    # A field that an engine does not support is named in `param`.
    if isinstance(error, NoBackendError) and error.param in (None, "model"):
        return ExitCode.MISSING_DEPENDENCY
    is_failure = isinstance(error, InternalServerError)
    return ExitCode.SERVER_FAILED if is_failure else ExitCode.FAILURE


def message_of(error: PolymuxError) -> str:
    """Return the message for an exception, with facts that help to fix the problem."""
    text = str(error)
    if isinstance(error, MissingDependencyError):
        return f"{text} (run 'polymux doctor' for details)"
    if _is_here or not isinstance(error, APIStatusError):
        return text
    facts = [] if text.startswith(_STATUS_WORDS) else [f"status {error.status}"]
    if error.request_id:
        facts.append(f"request {error.request_id}")
    if after := error.headers.get("retry-after"):
        facts.append(f"retry after {after}{' s' if after.isdigit() else ''}")
    if isinstance(error, AuthenticationError):
        facts.append("set the key in POLYMUX_API_KEY or the configuration file")
    text = text if text.startswith(_STATUS_WORDS) else f"error from the server: {text}"
    return f"{text} ({'; '.join(facts)})" if facts else text


def report(error: Exception) -> int:
    """Print an exception's message. Return the exit code."""
    if os.environ.get("POLYMUX_DEBUG") == "1":
        from traceback import format_exc

        for line in format_exc().splitlines():
            say(line)
    if isinstance(error, PolymuxError):
        say(message_of(error), RED)
    else:
        what = f"{type(error).__name__}: {error}"
        say(f"bug in polymux: {what} (set POLYMUX_DEBUG=1 for a traceback)", RED)
    return code_of(error)
