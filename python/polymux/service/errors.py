"""What the service refuses and how it fails, with the status that a server answers by.

The classes are those that a client raises for the same status, so that `Local` and `Client` fail
alike.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, TypeVar

from polymux import errors
from polymux._util.text import printable, shortened, shown
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


#: In the `vars` of a failure that an upstream has answered with.
_OF_UPSTREAM = "of_upstream"
#: What a machine lacks for a while: descriptors, processes, memory.
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS)


class StoreError(PolymuxError):
    """The folder that jobs and files are kept in cannot be used."""

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
    """A failure as its class, with everything that a server's answer says of it.

    Args:
        kind: Such as `NoBackendError`.
        message: What was wrong and what to do.
        code: Stable name; default: that of the class.
        status: Of HTTP; default: that of the class.
        retry_after_s: After how long to ask again; None where that would not help.
        param: The field concerned.
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
    """A chat model that nothing here has."""
    names = ", ".join(map(shown, known[:20]))
    there = (
        f"there are {names}, and 'default' for the first of them" if names else "ask for 'default'"
    )
    message = f"model={shown(model)}: there is no such chat model here; {there}"
    return status_error(errors.BadRequestError, message, code="model_not_found", param="model")


def draining() -> errors.OverloadedError:
    """Nothing new is begun: the server stops."""
    message = "the server is stopping"
    return status_error(errors.OverloadedError, message, code="draining", retry_after_s=5)


def storage_full(message: str) -> InternalServerError:
    """Nothing more can be kept (507)."""
    return status_error(InternalServerError, message, code="storage_full", status=507)


def of_upstream(error: AnyFailure) -> AnyFailure:
    """The same failure, marked as another server's word: the next may take what it has refused."""
    vars(error)[_OF_UPSTREAM] = True
    return error


def is_of_upstream(error: BaseException) -> bool:
    """Whether a failure is another server's word, and none of this one's."""
    return _OF_UPSTREAM in vars(error)


def all_failed(failures: Mapping[str, APIStatusError]) -> APIStatusError:
    """The failure of work that several backends were asked for, one after another.

    Args:
        failures: Backend to its failure; one at least.

    Returns:
        The first as it is where it is the only one, or where all say that the request is wrong; of
        several others one that lists them (502).

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
    """An engine of this machine failed at what it should be able to do."""
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
    """What a caller is told of a failure, and a job's record keeps.

    Returns:
        ``status``, ``code``, ``message``, ``param`` and ``retry_after_s``. What nobody foresaw is
        a defect: its text, which may hold anything, is not told.
    """
    told: dict[str, Any] = {"status": 500, "code": "internal", "param": None, "retry_after": None}
    if isinstance(error, APIStatusError) and error.status:
        told.update(status=error.status, code=error.code, param=error.param)
        told["retry_after"] = error.headers.get("retry-after")
        if error.status == _WRONG_RANGE:
            told["content_range"] = error.headers.get("content-range")
        return told | {"message": str(error)}
    for kind, status, code in _MEDIA:
        if isinstance(error, kind):
            if isinstance(error, errors.InvalidRequestError):
                field = next((one.field for one in error.problems if one.field), None)
                told["param"] = None if field is None else shortened(printable(field))
            return told | {"status": status, "code": code, "message": str(error)}
    if isinstance(error, (errors.OutOfMemoryError, MemoryError)) or _is_exhaustion(error):
        lacking = "descriptors, threads or memory" if _is_exhaustion(error) else "memory"
        return told | {
            "status": 503,
            "code": "overloaded",
            "message": f"there is not enough {lacking} for this now",
            "retry_after": "10",
        }
    if isinstance(error, StoreError):
        return told | {
            "status": 503,
            "code": error.code,
            "message": "the server's store cannot be used now; its log tells more",
            "retry_after": "30",
        }
    return told | {"message": "an internal error; the server's log tells more"}


def _is_exhaustion(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in EXHAUSTED
    return isinstance(error, RuntimeError) and "start new thread" in str(error)


def restored(told: Mapping[str, Any]) -> APIStatusError:
    """The failure that was described so, such as by another process."""
    classes = {status: kind for kind, status in _STATUS_OF.items()}
    status = told["status"]
    general = InternalServerError if status >= 500 else APIStatusError
    error = classes.get(status, general)(told["message"], code=told["code"])
    error.status = status
    error.param = told.get("param")
    if told.get("retry_after"):
        error.headers["retry-after"] = told["retry_after"]
    return error
