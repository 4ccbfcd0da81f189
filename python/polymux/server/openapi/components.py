"""What all paths of the OpenAPI document share: errors, header fields, parameters."""

from __future__ import annotations

from typing import Any

ERROR: dict[str, Any] = {
    "type": "object",
    "description": "What was wrong, and what to do.",
    "required": ["error", "code"],
    "properties": {
        "error": {"type": "string", "maxLength": 2048},
        "code": {"type": "string", "pattern": "^[a-z_]+$"},
        "param": {"type": "string", "description": "The field concerned."},
        "request_id": {"type": "string", "description": "Names the request in the log."},
        "id": {"type": "string", "description": "Of the prediction that failed."},
    },
}
#: Any request can have these.
_REQUEST = {
    "400": "The request is none of HTTP, or does not keep the contract.",
    "405": "This address does not take that method.",
    "414": "The request's target is too long.",
    "421": "Host names another server.",
    "429": "The key may not ask so often, or for so much at once.",
    "431": "The request's header is too large.",
    "500": "The server failed.",
    "503": "The server is busy, starting or stopping.",
}
#: Any request that must show a key.
_KEY = {
    "401": "No key, or a wrong one.",
    "403": "The key may not do this, or a page of another site asks.",
}
#: Any request that brings a body.
_BODY = {
    "408": "The body came too slowly.",
    "413": "Too large: the body, or what is in it.",
    "415": "Not a Content-Type, or not media, that is taken.",
}
#: Any operation.
_WORK = {
    "404": "Nothing was found.",
    "501": "Nothing here can do it.",
    "502": "An upstream failed.",
    "504": "It took too long.",
    "507": "There is no room for files.",
}
_MEDIA = {"422": "The media cannot be worked with, or it would take too long."}
_JOB = {
    "404": "Nothing was found, or what this Idempotency-Key stands for is gone.",
    "409": "Another request has come under this Idempotency-Key, or the job was cancelled.",
}
_CHATS = ("chat", "free_chat")


def _field(words: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    return {"description": words, "required": required, "schema": {"type": "string", **schema}}


_FIELDS = {
    "Polymux-Version": _field("Of the server.", required=True),
    "X-Request-ID": _field("Names the request in the log.", maxLength=128),
}
_RETRY = {"Retry-After": _field("After how many seconds to ask again.", pattern="^[0-9]+$")}
_AUTHENTICATE = {"WWW-Authenticate": _field("What is wanted.", required=True)}
_ALLOW = {"Allow": _field("The methods that it takes.", required=True)}
CREATED = {"Location": _field("Where the prediction is.", required=True)}
_MORE_FIELDS = {"401": _AUTHENTICATE, "405": _ALLOW, "429": _RETRY, "503": _RETRY}

PARAMETERS: dict[str, dict[str, Any]] = {
    "request_id": {
        "name": "X-Request-ID",
        "in": "header",
        "description": "The caller's own name for the request.",
        "schema": {"type": "string"},
    },
    "prefer": {
        "name": "Prefer",
        "in": "header",
        "description": "`respond-async`: answer at once; `wait=N`: after so many seconds.",
        "schema": {"type": "string", "examples": ["respond-async", "wait=1"]},
    },
    "idempotency_key": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same request under the same key is the same job for 24 hours.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
}


def answered(answer: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """An answer with more header fields."""
    return answer | {"headers": answer["headers"] | fields}


def answer_of(words: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
    """An answer, with the fields that each has."""
    described: dict[str, Any] = {"description": words, "headers": dict(_FIELDS)}
    return described | ({"content": content} if content else {})


def json_answer(words: str, schema: dict[str, Any]) -> dict[str, Any]:
    """An answer in JSON."""
    return answer_of(words, {"application/json": {"schema": schema}})


def events(name: str, last: str | None = None) -> dict[str, Any]:
    """An answer's content as server-sent events.

    Args:
        name: The schema of what the events' data is, as JSON.
        last: The data of the last event, where it is another. Default: it is not.
    """
    failed = {"type": "object", "required": ["error"]}
    data: dict[str, Any] = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"anyOf": [{"$ref": f"#/components/schemas/{name}"}, failed]},
    }
    if last is not None:
        data = {"anyOf": [{"const": last}, data]}
    # Of each event, as OpenAPI 3.1 has no other word for it.
    schema = {
        "type": "object",
        "required": ["data"],
        "properties": {"data": data, "event": {"type": "string"}},
    }
    return {"text/event-stream": {"schema": schema}}


def _errors(statuses: dict[str, str]) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {
        status: answered(json_answer(words, schema), _MORE_FIELDS.get(status, {}))
        for status, words in sorted(statuses.items())
    }


def error_answers(operation: str, *, job: bool) -> dict[str, Any]:
    """How an operation fails; chats never by 422."""
    media = {} if operation in _CHATS else _MEDIA
    return _errors(_REQUEST | _KEY | _BODY | _WORK | media | (_JOB if job else {}))


def fact_errors(**more: str) -> dict[str, Any]:
    """How a request without a body fails that shows a key.

    Args:
        more: Further statuses, such as ``s404``, and what they mean.
    """
    named = {status.removeprefix("s"): words for status, words in more.items()}
    return _errors(_REQUEST | _KEY | named)


def public_errors(**more: str) -> dict[str, Any]:
    """How a request without a body fails that needs no key; `more` as for `fact_errors`."""
    named = {status.removeprefix("s"): words for status, words in more.items()}
    return _errors(_REQUEST | {"403": "A page of another site asks."} | named)
