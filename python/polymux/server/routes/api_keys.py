"""Keys of a server over HTTP: made, changed, rotated and taken away, for keys that may do that.

The file of keys is the one that ``polymux keys`` changes, under the same lock; what either does
counts from the next request on.
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
from polymux.server.routes.admin import PATH, AdministrationEndpoint, told_keys
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
#: What was just made stays in no cache (RFC 9111, `no-store`).
_NOT_STORED: Fields = ((b"cache-control", b"no-store"),)
_log = logging.getLogger("polymux.server")


class Bounds(NamedTuple):
    """The least that a number may be, and whether it has no fraction."""

    lowest: float
    is_whole: bool = False


#: Each up to `LARGEST_QUOTA`; none of them is a limit that a request could never keep.
QUOTAS: Mapping[str, Bounds] = {
    "requests_per_minute": Bounds(0.01),
    "concurrent": Bounds(1, is_whole=True),
    "max_estimate_s": Bounds(0.001),
    "expires_in_days": Bounds(0.001),
}


def key_values(plain: Mapping[str, Any], now: float) -> dict[str, Any]:
    """What a request says of a key, as attributes of `Key`.

    Args:
        plain: Its members: ``name``, ``scopes``, and those of `QUOTAS`; None lifts a limit.
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
            raise bad_request(f"{shown(name)} is not known: there is {known}")
    return found


def _name(value: Any) -> str:
    if (
        not isinstance(value, str)
        or not 0 < len(value.strip()) <= len(value) <= MAX_NAME_CHARACTERS
    ):
        raise bad_request(f"name: must be a text of 1 to {MAX_NAME_CHARACTERS} characters", "name")
    if not value.isprintable():
        raise bad_request("name: must be a text of characters that can be printed", "name")
    return value


def _scopes(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    known = known_scopes()
    if not isinstance(value, list) or not value:
        raise bad_request("scopes: must be a list of at least one, or null for all", "scopes")
    for one in value:
        if not isinstance(one, str) or one not in known:
            what = shown(one) if isinstance(one, str) else "what is no text"
            raise bad_request(f"scopes: {what} is none: there is {', '.join(known)}", "scopes")
    return tuple(dict.fromkeys(value))


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    bounds = QUOTAS[name]
    kind = "an integer" if bounds.is_whole else "a number"
    words = f"{name}: must be {kind} from {bounds.lowest:g} to {LARGEST_QUOTA}, or null for none"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_request(words, name)
    if not bounds.lowest <= value <= LARGEST_QUOTA or (bounds.is_whole and value != int(value)):
        raise bad_request(words, name)
    return int(value) if bounds.is_whole else float(value)


class _KeyEndpoint(AdministrationEndpoint):
    async def _values(self, asked: RequestContext) -> dict[str, Any]:
        return key_values(await self.read_object(asked, _MAX_BODY_BYTES), time.time())

    async def _with_file(
        self, change: Callable[[KeyFile], _Given], id_: str | None = None
    ) -> _Given:
        """Has the file of keys changed, on a thread: it waits for others, and for the disk."""
        file = KeyFile(self.state.keys.path)  # Of its own: the gate's is the event loop's.

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
                "keys cannot be changed now; the server's log tells more",
                retry_after_s=10,
            ) from None
        if given is None:
            raise status_error(
                errors.NotFoundError, f"there is no key of the id {shown(id_ or '')}"
            )
        return given

    def _other(self, asked: RequestContext) -> str:
        """The id that the address names, of another key than the one that asks.

        Raises:
            ConflictError: It is the one that asks: who has no other would be locked out.
        """
        id_: str = asked.scope["path_params"]["id"]
        if id_ == asked.access.caller.id:
            raise status_error(
                errors.ConflictError,
                "a key can neither change nor remove itself: ask under another one, or use "
                "`polymux keys`",
                code="own_key",
            )
        return id_

    def _note_change(self, done: str, key: Key, asked: RequestContext) -> None:
        """Says in the log what was done, and by whom: ids alone, as names are anybody's text."""
        _log.info("the key %s was %s by the key %s", key.id, done, asked.access.caller.id)

    async def _send(
        self, asked: RequestContext, status: int, key: Key, text: str | None = None
    ) -> None:
        (body,) = told_keys(self.state, (key,), asked.access.caller.id)
        if text is not None:
            body = {"key": text} | body
        await asked.send_json(status, body, _NOT_STORED)


class KeyList(_KeyEndpoint):
    """``GET`` and ``POST /api/v1/administration/keys``."""

    methods = ("GET", "POST")

    async def handle(self, asked: RequestContext) -> Any:
        if asked.scope["method"] == "GET":
            keys = self.state.keys.keys()
            return {"results": told_keys(self.state, keys, asked.access.caller.id)}
        values = await self._values(asked)
        if "name" not in values:
            raise bad_request("name: must be given", "name")
        text, key = await self._with_file(lambda file: file.add(**values))
        self._note_change("made", key, asked)
        await self._send(asked, 201, key, text)
        return None


class KeyItem(_KeyEndpoint):
    """``PATCH`` and ``DELETE /api/v1/administration/keys/{id}``."""

    methods = ("PATCH", "DELETE")

    async def handle(self, asked: RequestContext) -> None:
        """Changes what is given and leaves the rest; or takes the key away."""
        id_ = self._other(asked)
        if asked.scope["method"] == "DELETE":
            key = await self._with_file(lambda file: file.remove(id_), id_)
            self._note_change("removed", key, asked)
            await asked.send_body(204, b"")
            return
        values = await self._values(asked)
        if not values:
            raise bad_request("there is nothing to change: give a name, scopes or a quota")
        key = await self._with_file(lambda file: file.change(id_, **values), id_)
        self._note_change("changed", key, asked)
        await self._send(asked, 200, key)


class KeyRotation(_KeyEndpoint):
    """``POST /api/v1/administration/keys/{id}/rotate``."""

    methods = ("POST",)

    async def handle(self, asked: RequestContext) -> None:
        """Puts a new key in the place of one, its own too; the old one opens nothing any more."""
        id_ = asked.scope["path_params"]["id"]
        text, key = await self._with_file(lambda file: file.rotate(id_), id_)
        self._note_change("rotated", key, asked)
        await self._send(asked, 200, key, text)
