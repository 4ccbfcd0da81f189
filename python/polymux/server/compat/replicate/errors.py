"""Authentication, errors and paths of the Replicate compatibility API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux.server.http.responses import error_headers, send_json
from polymux.server.routes.endpoint import Endpoint, NotFound
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.server.auth.gate import Access
    from polymux.server.http.responses import Fields, Send

#: Prefix of all routes.
PREFIX = "/replicate/"
BASE = "/replicate/v1"
#: Code of input that violates the contract; the operations return 400 for it.
INVALID_INPUT = "invalid_input"
_TITLES = {
    400: "Bad request",
    401: "Unauthenticated",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Content too large",
    415: "Unsupported media type",
    422: "Unprocessable",
    429: "Too many requests",
    501: "Not implemented",
    503: "Service unavailable",
    507: "Insufficient storage",
}
_TITLES_BY_CODE = {
    INVALID_INPUT: "Input validation failed",
    "invalid_version": "Invalid version or not permitted",
}


def error_of(error: Mapping[str, Any], request_id: str) -> dict[str, Any]:
    """Convert a described error to Replicate's format (RFC 9457), with our code added."""
    status = int(error["status"])
    title = _TITLES_BY_CODE.get(error["code"]) or _TITLES.get(
        status, "Server error" if status >= 500 else "Bad request"
    )
    body = {"title": title, "detail": error["message"], "status": status, "code": error["code"]}
    if error.get("param"):
        body["param"] = error["param"]
    return body | {"request_id": request_id}


def invalid_input(message: str, param: str | None = None) -> errors.UnprocessableEntityError:
    """Create the error for invalid input: 422, as in Replicate's API."""
    return status_error(errors.UnprocessableEntityError, message, code=INVALID_INPUT, param=param)


class ReplicateEndpoint(Endpoint):
    """An endpoint with errors in Replicate's format and ``Token`` authentication.

    Endpoints check scopes with `require` when they know the operation.
    """

    kind = "api"
    every_key = True
    token = True

    async def tell(
        self, send: Send, error: Mapping[str, Any], request_id: str, fields: Fields = ()
    ) -> None:
        body = error_of(error, request_id)
        headers = error_headers(error, fields)
        await send_json(send, body["status"], body, headers, request_id=request_id)

    def require(self, access: Access, wanted: str) -> None:
        """Check that the API key allows an operation or scope."""
        if access.key is not None and not access.key.allows(wanted):
            raise status_error(
                errors.PermissionDeniedError,
                f"permission denied: this API key does not have the scope {wanted}",
                code="forbidden",
            )

    def require_any(self, access: Access) -> None:
        """Check that the API key allows any operation, unlike a key only for metrics."""
        key = access.key
        if key is not None and not any(key.allows(one.name) for one in contract.operations()):
            raise status_error(
                errors.PermissionDeniedError,
                "permission denied: this API key does not allow any operation",
                code="forbidden",
            )


class ReplicateNotFound(ReplicateEndpoint, NotFound):
    """Responds to unknown paths under ``/replicate``."""
