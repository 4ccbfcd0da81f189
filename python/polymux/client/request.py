"""Build and validate requests of the API without sending them.

Example:
    >>> from polymux.client.request import build_request
    >>> request = build_request("search_music", {"song": "Blue Danube", "limit": 3})
    >>> request.target, request.body
    ('/api/v1/musicsearch', b'{"song":"Blue Danube","limit":"3"}')
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from polymux._native import core
from polymux._util.imports import IMPORTING
from polymux._util.text import shown
from polymux.client.multipart import multipart_body
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux._native._core import MultipartBody
    from polymux.client.responses import AnswerMessage

__all__ = ["Request", "build_request"]


class Request(NamedTuple):
    """One HTTP request, always a POST.

    Attributes:
        operation: The operation's name, such as ``"transcribe"``.
        variant: ID of the variant, such as ``"A"``; empty if there is only one.
        path: Path, such as ``"/api/v1/modelhost/stt"``.
        query: Names and values of the query, not encoded; only ``model`` exists.
        content_type: Value of the header ``Content-Type``.
        body: JSON bytes, or a multipart body that is generated while it is read.
    """

    operation: str
    variant: str
    path: str
    query: tuple[tuple[str, str], ...]
    content_type: str
    body: bytes | MultipartBody

    @property
    def target(self) -> str:
        """Path and encoded query as in the request line (RFC 9112, 3.2.1)."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def length_bytes(self) -> int | None:
        """Length of the body; None if a part has an unknown length."""
        return len(self.body) if isinstance(self.body, bytes) else self.body.length_bytes


def build_request(
    operation: str,
    values: Mapping[str, Any],
    *,
    model: str | None = None,
    extra_body: Mapping[str, Any] | None = None,
    on_progress: Callable[[int, int | None], object] | None = None,
    awaited: bool = False,
) -> Request:
    """Validate the values and build the request.

    Nothing is sent. Files are opened here, but read only when the body is read.

    Args:
        operation: A method's name, a command, a path or its last segment.
        values: Values by field name; None means absent. A file is a path, bytes, a binary file
            object, an iterable of bytes, a `MediaFile`, or a tuple of a file name and one of these.
            `messages` of a chat may be a str (a user message) and may contain messages of answers.
        model: Model of an operation with several models, or the name of a model that is installed
            on the server. Default: selected by the given fields, else the operation's first.
        extra_body: Additional fields, sent without validation. Default: none.
        on_progress: Progress callback of uploads; see `multipart_body`. Default: none.
        awaited: Whether an event loop sends the request. File objects and iterables are then read
            on other threads. Default: False.

    Raises:
        InvalidRequestError: The request is invalid; `problems` lists all problems.
        InputNotFoundError: A file's path does not exist.
        InputUnreadableError: A file's path is a directory, pipe, socket or device, or access is
            denied.
        TypeError: A value is neither valid JSON nor a file.

    Example:
        >>> from polymux.client.request import build_request
        >>> request = build_request("upscale_image", {"image": ("cat.png", b"..."), "scale": 2})
        >>> request.query
        (('model', 'nightmareai/real-esrgan'),)
        >>> request.content_type.partition(";")[0]
        'multipart/form-data'
    """
    given = core.present(values if type(values) is dict else dict(values))
    if "messages" in given:
        given["messages"] = messages_of(given["messages"])
    name, path, variant, chosen, encoding = choose_variant(operation, model, given)
    shape = _shape(name, variant)
    for file in shape.files:
        if isinstance(given.get(file), list):
            given[file] = (file, given[file])  # The contract would treat the pieces as an array.
    extra = _extra(name, shape, extra_body)
    if shape.passes_unknown:
        given.update(extra)
        given = core.check(name, variant, given)
    else:
        given = core.check(name, variant, given)
        given.update(extra)
    query = (("model", model or chosen),) if chosen else ()
    if encoding == "json":
        for text in shape.texts & given.keys():
            given[text] = str(given[text])
        body = core.write_json(given)
        return Request(name, variant, path, query, "application/json", body)
    form = _form(shape, given, on_progress, awaited=awaited)
    return Request(name, variant, path, query, form.content_type, form)


def choose_variant(
    operation: str, model: str | None, given: dict[str, Any]
) -> tuple[str, str, str, str, str]:
    """Select the variant of a request. Return (operation, path, variant, its model, encoding).

    A name without a slash is that of a model on the server, which knows its variant. Such a request
    is checked as the first variant that accepts its fields, and sent in an encoding that all
    variants accept.

    Raises:
        InvalidRequestError: The operation or its model is unknown.
    """
    if not model or "/" in model:
        return core.choose_variant(operation, model, given)
    name, path, variant, chosen, encoding = core.choose_variant(operation, None, given)
    if not chosen:
        return core.choose_variant(operation, model, given)  # Raises.
    variants = _variants(name)
    fitting = [one for one in (variant, *variants) if _is_valid(name, one, given)]
    variant = next(iter(fitting), variant)
    accepted = [one for one in (encoding, "json", "multipart") if _all_accept(variants, one)]
    return name, path, variant, variants[variant]["model"], next(iter(accepted), encoding)


def _is_valid(operation: str, variant: str, given: dict[str, Any]) -> bool:
    try:
        core.check(operation, variant, given)
    except (InvalidRequestError, TypeError):  # No file is valid in the JSON of another variant.
        return False
    return True


def _all_accept(variants: Mapping[str, Any], encoding: str) -> bool:
    return all(encoding in one["accepts"] for one in variants.values())


def messages_of(messages: Any) -> Any:
    """Convert messages to JSON: a str becomes a user message, answers become their JSON.

    The reasoning of answers is omitted, because many servers reject it.
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if not isinstance(messages, (list, tuple)) or all(type(one) is dict for one in messages):
        return messages
    from polymux.client.responses import AnswerMessage

    return [_request_message(one) if isinstance(one, AnswerMessage) else one for one in messages]


def _request_message(message: AnswerMessage) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    calls = [one.json() for one in message.tool_calls]
    return {**fields, "tool_calls": calls} if calls else fields


class _Shape(NamedTuple):
    """The facts about a variant that are needed to build a request."""

    known: frozenset[str]
    files: frozenset[str]
    #: Numbers that JSON carries as strings.
    texts: frozenset[str]
    passes_unknown: bool


@cache
def _variants(operation: str) -> dict[str, Any]:
    """Return the variants of an operation by ID."""
    # Parsed directly: importing `polymux.contract` takes a third of a process's first request.
    with IMPORTING:
        import json

    (described,) = json.loads(core.describe(operation))
    return {one.get("id", ""): one for one in described["variants"]}


@cache
def _shape(operation: str, variant: str) -> _Shape:
    found = _variants(operation)[variant]
    fields = found["fields"]
    return _Shape(
        known=frozenset(name for one in fields for name in (one["name"], *one.get("aliases", ()))),
        files=frozenset(one["name"] for one in fields if one["type"] == "file"),
        texts=frozenset(one["name"] for one in fields if "written_as" in one),
        passes_unknown=found["unknown_fields"] == "pass",
    )


def _extra(operation: str, shape: _Shape, extra_body: Mapping[str, Any] | None) -> dict[str, Any]:
    if extra_body is None:
        return {}
    if not isinstance(extra_body, Mapping) or not all(isinstance(one, str) for one in extra_body):
        raise TypeError(
            f"extra_body: invalid type (got {type(extra_body).__name__}, allowed a mapping of "
            "field names to values)"
        )
    for name in extra_body:
        if name in shape.known:
            message = f"extra_body: {shown(name)} is a field of {operation}. Pass it as an argument"
            raise InvalidRequestError(message)
    return dict(extra_body)


def _form(
    shape: _Shape,
    given: dict[str, Any],
    on_progress: Callable[[int, int | None], object] | None,
    *,
    awaited: bool,
) -> MultipartBody:
    """Build the form with the fields first, so the server has them before it receives a file."""
    fields = [(name, value) for name, value in given.items() if name not in shape.files]
    files = [(name, value) for name, value in given.items() if name in shape.files]
    return multipart_body(fields, files, on_progress=on_progress, awaited=awaited)
