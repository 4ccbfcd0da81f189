"""Redaction of secrets in errors, log lines and results."""

from __future__ import annotations

import re

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from typing import Any

#: Shorter secrets would hide ordinary text.
_MIN_SECRET_CHARACTERS = 4
_MAX_SECRETS = 1000
#: The beginning of API keys of polymux servers, see `polymux.server.auth.api_keys`.
_KEY_PREFIX = "pmx_"
_KEY = re.compile(rf"{_KEY_PREFIX}[A-Za-z0-9_-]{{8,}}")
#: In the order of their registration.
_SECRETS: dict[str, None] = {}


def register_secret(*secrets: str | None) -> None:
    """Redact these secrets from now on. Only the newest 1,000 secrets are kept."""
    for secret in secrets:
        if secret is not None and len(secret) >= _MIN_SECRET_CHARACTERS:
            _SECRETS.pop(secret, None)
            _SECRETS[secret] = None
    for oldest in list(_SECRETS)[:-_MAX_SECRETS]:
        _SECRETS.pop(oldest, None)


def redact(text: str) -> str:
    """Replace each registered secret, and each API key of a polymux server, with ``***``.

    Call it before you shorten or escape a text: a part of a secret is not recognized.
    """
    found = [secret for secret in list(_SECRETS) if secret in text]
    # Longest first: a secret can contain another one.
    for secret in sorted(found, key=len, reverse=True):
        text = text.replace(secret, "***")
    if _KEY_PREFIX in text:
        # An unknown key, for example in the path of a request.
        text = _KEY.sub(f"{_KEY_PREFIX}***", text)
    return text


def redact_json(value: Any) -> Any:
    """Return a copy of a JSON value with the secrets replaced in all texts and member names."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(str(name)): redact_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [redact_json(one) for one in value]
    return value
