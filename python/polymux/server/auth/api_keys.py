"""API keys of a server: shown once, stored as hashes, with scopes and quotas.

A key is ``pmx_`` and 43 letters, digits, ``-`` and ``_``: 256 random bits. So a plain SHA-256 is
enough: slow hashes are for passwords chosen by people.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import secrets
import stat
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native import core
from polymux._util.atomic_file import remove_private_drafts, write_private
from polymux._util.redaction import register_secret
from polymux._util.text import display_name, shown
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

_log = logging.getLogger("polymux.server")
_PREFIX = "pmx_"
_KEY_BYTES = 32
_ID_BYTES = 4
_LARGEST_FILE_BYTES = 4 << 20
_VERSION = 1
#: Maximum of requests, concurrency, seconds and days: far more than anybody needs.
LARGEST_QUOTA = 1_000_000


def known_scopes() -> tuple[str, ...]:
    """Return all scopes of API keys: every operation, and the other endpoints.

    Example:
        >>> from polymux.server.auth.api_keys import known_scopes
        >>> "transcribe" in known_scopes() and "administration" in known_scopes()
        True
    """

    beside = ("administration", "docs", "metrics", "openapi", "predictions", "songs")
    return (*(one.name for one in contract.operations()), *beside)


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its text.

    Attributes:
        id: 8 hexadecimal digits, for people and logs.
        name: For people.
        sha256: Hash of the key, 64 hexadecimal digits.
        created_at: Seconds since 1970.
        scopes: Allowed scopes, such as ``"transcribe"``, ``"metrics"``, and ``"administration"``;
            None for all.
        requests_per_minute: None for no limit.
        concurrent: Maximum number of concurrent requests; None for no limit.
        max_estimate_s: Maximum estimated time of work; None for the server's limit of generations.
        expires_at: Seconds since 1970; None for never.
    """

    id: str
    name: str
    sha256: str
    created_at: float
    scopes: tuple[str, ...] | None = None
    requests_per_minute: float | None = None
    concurrent: int | None = None
    max_estimate_s: float | None = None
    expires_at: float | None = None

    def allows(self, scope: str) -> bool:
        return self.scopes is None or scope in self.scopes


def new_key(name: str, **limits: Any) -> tuple[str, Key]:
    """Create a key; returns its text and the record to store."""
    text = _PREFIX + secrets.token_urlsafe(_KEY_BYTES)
    register_secret(text)
    return text, Key(secrets.token_hex(_ID_BYTES), name, hashed(text), time.time(), **limits)


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class KeyFile:
    """The file of a server's API keys, of mode 0600; read again after changes.

    Args:
        path: The file; a missing file contains no keys.

    Attributes:
        table: The keys as `keys` read them last.
        on_change: Called after `table` has changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int, int] | None = None
        self._keys: tuple[Key, ...] = ()
        self.table = self._table_of(())
        self.on_change: Callable[[], object] = lambda: None

    def keys(self) -> tuple[Key, ...]:
        """Return all keys, oldest first.

        Raises:
            InvalidRequestError: The file cannot be read or is invalid.
        """
        try:
            status = self.path.stat()
        except FileNotFoundError:
            if self._seen is not None or self._keys:
                self._seen = None
                self._keep(())
            return ()
        except OSError as error:
            raise self._wrong(f"cannot be read: {error.strerror}") from error
        seen = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
        if seen != self._seen:
            self._check_mode(status.st_mode)
            found = self._read()
            self._seen = seen
            self._keep(found)
        return self._keys

    def _check_mode(self, mode: int) -> None:
        """Reject a file that others can write, and warn of one that they can read."""
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise self._wrong(
                f"other users can write to it (mode {mode & 0o777:o}), so they could add keys. Run "
                "chmod 600 on it, and check its keys with `polymux keys list`"
            )
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            _log.warning(
                "API key file %s: other users can read the names and hashes of its keys (mode %o). "
                "Run chmod 600 on it",
                display_name(os.fspath(self.path)), mode & 0o777,
            )  # fmt: skip

    def _keep(self, keys: tuple[Key, ...]) -> None:
        self._keys, self.table = keys, self._table_of(keys)
        self.on_change()

    def _table_of(self, keys: Sequence[Key]) -> core.KeyTable:
        values = [(bytes.fromhex(one.sha256), one.scopes, one.expires_at) for one in keys]
        return core.KeyTable(os.fspath(self.path), self._seen, values)

    def _read(self) -> tuple[Key, ...]:
        try:
            with self.path.open("rb") as file:
                text = file.read(_LARGEST_FILE_BYTES + 1)
            plain = json.loads(text)
            if plain["version"] != _VERSION:
                raise self._wrong(
                    f"unsupported version (got {shown(plain['version'])}, allowed {_VERSION}). Use "
                    "the version of polymux that wrote the file"
                )
            return tuple(_key(one) for one in plain["keys"])
        except OSError as error:
            raise self._wrong(f"cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidRequestError):
                raise
            # The error's text might repeat the content.
            raise self._wrong(
                "invalid content. Restore a backup, or move the file away and create new keys with "
                "`polymux keys add NAME`"
            ) from None

    def _wrong(self, words: str) -> InvalidRequestError:
        return InvalidRequestError(f"API key file {display_name(os.fspath(self.path))}: {words}")

    def find(self, text: bytes, now: float) -> Key | None:
        """Return the key with this text; None if unknown or expired.

        Takes constant time for wrong and right keys, whatever they have in common.
        """
        found = self.table.find(text, now)
        return None if found is None else self._keys[found]

    def write(self, keys: Iterable[Key]) -> None:
        """Replace the file atomically.

        Raises:
            InvalidRequestError: The file cannot be written.
        """
        plain = {"version": _VERSION, "keys": [asdict(one) for one in keys]}
        text = json.dumps(plain, indent=1)
        if len(text) > _LARGEST_FILE_BYTES:  # ASCII only. A larger file could not be read.
            raise self._wrong(
                f"too many keys (got {len(text)} bytes, allowed {_LARGEST_FILE_BYTES}). Remove "
                "unused keys"
            )
        try:
            write_private(self.path, text)
        except OSError as error:
            raise self._wrong(f"cannot be written: {error.strerror}") from error

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Lock the file: a concurrent change could restore a removed key."""
        path = self.path.with_name(f"{self.path.name}.lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(path, flags, 0o600)
        except OSError as error:
            raise self._wrong(f"cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            remove_private_drafts(self.path)
            self._seen = None
            yield
        finally:
            os.close(lock)

    def add(
        self, name: str, *, before: Callable[[str], object] | None = None, **limits: Any
    ) -> tuple[str, Key]:
        """Create a key and store its record; the text is returned only here.

        Args:
            name: Name for people.
            before: Called with the text before the key is valid: a crash in between must not leave
                a valid key whose text is lost. Default: none.
            limits: As for `new_key`.
        """
        text, key = new_key(name, **limits)
        with self._changing():
            if before is not None:
                before(text)
            self.write((*self.keys(), key))
        return text, key

    def named(self, name: str) -> Key:
        """Return the key with this id, else the key with this name."""
        keys = self.keys()
        found = [one for one in keys if one.id == name] or [one for one in keys if one.name == name]
        if not found:
            raise InvalidRequestError(
                f"unknown API key {shown(name)}. `polymux keys list` shows all keys"
            )
        if len(found) > 1:
            raise InvalidRequestError(
                f"API key {shown(name)}: ambiguous, because {len(found)} keys have this name. Use "
                "the ID that `polymux keys list` shows"
            )
        return found[0]

    def change(self, name: str, /, **values: Any) -> Key:
        """Update attributes of a key; its text stays valid.

        Args:
            name: Id or name of the key.
            values: Attributes of `Key`, such as ``concurrent``.

        Raises:
            InvalidRequestError: The key is unknown, or the file cannot be written.
        """
        with self._changing():
            new = replace(self.named(name), **values)
            self.write(new if one.id == new.id else one for one in self.keys())
        return new

    def remove(self, name: str) -> Key:
        """Remove a key, which revokes it."""
        with self._changing():
            gone = self.named(name)
            self.write(one for one in self.keys() if one.id != gone.id)
        return gone

    def rotate(self, name: str) -> tuple[str, Key]:
        """Replace a key by a new one, and revoke the old one.

        The id stays the same, so the results of the old key's jobs stay accessible.
        """
        text, made = new_key(name)
        return text, self.change(name, sha256=made.sha256, created_at=made.created_at)


def _key(plain: dict[str, Any]) -> Key:
    if "longest_estimate_s" in plain:  # Written by polymux 0.1.
        plain["max_estimate_s"] = plain.pop("longest_estimate_s")
    scopes = plain.get("scopes")
    made = Key(**{**plain, "scopes": None if scopes is None else tuple(scopes)})
    if len(bytes.fromhex(made.sha256)) != hashlib.sha256().digest_size:
        raise ValueError("invalid hash")
    return made
