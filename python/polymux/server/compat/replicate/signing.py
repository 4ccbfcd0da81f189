"""Signatures of webhooks (`contracts.md` A.4): HMAC of RFC 2104 with SHA-256."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import time
from typing import TYPE_CHECKING

from polymux._util.atomic_file import remove_private_drafts, write_private
from polymux._util.redaction import keep_secret
from polymux._util.text import display_name
from polymux.service.temporary_files import reported

if TYPE_CHECKING:
    from pathlib import Path

_SECRET_BYTES = 32
_PREFIX = "whsec_"


class SigningSecret:
    """A server's secret, in a file of mode 0600; each key has one of its own, made from it.

    Args:
        path: The file; made where there is none.
    """

    def __init__(self, path: Path) -> None:
        """Nothing is read."""
        self._path = path
        self._lock = threading.Lock()
        self._secret: bytes | None = None

    def of(self, owner: str) -> str:
        """The secret of a key, as ``whsec_`` and base64. Blocks: on any thread.

        Args:
            owner: The key's id.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: The file cannot be written.
        """
        with self._lock:
            if self._secret is None:
                self._secret = self._read() or self._made()
                keep_secret(self._secret.hex())
        own = hmac.new(self._secret, f"webhooks of {owner}".encode(), hashlib.sha256).digest()
        return _PREFIX + base64.b64encode(own).decode()

    def _read(self) -> bytes | None:
        try:
            found = bytes.fromhex(self._path.read_text("ascii").strip())
        except (FileNotFoundError, ValueError):
            return None
        return found if len(found) == _SECRET_BYTES else None

    def _made(self) -> bytes:
        made = secrets.token_bytes(_SECRET_BYTES)
        name = display_name(self._path.as_posix())
        with reported(f"the secret of webhooks cannot be kept in {name}"):
            remove_private_drafts(self._path)
            write_private(self._path, f"{made.hex()}\n")
        return made


def new_message_id() -> str:
    """A name for a message, the same for all tries to deliver it."""
    return f"msg_{secrets.token_hex(12)}"


def signed(secret: str, message: str, body: bytes, now: float | None = None) -> list[str]:
    """The header lines of a message.

    Args:
        secret: As `SigningSecret.of` gives it.
        message: The message's name.
        body: Its bytes.
        now: Seconds since 1970. Default: the time.

    Example:
        >>> signed("whsec_c2VjcmV0", "msg_1", b"{}", 1700000000)[2]
        'webhook-signature: v1,A5oIrJxXPB/PkULSoVu0e4khvPiqpF9vljmhkSKg0FI='
    """
    moment = str(int(time.time() if now is None else now))
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    digest = hmac.new(key, f"{message}.{moment}.".encode() + body, hashlib.sha256).digest()
    return [
        f"webhook-id: {message}",
        f"webhook-timestamp: {moment}",
        f"webhook-signature: v1,{base64.b64encode(digest).decode()}",
    ]
