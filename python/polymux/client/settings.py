"""What a client was told: deadlines, retries, header fields, models."""

from __future__ import annotations

from polymux._util.frozen import Frozen
from polymux._util.redaction import register_secret
from polymux._util.text import shown
from polymux.client import options
from polymux.config import MAX_HEADER_CHARACTERS
from polymux.errors import InvalidRequestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from polymux.client.options import Retry, Timeout

#: In names of fields whose values are nobody's business.
_TELLING_WORDS = ("auth", "cookie", "key", "password", "secret", "token")
#: What stands before a key in `Authorization`: everybody's word, and no secret.
_SCHEMES = {"basic", "bearer", "digest", "token"}
#: The client's own; a caller's would break the exchange.
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
    """What a client was told; clients made of each other share their connections."""

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
        """A copy with what is given; header fields are added."""
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
        """Of the header fields, in lower case."""
        return {name.lower() for name, _ in self.headers}


def _merged(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Header fields, of those with one name the last; case makes no other name of it."""
    return tuple({name.lower(): (name, value) for name, value in headers}.values())


def _items(name: str, given: Mapping[str, str] | None) -> Any:
    if given is None:
        return ()
    if not hasattr(given, "items"):
        raise TypeError(f"{name}: a mapping such as a dict, not {type(given).__name__}")
    return given.items()


def checked_header(name: str, value: str) -> tuple[str, str]:
    """A header field that a caller adds to requests.

    Raises:
        InvalidRequestError: Not a field of HTTP (RFC 9110, 5), or one that is the client's own.
        TypeError: Not a text.
    """

    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError("headers: names and values are str")
    token = name.isascii() and name.replace("-", "a").replace("_", "a").isalnum()
    if not token or name.lower() in _OWN_FIELDS:
        raise InvalidRequestError(f"headers: {shown(name)} is no field that can be added")
    if not value.isascii() or any(char < " " or char == "\x7f" for char in value):
        # Not shown: it may well be a key.
        message = f"headers: the value of {name} holds a control or non-ASCII character"
        raise InvalidRequestError(message)
    if len(value) > MAX_HEADER_CHARACTERS:
        message = (
            f"headers: the value of {name} has {len(value)} characters; {MAX_HEADER_CHARACTERS} go"
        )
        raise InvalidRequestError(message)
    if any(word in name.lower() for word in _TELLING_WORDS):
        register_secret(value, *(one for one in value.split() if one.lower() not in _SCHEMES))
    return name, value


def checked_path(operation: str, path: str) -> tuple[str, str]:
    """Where a server has an operation: a path, perhaps with a query, and nothing of a host.

    Raises:
        InvalidRequestError: Something else; joined to the server's address it could name another.
            Or there is no such operation.
        TypeError: Not a text.
    """

    if not isinstance(operation, str) or not isinstance(path, str):
        raise TypeError("paths: operations and paths are str")
    printable = path.isascii() and path.isprintable() and not set(path) & set(" #\\")
    if not path.startswith("/") or not printable:
        message = (
            f"paths: {shown(path)} is no path: it begins with '/', and holds no space, '#', "
            "backslash, control or non-ASCII character"
        )
        raise InvalidRequestError(message)
    name = resolved(operation)
    if name is None:
        raise InvalidRequestError(
            f"paths: there is no operation {shown(operation)}; 'polymux operations' lists them"
        )
    return name, path


def resolved(operation: str) -> str | None:
    """The operation that a method's name, a command, a path or its last segment means, if any."""
    from polymux.client.methods.results import PATHS

    if operation in PATHS:
        return operation
    word = operation.replace("-", "_")
    if word in PATHS:
        return word
    for name, path in PATHS.items():
        if operation in (path, f"/api/v1/{path}", path.rpartition("/")[2]):
            return name
    return None
