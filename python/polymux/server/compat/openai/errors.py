"""How OpenAI's interface fails, and which models an operation has there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._util.text import shown
from polymux.server.http.responses import send_json, told_fields
from polymux.server.routes.endpoint import Endpoint, NotFound
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.server.http.responses import Fields, Send

#: The interface's codes, and what programs that were made for OpenAI look for.
_CODES = {"unauthorized": "invalid_api_key", "rate_limited": "rate_limit_exceeded"}
_TYPES = {403: "permission_error", 429: "requests"}
#: Its package asks again after any status from 500 on and after 409, unless it is told not to.
_ASKED_AGAIN_IN_VAIN = (409, 501)
#: Stands for the first model there is, as it does in chats.
FIRST_MODEL = "default"


def error_of(told: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """A failure as OpenAI's interface has it.

    Returns:
        The status, and the answer's body.
    """
    status = 404 if told["code"] == "model_not_found" else int(told["status"])
    general = "server_error" if status >= 500 else "invalid_request_error"
    error = {
        "message": told["message"],
        "type": _TYPES.get(status, general),
        "param": told.get("param"),
        "code": _CODES.get(told["code"], told["code"]),
    }
    return status, {"error": error}


class OpenAiEndpoint(Endpoint):
    async def tell(
        self, send: Send, told: Mapping[str, Any], request_id: str, fields: Fields = ()
    ) -> None:
        status, body = error_of(told)
        own = told_fields(told, fields)
        if status in _ASKED_AGAIN_IN_VAIN:
            own.append((b"x-should-retry", b"false"))
        await send_json(send, status, body, own, request_id=request_id)


class OpenAiNotFound(OpenAiEndpoint, NotFound):
    """Every address under ``/v1`` that is none."""


def selector(operation: str, name: str | None, default: str) -> str:
    """The operation's model of that name.

    Args:
        operation: Such as ``"transcribe"``.
        name: What the request says; None or empty where it says nothing.
        default: The model where the request names none, or ``"default"``.
    """
    if not name or name == FIRST_MODEL:
        return default
    known = model_names(operation)
    if name in known:
        return known[name]
    there = ", ".join(known)
    raise status_error(
        errors.NotFoundError,
        f"model={shown(name)}: there is no such model for this; there are {there}, and "
        f"{FIRST_MODEL!r} for {default}",
        code="model_not_found",
        param="model",
    )


def model_names(operation: str) -> dict[str, str]:
    """What requests may call the models of an operation that has selectors; to the selectors."""
    named = {one.model: one.model for one in contract.operation(operation).variants if one.model}
    if operation == "transcribe":
        # The one Whisper that OpenAI has, and what all programs ask for.
        named["whisper-1"] = next(iter(named))
    return named
