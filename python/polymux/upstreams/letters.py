"""Texts of JSON that hold halves of letters, as servers write them that think in UTF-16."""

from __future__ import annotations

import re

#: All escapes, one after the other: a backslash that is escaped begins no other; a pair is one.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_REPLACEMENT = rb"\ufffd"


def whole_letters(data: bytes) -> bytes:
    r"""JSON with a replacement character for each half of a surrogate pair, as streams have it.

    Args:
        data: JSON; anything else comes back much as it is.

    Example:
        >>> from polymux.upstreams.letters import whole_letters
        >>> whole_letters(rb'["\ud83d", "\ud83d\ude00", "\\ud83d"]')
        b'["\\ufffd", "\\ud83d\\ude00", "\\\\ud83d"]'
    """
    return _ESCAPE.sub(lambda found: found[0] if found[1] is None else _REPLACEMENT, data)
