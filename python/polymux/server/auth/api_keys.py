"""Keys of a server: shown once, kept as hashes, each with what it may do.

A key is ``pmx_`` and 43 letters, digits, ``-`` and ``_``: 256 random bits. So a plain SHA-256 keeps
it: a slow hash is for what people think of.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._util.atomic_file import remove_private_drafts, write_private
from polymux._util.redaction import register_secret
from polymux._util.text import display_name, shown
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_PREFIX = "pmx_"
_KEY_BYTES = 32
_ID_BYTES = 4
_LARGEST_FILE_BYTES = 4 << 20
_VERSION = 1
#: Of requests, places, seconds and days alike: far more than anybody means.
LARGEST_QUOTA = 1_000_000


def known_scopes() -> tuple[str, ...]:
    """What a key can be made for: every operation, and the addresses beside them.

    Example:
        >>> from polymux.server.auth.api_keys import known_scopes
        >>> "transcribe" in known_scopes() and "administration" in known_scopes()
        True
    """

    beside = ("administration", "docs", "metrics", "openapi", "operations", "predictions")
    return (*(one.name for one in contract.operations()), *beside)


@dataclass(frozen=True, slots=True)
class Key:
    """A key, without the key itself.

    Attributes:
        id: 8 hexadecimal digits, for people and logs.
        name: What people call it.
        sha256: Of the key, 64 hexadecimal digits.
        created_at: Seconds since 1970.
        scopes: Operations that it may use, such as ``"transcribe"``, ``"metrics"``, and
            ``"administration"``; None for all.
        requests_per_minute: None for no limit.
        concurrent: How many requests at once; None for no limit.
        max_estimate_s: Work that is thought to take longer is refused; None for no limit but
            that of the server for generations.
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
    """A key nobody has seen: itself, and what is kept of it."""
    text = _PREFIX + secrets.token_urlsafe(_KEY_BYTES)
    register_secret(text)
    return text, Key(secrets.token_hex(_ID_BYTES), name, hashed(text), time.time(), **limits)


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class KeyFile:
    """The file that a server's keys are in, of mode 0600; read again when it has changed.

    Args:
        path: The file; where there is none, there are no keys.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._keys: tuple[Key, ...] = ()
        self._digests: tuple[bytes, ...] = ()

    def keys(self) -> tuple[Key, ...]:
        """All keys, oldest first.

        Raises:
            InvalidRequestError: The file cannot be read, or is none of keys.
        """
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._keep(())
            self._seen = None
            return ()
        except OSError as error:
            raise self._wrong(str(error.strerror)) from error
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen != self._seen:
            self._keep(self._read())
            self._seen = seen
        return self._keys

    def _keep(self, keys: tuple[Key, ...]) -> None:
        self._keys = keys
        self._digests = tuple(bytes.fromhex(one.sha256) for one in keys)

    def _read(self) -> tuple[Key, ...]:
        try:
            with self.path.open("rb") as file:
                text = file.read(_LARGEST_FILE_BYTES + 1)
            plain = json.loads(text)
            if plain["version"] != _VERSION:
                raise self._wrong(f"is of version {plain['version']}")
            return tuple(_key(one) for one in plain["keys"])
        except OSError as error:
            raise self._wrong(str(error.strerror)) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidRequestError):
                raise
            # Its words might repeat what stands there.
            raise self._wrong("is no file of keys") from None

    def _wrong(self, words: str) -> InvalidRequestError:
        return InvalidRequestError(f"the key file {display_name(os.fspath(self.path))}: {words}")

    def find(self, text: bytes, now: float) -> Key | None:
        """The key that this text is; None where it is none, or one whose time is over.

        It takes as long for a wrong one as for a right one, whatever they share.
        """
        digest = hashlib.sha256(text).digest()
        found = None
        for key, known in zip(self._keys, self._digests, strict=True):
            if hmac.compare_digest(digest, known):
                found = key
        if found is None or (found.expires_at is not None and found.expires_at <= now):
            return None
        return found

    def write(self, keys: Iterable[Key]) -> None:
        """Puts these in the file; a reader finds the old ones or the new ones, and nothing between.

        Raises:
            InvalidRequestError: It cannot be written.
        """
        plain = {"version": _VERSION, "keys": [asdict(one) for one in keys]}
        text = json.dumps(plain, indent=1)
        if len(text) > _LARGEST_FILE_BYTES:  # Of ASCII alone. A larger one would not be read.
            raise self._wrong("holds as many keys as it can: take some away first")
        try:
            write_private(self.path, text)
        except OSError as error:
            raise self._wrong(f"cannot be written: {error.strerror}") from error

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Keeps others from changing the file meanwhile: a key taken away would come back."""
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
        """Makes a key and keeps what is to be kept of it; the text is told this once.

        Args:
            name: What people call it.
            before: Called with the text before the key opens anything, so that no process that
                ends in between leaves a key that nobody has. Default: none.
            limits: As `new_key` has them.
        """
        text, key = new_key(name, **limits)
        with self._changing():
            if before is not None:
                before(text)
            self.write((*self.keys(), key))
        return text, key

    def named(self, name: str) -> Key:
        """The key of that id; else the one of that name."""
        keys = self.keys()
        found = [one for one in keys if one.id == name] or [one for one in keys if one.name == name]
        if len(found) != 1:
            count = "no key" if not found else f"{len(found)} keys"
            raise InvalidRequestError(
                f"{count} of the id or name {shown(name)}: `polymux keys list` shows them"
            )
        return found[0]

    def change(self, name: str, /, **values: Any) -> Key:
        """Gives a key another name, other scopes or quotas, or another end; it stays itself.

        Args:
            name: Its id or name.
            values: Attributes of `Key`, such as ``concurrent``.

        Raises:
            InvalidRequestError: There is no such key; the file cannot be written.
        """
        with self._changing():
            new = replace(self.named(name), **values)
            self.write(new if one.id == new.id else one for one in self.keys())
        return new

    def remove(self, name: str) -> Key:
        """Takes a key away; from then on it opens nothing."""
        with self._changing():
            gone = self.named(name)
            self.write(one for one in self.keys() if one.id != gone.id)
        return gone

    def rotate(self, name: str) -> tuple[str, Key]:
        """Puts a new key in the place of an old one, which ends now.

        It has the old one's id: what that one's jobs have made stays within reach.
        """
        text, made = new_key(name)
        return text, self.change(name, sha256=made.sha256, created_at=made.created_at)


def _key(plain: dict[str, Any]) -> Key:
    if "longest_estimate_s" in plain:  # As polymux 0.1 wrote it.
        plain["max_estimate_s"] = plain.pop("longest_estimate_s")
    scopes = plain.get("scopes")
    made = Key(**{**plain, "scopes": None if scopes is None else tuple(scopes)})
    if len(bytes.fromhex(made.sha256)) != hashlib.sha256().digest_size:
        raise ValueError("no hash")
    return made
