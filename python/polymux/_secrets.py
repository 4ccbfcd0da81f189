"""Keys that this process uses: no text of an error or result shows one, whoever repeats it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Shorter ones could not be told from words.
_SHORTEST = 4
_MOST = 1000
_KNOWN: dict[str, None] = {}


def keep_secret(*secrets: str | None) -> None:
    """Hides these from now on. Of very many the oldest are forgotten."""
    for secret in secrets:
        if secret is not None and len(secret) >= _SHORTEST:
            _KNOWN.pop(secret, None)
            _KNOWN[secret] = None
    if len(_KNOWN) > _MOST:
        for oldest in list(_KNOWN)[:-_MOST]:  # Other threads may do the same.
            _KNOWN.pop(oldest, None)


def hidden(text: str) -> str:
    """The text with ``***`` in the place of each key."""
    # The longest first: one may be how another begins, whose rest would stay.
    for secret in sorted(_KNOWN, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, "***")
    return text


def hidden_in(value: Any) -> Any:
    """The same for all texts of a JSON value, names included; a new value."""
    if isinstance(value, str):
        return hidden(value)
    if isinstance(value, dict):
        return {hidden(str(name)): hidden_in(one) for name, one in value.items()}
    if isinstance(value, list):
        return [hidden_in(one) for one in value]
    return value
