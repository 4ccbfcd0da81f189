"""Signed URLs of files that expire: HMAC (RFC 2104, SHA-256) over path and expiry.

Two secrets are valid at a time, so rotation does not break existing links.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from polymux._util.atomic_file import remove_private_drafts, write_private
from polymux._util.redaction import register_secret
from polymux._util.text import display_name
from polymux.service.clock import LARGEST_STEP_S
from polymux.service.temporary_files import reported

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SECRET_BYTES = 32
_MAX_DIGITS = 12


class UrlSigner:
    """The two secrets of a store, in a file of mode 0600.

    Args:
        path: The file; created if missing.
        period_s: Age at which a new secret replaces the first one. Links live at most half of it,
            so each outlives a rotation. Default: 14 days.
        clock: Returns seconds since 1970.
    """

    def __init__(
        self,
        path: Path,
        *,
        period_s: float = 14 * 86400,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._period_s = period_s
        self._clock = clock
        remove_private_drafts(path)
        self._made_at, self._secrets = self._read()
        self.rotate()

    @property
    def max_lifetime_s(self) -> float:
        return self._period_s / 2

    def _read(self) -> tuple[float, list[bytes]]:
        try:
            lines = self._path.read_text("ascii").split()
            made_at, found = float(lines[0]), [bytes.fromhex(one) for one in lines[1:3]]
        except (FileNotFoundError, ValueError, IndexError):
            return 0.0, []
        whole = all(len(one) == _SECRET_BYTES for one in found)
        return (made_at, found) if found and whole else (0.0, [])

    def rotate(self, *, now: bool = False) -> None:
        """Add a new secret before the old one if the old one is due.

        Args:
            now: Ignore the age of the secret. Default: False.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: The file cannot be written; the old secrets stay valid.
        """
        moment = self._clock()
        if not self._secrets or now or moment - self._made_at >= self._period_s:
            self._keep(moment, [secrets.token_bytes(_SECRET_BYTES), *self._secrets[:1]])
        elif self._made_at - moment > LARGEST_STEP_S:
            # The clock was set back: without this, the secret would be used for too long.
            self._keep(moment, self._secrets)

    def _keep(self, made_at: float, found: list[bytes]) -> None:
        lines = [f"{made_at:.0f}", *(one.hex() for one in found)]
        name = display_name(self._path.as_posix())
        with reported(f"cannot store the secrets of signed links in {name}"):
            write_private(self._path, "".join(f"{one}\n" for one in lines))
        # Only after writing: links signed with an unsaved secret would break at a restart.
        self._made_at, self._secrets = made_at, found
        register_secret(*(one.hex() for one in self._secrets))

    def query(self, path: str, expires_at: float) -> str:
        """Return the query string of a signed link to `path`."""
        end = int(expires_at)
        return urlencode({"exp": end, "sig": _signature(self._secrets[0], path, end)})

    def accepts(self, path: str, expires: str, signature: str) -> bool:
        """Check the signature and expiry of a link."""
        if not expires.isascii() or not expires.isdigit() or len(expires) > _MAX_DIGITS:
            return False
        given = signature.encode("utf-8", "replace")
        # Compare with all secrets: the time must not reveal which one matched.
        known = [_signature(one, path, int(expires)).encode() for one in self._secrets]
        matches = [hmac.compare_digest(given, one) for one in known]
        return any(matches) and int(expires) > self._clock()


def _signature(secret: bytes, path: str, expires_at: int) -> str:
    text = f"{expires_at}\n{path}".encode()
    digest = hmac.new(secret, text, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
