"""Management of API keys over HTTP: create, update, rotate and remove.

Uses the same file and lock as ``polymux keys``. Changes apply from the next request on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from polymux import errors
from polymux._util.deprecation import with_new_keys
from polymux._util.text import shown
from polymux.server.auth.api_keys import LARGEST_QUOTA, KeyFile, known_scopes
from polymux.server.routes.admin import PATH, AdministrationEndpoint, described_keys
from polymux.service.errors import bad_request, status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux.server.auth.api_keys import Key
    from polymux.server.http.responses import Fields
    from polymux.server.routes.endpoint import RequestContext

_Given = TypeVar("_Given")

KEYS = f"{PATH}/keys"
MAX_NAME_CHARACTERS = 100
_MAX_BODY_BYTES = 64 << 10
_DAY_S = 86400.0
#: Responses with a new key must not be cached (RFC 9111, `no-store`).
_NOT_STORED: Fields = ((b"cache-control", b"no-store"),)
_log = logging.getLogger("polymux.server")


class Bounds(NamedTuple):
    """Minimum of a number, and whether it must be an integer."""

    lowest: float
    is_whole: bool = False


#: Limits of quotas; the maximum is `LARGEST_QUOTA`. The minimum never blocks all requests.
QUOTAS: Mapping[str, Bounds] = {
    "requests_per_minute": Bounds(0.01),
    "concurrent": Bounds(1, is_whole=True),
    "max_estimate_s": Bounds(0.001),
    "expires_in_days": Bounds(0.001),
}


def key_values(plain: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Convert the body of a request to attributes of `Key`.

    Args:
        plain: Members ``name``, ``scopes``, and those of `QUOTAS`; None removes a limit.
        now: Seconds since 1970; ``expires_in_days`` counts from here.

    Example:
        >>> from polymux.server.routes.api_keys import key_values
        >>> key_values({"name": "site", "scopes": ["chat"], "expires_in_days": 1}, now=0.0)
        {'name': 'site', 'scopes': ('chat',), 'expires_at': 86400.0}
    """
    found: dict[str, Any] = {}
    plain = with_new_keys(plain, {"longest_estimate_s": "max_estimate_s"}, _log.warning)
    for name, value in plain.items():
        if name == "name":
            found[name] = _name(value)
        elif name == "scopes":
            found[name] = _scopes(value)
        elif name == "expires_in_days":
            days = _number(name, value)
            found["expires_at"] = None if days is None else now + days * _DAY_S
        elif name in QUOTAS:
            found[name] = _number(name, value)
        else:
            known = ", ".join(("name", "scopes", *QUOTAS))
            raise bad_request(f"{shown(name)}: unknown field (known: {known})")
    return found


def _name(value: Any) -> str:
    if (
        not isinstance(value, str)
        or not 0 < len(value.strip()) <= len(value) <= MAX_NAME_CHARACTERS
    ):
        raise bad_request(
            f"name: invalid (got {shown(value)}, allowed a string of 1 to {MAX_NAME_CHARACTERS} "
            "characters that are not all spaces)",
            "name",
        )
    if not value.isprintable():
        raise bad_request(
            f"name: invalid (got {shown(value)}, allowed printable characters)", "name"
        )
    return value


def _scopes(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    known = known_scopes()
    if not isinstance(value, list) or not value:
        raise bad_request("scopes: must be a non-empty array, or null for all scopes", "scopes")
    for one in value:
        if not isinstance(one, str) or one not in known:
            raise bad_request(
                f"scopes: unknown scope {shown(one)} (known: {', '.join(known)})", "scopes"
            )
    return tuple(dict.fromkeys(value))


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    bounds = QUOTAS[name]
    kind = "an integer" if bounds.is_whole else "a number"
    words = (
        f"{name}={shown(value)}: must be {kind} from {bounds.lowest:g} to {LARGEST_QUOTA}, or null"
    )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_request(words, name)
    if not bounds.lowest <= value <= LARGEST_QUOTA or (bounds.is_whole and value != int(value)):
        raise bad_request(words, name)
    return int(value) if bounds.is_whole else float(value)


class _KeyEndpoint(AdministrationEndpoint):
    refuses_unknown = True

    async def _values(self, asked: RequestContext) -> dict[str, Any]:
        return key_values(await self.read_object(asked, _MAX_BODY_BYTES), time.time())

    async def _with_file(
        self, change: Callable[[KeyFile], _Given], id_: str | None = None
    ) -> _Given:
        """Change the file of keys on a thread, because it waits for the lock and the disk."""
        # A separate object, because the gate's belongs to the event loop.
        file = KeyFile(self.state.keys.path)

        def work() -> _Given | None:
            keys = file.keys()
            if id_ is not None and all(one.id != id_ for one in keys):
                return None
            return change(file)

        try:
            given = await asyncio.to_thread(work)
        except errors.InvalidRequestError as error:
            _log.error("%s", error)
            raise status_error(
                errors.OverloadedError,
                "the server cannot change API keys at the moment. Try again later, or check the "
                "server's log",
                retry_after_s=10,
            ) from None
        if given is None:
            raise status_error(errors.NotFoundError, f"id: unknown API key {shown(id_ or '')}")
        return given

    def _other(self, asked: RequestContext) -> str:
        """Return the id in the path, unless it is the client's own API key.

        Raises:
            ConflictError: It is the client's own key; the last administrator could lock itself out.
        """
        id_: str = asked.scope["path_params"]["id"]
        if id_ == asked.access.caller.id:
            raise status_error(
                errors.ConflictError,
                "id: an API key cannot update or remove itself. Use another API key, or the "
                "command `polymux keys`",
                code="own_key",
            )
        return id_

    def _note_change(self, done: str, key: Key, asked: RequestContext) -> None:
        """Log a change with ids only, because names may contain any text."""
        _log.info("API key %s was %s by API key %s", key.id, done, asked.access.caller.id)

    async def _send(
        self, asked: RequestContext, status: int, key: Key, text: str | None = None
    ) -> None:
        (body,) = described_keys(self.state, (key,), asked.access.caller.id)
        if text is not None:
            body = {"key": text} | body
        await asked.send_json(status, body, _NOT_STORED)


class KeyList(_KeyEndpoint):
    """``GET`` and ``POST /api/v1/administration/keys``."""

    methods = ("GET", "POST")

    async def handle(self, asked: RequestContext) -> Any:
        if asked.scope["method"] == "GET":
            keys = self.state.keys.keys()
            return {"results": described_keys(self.state, keys, asked.access.caller.id)}
        values = await self._values(asked)
        if "name" not in values:
            raise bad_request("name: missing. Name the new API key", "name")
        text, key = await self._with_file(lambda file: file.add(**values))
        self._note_change("created", key, asked)
        await self._send(asked, 201, key, text)
        return None


class KeyItem(_KeyEndpoint):
    """``PATCH`` and ``DELETE /api/v1/administration/keys/{id}``."""

    methods = ("PATCH", "DELETE")

    async def handle(self, asked: RequestContext) -> None:
        """Change the given fields, or remove the key."""
        id_ = self._other(asked)
        if asked.scope["method"] == "DELETE":
            key = await self._with_file(lambda file: file.remove(id_), id_)
            self._note_change("removed", key, asked)
            await asked.send_body(204, b"")
            return
        values = await self._values(asked)
        if not values:
            raise bad_request("nothing to change. Send a name, scopes or a quota")
        key = await self._with_file(lambda file: file.change(id_, **values), id_)
        self._note_change("updated", key, asked)
        await self._send(asked, 200, key)


class KeyRotation(_KeyEndpoint):
    """``POST /api/v1/administration/keys/{id}/rotate``."""

    methods = ("POST",)

    async def handle(self, asked: RequestContext) -> None:
        """Replace a key, also the client's own; the old one is revoked."""
        id_ = asked.scope["path_params"]["id"]
        text, key = await self._with_file(lambda file: file.rotate(id_), id_)
        self._note_change("rotated", key, asked)
        await self._send(asked, 200, key, text)
