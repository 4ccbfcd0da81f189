"""Errors and model names of the OpenAI compatibility API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._util.text import shown
from polymux.server.http.responses import error_headers, send_json
from polymux.server.routes.endpoint import Endpoint, NotFound
from polymux.service.errors import status_error
from polymux.service.model import ModelChoice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from polymux.server.http.responses import Fields, Send
    from polymux.service.routes import Routes

#: OpenAI's names of our error codes, which OpenAI clients check for.
_CODES = {"unauthorized": "invalid_api_key", "rate_limited": "rate_limit_exceeded"}
_TYPES = {403: "permission_error", 429: "requests"}
#: OpenAI's package retries 409 and all statuses from 500 on, unless a header field forbids it.
_ASKED_AGAIN_IN_VAIN = (409, 501)
#: Name of the first model, as in chats.
FIRST_MODEL = "default"


def error_of(error: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Convert a described error to OpenAI's format.

    Returns:
        Status and response body.
    """
    status = 404 if error["code"] == "model_not_found" else int(error["status"])
    general = "server_error" if status >= 500 else "invalid_request_error"
    converted = {
        "message": error["message"],
        "type": _TYPES.get(status, general),
        "param": error.get("param"),
        "code": _CODES.get(error["code"], error["code"]),
    }
    return status, {"error": converted}


class OpenAiEndpoint(Endpoint):
    kind = "api"

    async def tell(
        self, send: Send, error: Mapping[str, Any], request_id: str, fields: Fields = ()
    ) -> None:
        status, body = error_of(error)
        headers = error_headers(error, fields)
        if status in _ASKED_AGAIN_IN_VAIN:
            headers.append((b"x-should-retry", b"false"))
        await send_json(send, status, body, headers, request_id=request_id)


class OpenAiNotFound(OpenAiEndpoint, NotFound):
    """Responds to unknown paths under ``/v1``."""


def with_selector(
    routes: Routes, operation: str, fields: list[tuple[str, Any]]
) -> tuple[list[tuple[str, Any]], ModelChoice]:
    """Replace the name of an installed model in a request by the model's selector.

    Returns:
        The fields and the choice. Other names stay unchanged, and choose no installed model.

    Raises:
        NotFoundError: The model is unknown.
    """
    named, known = routes.named_models(operation), model_names(operation)
    given = dict(fields).get("model")
    if not isinstance(given, str) or given in ("", FIRST_MODEL) or given in known:
        return fields, ModelChoice(None)
    if given not in named:
        raise _unknown(given, [*known, *named])
    choice = named[given]
    changed = [(name, choice.selector if name == "model" else one) for name, one in fields]
    return changed, choice


def selector(operation: str, name: str | None, default: str) -> str:
    """Return the model selector for a model name.

    Args:
        operation: Such as ``"transcribe"``.
        name: From the request; None or empty if missing.
        default: The selector if the name is missing or ``"default"``.
    """
    if not name or name == FIRST_MODEL:
        return default
    known = model_names(operation)
    if name in known:
        return known[name]
    raise _unknown(name, known)


def _unknown(name: str, known: Iterable[str]) -> errors.NotFoundError:
    return status_error(
        errors.NotFoundError,
        f"model={shown(name)}: unknown model for this operation (known: {FIRST_MODEL}, "
        f"{', '.join(known)})",
        code="model_not_found",
        param="model",
    )


def model_names(operation: str) -> dict[str, str]:
    """Map the model names of an operation with selectors to the selectors."""
    named = {one.model: one.model for one in contract.operation(operation).variants if one.model}
    if operation == "transcribe":
        # OpenAI's name for Whisper, which most clients send.
        named["whisper-1"] = next(iter(named))
    return named
