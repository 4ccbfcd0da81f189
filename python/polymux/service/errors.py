"""Errors of the service, with the HTTP status that the server returns for them.

The service raises the same classes as a client for the same status, so `Local` and `Client` fail
alike.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, TypeVar

from polymux import errors
from polymux._util.text import did_you_mean, printable, shortened, shown
from polymux.errors import APIStatusError, InternalServerError, PolymuxError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Failure = TypeVar("Failure", bound=APIStatusError)
AnyFailure = TypeVar("AnyFailure", bound=PolymuxError)

_STATUS_OF: Mapping[type[APIStatusError], int] = {
    errors.BadRequestError: 400,
    errors.AuthenticationError: 401,
    errors.PermissionDeniedError: 403,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.RequestTooLargeError: 413,
    errors.UnprocessableEntityError: 422,
    errors.RateLimitError: 429,
    errors.NoBackendError: 501,
    errors.OverloadedError: 503,
    errors.InternalServerError: 500,
}


#: Keys in `vars(error)` that mark errors of an upstream, and of a file that the user named.
_OF_UPSTREAM, _OF_USER = "of_upstream", "of_user"
#: Error numbers of temporary shortages: descriptors, processes, memory.
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS)


class StoreError(PolymuxError):
    """The folder of jobs and files cannot be used."""

    code = "store_failed"


def status_error(
    kind: type[Failure],
    message: str,
    *,
    code: str | None = None,
    status: int | None = None,
    retry_after_s: float | None = None,
    param: str | None = None,
) -> Failure:
    """Create an API error with status, code and headers.

    Args:
        message: The problem and what to do.
        code: Stable name. Default: that of the class.
        status: HTTP status. Default: that of the class.
        retry_after_s: When to retry; None if a retry would not help.
        param: Name of the invalid field.
    """
    error = kind(message, code=code)
    error.status = status if status is not None else _STATUS_OF[kind]
    error.param = param
    if retry_after_s is not None:
        error.headers["retry-after"] = str(max(1, round(retry_after_s)))
    return error


def bad_request(message: str, param: str | None = None) -> errors.BadRequestError:
    return status_error(errors.BadRequestError, message, code="invalid_request", param=param)


def unknown_model(model: str, known: Sequence[str]) -> errors.BadRequestError:
    """Create the error for an unknown chat model."""
    names = ", ".join(map(shown, known[:20]))
    there = f"known: {names}; 'default' selects the first" if names else "use 'default'"
    message = f"model={shown(model)}: unknown chat model ({there}){did_you_mean(model, known)}"
    return status_error(errors.BadRequestError, message, code="model_not_found", param="model")


def draining() -> errors.OverloadedError:
    """Create the error for new work while the server shuts down."""
    message = "the server is shutting down. Try again later"
    return status_error(errors.OverloadedError, message, code="draining", retry_after_s=5)


def storage_full(message: str) -> InternalServerError:
    """Create the error for a full store or disk (507)."""
    return status_error(InternalServerError, message, code="storage_full", status=507)


def of_upstream(error: AnyFailure) -> AnyFailure:
    """Mark an error as an upstream's: another backend may accept the request."""
    vars(error)[_OF_UPSTREAM] = True
    return error


def is_of_upstream(error: BaseException) -> bool:
    """Check whether an upstream reported this error."""
    return _OF_UPSTREAM in vars(error)


def of_user(error: errors.InputError) -> errors.InputError:
    """Mark the error of a file that the user named. Other input errors are bugs of the service."""
    vars(error)[_OF_USER] = True
    return error


def all_failed(failures: Mapping[str, APIStatusError]) -> APIStatusError:
    """Combine the errors of backends that were tried one after another.

    Args:
        failures: Backend to its error; at least one.

    Returns:
        The first error if it is the only one or if all blame the request; otherwise an error
        that lists all (502).

    Example:
        >>> from polymux.service.errors import all_failed, engine_failed
        >>> print(all_failed({"one": engine_failed("it crashed"), "two": engine_failed("no")}))
        none of the 2 models answered: one: it crashed; two: no
    """
    if len(failures) == 1 or all(_is_about_request(one) for one in failures.values()):
        return next(iter(failures.values()))
    reasons = "; ".join(f"{name}: {error}" for name, error in failures.items())
    message = f"none of the {len(failures)} models answered: {reasons}"
    return status_error(InternalServerError, message, code="upstream_failed", status=502)


def _is_about_request(error: APIStatusError) -> bool:
    return 400 <= error.status < 500 and not isinstance(error, errors.RateLimitError)


def engine_failed(message: str) -> InternalServerError:
    """Create the error for an unexpected failure of a local engine."""
    return status_error(InternalServerError, message, code="engine_failed")


_MEDIA: tuple[tuple[type[PolymuxError], int, str], ...] = (
    (errors.UnsupportedMediaError, 415, "unsupported_media"),
    (errors.NoAudioError, 422, "no_audio"),
    (errors.EncryptedMediaError, 422, "encrypted"),
    (errors.LimitExceededError, 413, "too_large"),
    (errors.UndecodableError, 422, "undecodable"),
    (errors.MediaError, 422, "undecodable"),
    (errors.URLRefusedError, 400, "url_refused"),
    (errors.UnsupportedEncodingError, 415, "unsupported_media"),
    (errors.InvalidRequestError, 400, "invalid_request"),
    (errors.NoMatchError, 404, "no_match"),
    (errors.MissingDependencyError, 501, "no_backend"),
)


_WRONG_RANGE = 416


def described(error: BaseException) -> dict[str, Any]:
    """Describe an error for clients and for the record of a job.

    Returns:
        ``status``, ``code``, ``message``, ``param`` and ``retry_after``. Unexpected errors are
        bugs: their text, which may contain secrets, is hidden.
    """
    body: dict[str, Any] = {"status": 500, "code": "internal", "param": None, "retry_after": None}
    if isinstance(error, APIStatusError) and error.status:
        body.update(status=error.status, code=error.code, param=error.param)
        body["retry_after"] = error.headers.get("retry-after")
        if error.status == _WRONG_RANGE:
            body["content_range"] = error.headers.get("content-range")
        return body | {"message": str(error)}
    for kind, status, code in _MEDIA:
        if isinstance(error, kind):
            if isinstance(error, errors.InvalidRequestError):
                field = next((one.field for one in error.problems if one.field), None)
                body["param"] = None if field is None else shortened(printable(field))
            return body | {"status": status, "code": code, "message": str(error)}
    if isinstance(error, errors.InputError) and _OF_USER in vars(error):
        return body | {"status": 400, "code": error.code, "message": str(error)}
    if isinstance(error, (errors.OutOfMemoryError, MemoryError)) or _is_exhaustion(error):
        lacking = "file descriptors, threads or memory" if _is_exhaustion(error) else "memory"
        return body | {
            "status": 503,
            "code": "overloaded",
            "message": f"out of resources: not enough {lacking}. Try again later",
            "retry_after": "10",
        }
    if isinstance(error, StoreError):
        return body | {
            "status": 503,
            "code": error.code,
            "message": "the server cannot use its store of jobs and files. See the server's log",
            "retry_after": "30",
        }
    return body | {"message": "internal error. See the server's log"}


def _is_exhaustion(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in EXHAUSTED
    return isinstance(error, RuntimeError) and "start new thread" in str(error)


def restored(description: Mapping[str, Any]) -> APIStatusError:
    """Recreate an error from its description, such as one from another process."""
    classes = {status: kind for kind, status in _STATUS_OF.items()}
    status = description["status"]
    if not (isinstance(status, int) and 400 <= status < 600):
        status = 500  # Not an error's status: the other process is at fault.
    general = InternalServerError if status >= 500 else APIStatusError
    error = classes.get(status, general)(description["message"], code=description["code"])
    error.status = status
    error.param = description.get("param")
    if description.get("retry_after"):
        error.headers["retry-after"] = description["retry_after"]
    return error
