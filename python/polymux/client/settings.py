"""Settings of a client: timeouts, retries, header fields, paths and the chat model."""

from __future__ import annotations

from polymux._util.frozen import Frozen
from polymux._util.redaction import register_secret
from polymux._util.text import shown, unknown_operation
from polymux.client import options
from polymux.config import MAX_HEADER_CHARACTERS
from polymux.errors import InvalidRequestError

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from polymux.client.options import Retry, Timeout

#: If a header field's name contains one of these, its value is redacted.
_TELLING_WORDS = ("auth", "cookie", "key", "password", "secret", "token")
#: Schemes of `Authorization`, which are not secret.
_SCHEMES = {"basic", "bearer", "digest", "token"}
#: The signs in names of header fields (RFC 9110, 5.6.2), for `str.translate`.
_NAME_SIGNS = dict.fromkeys(map(ord, "!#$%&'*+-.^_`|~"), "a")
#: Fields that the client sets itself. Other values would break the request.
_OWN_FIELDS = (
    "content-length",
    "content-type",
    "transfer-encoding",
    "host",
    "connection",
    "expect",
    "te",
)


class Settings(Frozen):
    """Settings of a client."""

    __slots__ = ("chat_model", "headers", "max_event_bytes", "paths", "retry", "timeout")
    _hidden = ("headers",)
    chat_model: str | None
    headers: tuple[tuple[str, str], ...]
    max_event_bytes: int
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
        max_event_bytes: int | None = None,
    ) -> None:
        self._set(
            chat_model=chat_model,
            headers=_merged(checked_header(*one) for one in _items("headers", headers)),
            max_event_bytes=options.as_max_event_bytes(max_event_bytes),
            paths=tuple(checked_path(*one) for one in _items("paths", paths)),
            retry=options.as_retry(retry),
            timeout=options.as_timeout(timeout),
        )

    def changed(self, **given: Any) -> Settings:
        """Return a copy with the given settings; header fields are added."""
        new = Settings(**given)
        changes: dict[str, Any] = {
            name: getattr(new, name) for name in given if given[name] is not None
        }
        if new.headers:
            changes["headers"] = _merged((*self.headers, *new.headers))
        if "timeout" in changes:
            changes["timeout"] = new.timeout.over(self.timeout)
        return self._replace(**changes)

    def names(self) -> set[str]:
        """Return the names of the header fields in lower case."""
        return {name.lower() for name, _ in self.headers}


def _merged(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Merge header fields; the last field of a name (ignoring case) wins."""
    return tuple({name.lower(): (name, value) for name, value in headers}.values())


def _items(name: str, given: Mapping[str, str] | None) -> Any:
    if given is None:
        return ()
    if not hasattr(given, "items"):
        raise TypeError(f"{name}: invalid type (got {type(given).__name__}, allowed a mapping)")
    return given.items()


def checked_header(name: str, value: str) -> tuple[str, str]:
    """Validate an additional header field.

    Raises:
        InvalidRequestError: It is not valid (RFC 9110, 5), or the client sets it itself.
        TypeError: Name or value is not a str.
    """

    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError(
            f"headers: invalid type (got {_type_name(name, value)}, allowed str for names and "
            "values)"
        )
    token = name.isascii() and name.translate(_NAME_SIGNS).isalnum()
    if not token:
        raise InvalidRequestError(
            f"headers: invalid name {shown(name)} (allowed: ASCII letters, digits and "
            "!#$%&'*+-.^_`|~)"
        )
    if name.lower() in _OWN_FIELDS:
        raise InvalidRequestError(
            f"headers: {shown(name)} cannot be set, because the client sets it itself"
        )
    if not value.isascii() or any(char < " " or char == "\x7f" for char in value):
        # The value is not shown, because it may be a key.
        message = f"headers: invalid value of {name} (contains a control or non-ASCII character)"
        raise InvalidRequestError(message)
    if len(value) > MAX_HEADER_CHARACTERS:
        message = (
            f"headers: value of {name} is too large (got {len(value)} characters, allowed "
            f"{MAX_HEADER_CHARACTERS})"
        )
        raise InvalidRequestError(message)
    if any(word in name.lower() for word in _TELLING_WORDS):
        register_secret(value, *(one for one in value.split() if one.lower() not in _SCHEMES))
    return name, value


def _type_name(*given: object) -> str:
    """Return the type of the first argument that is not a str."""
    return next(type(one).__name__ for one in given if not isinstance(one, str))


def checked_path(operation: str, path: str) -> tuple[str, str]:
    """Validate the custom path of an operation: a path, optionally with a query, without a host.

    Raises:
        InvalidRequestError: The path is invalid (joined to the base URL, it could name another
            host), or the operation is unknown.
        TypeError: Operation or path is not a str.
    """

    if not isinstance(operation, str) or not isinstance(path, str):
        raise TypeError(
            f"paths: invalid type (got {_type_name(operation, path)}, allowed str for operations "
            "and paths)"
        )
    printable = path.isascii() and path.isprintable() and not set(path) & set(" #\\")
    if not path.startswith("/") or not printable:
        message = (
            f"paths: invalid path {shown(path)}. It must start with '/' and must not contain "
            "spaces, '#', backslashes, control or non-ASCII characters"
        )
        raise InvalidRequestError(message)
    name = resolved(operation)
    if name is None:
        raise InvalidRequestError(f"paths: {unknown_operation(operation)}")
    return name, path


def resolved(operation: str) -> str | None:
    """Find an operation by method name, command, path or the path's last segment."""
    from polymux.client.methods.results import ALIASES, PATHS

    if operation in PATHS:
        return operation
    word = operation.replace("-", "_")
    word = ALIASES.get(word, word)
    if word in PATHS:
        return word
    for name, path in PATHS.items():
        if operation in (path, f"/api/v1/{path}", path.rpartition("/")[2]):
            return name
    return None
