"""The parts of JSON parsing that are not native: numbers beyond 64 bits, and error messages."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from polymux._util.redaction import redact
from polymux._util.text import printable, shortened
from polymux.errors import DecodeError

DEEPEST = 200
_SHOWN_BYTES = 60
_LOOKED_AT_BYTES = 4096


def parse_unusual(body: bytes, _: str = "") -> Any:
    """Parse JSON with integers of any size; numbers too large for a float become infinite.

    Raises:
        DecodeError: It is not valid JSON.
    """
    try:
        text = body.removeprefix(b"\xef\xbb\xbf").decode()
        value = json.loads(text, parse_constant=_refuse_constant)
        # Lone surrogates, which the native parser rejects.
        json.dumps(value, ensure_ascii=False).encode()
        _check_depth(value, DEEPEST)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise refusal(body, f"invalid JSON at byte {offset}: {error.msg}") from None
    except RecursionError:
        raise refusal(body, f"nested too deeply (allowed {DEEPEST} levels)") from None
    except ValueError as error:  # also UnicodeError, and integers with thousands of digits
        raise refusal(body, str(error)) from None
    return value


def _check_depth(value: object, levels: int) -> None:
    if isinstance(value, (dict, list)):
        if levels == 0:
            raise RecursionError
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, levels - 1)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a valid JSON number")


def finite(value: object) -> float | None:
    """Convert a received number; None if it is not a number or too large for a float.

    Example:
        >>> finite(3), finite(0.5), finite(True), finite("3"), finite(10**400)
        (3.0, 0.5, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def mended(body: bytes) -> bytes | None:
    """Return the body with U+FFFD for each lone surrogate; None without any.

    Lone surrogates occur if a server cuts a text within a character.
    """
    import re

    escapes = rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)"
    whole, _ = re.subn(
        escapes, lambda found: rb"\ufffd" if found[1] else found[0], body, flags=re.DOTALL
    )
    return None if whole == body else whole


def refusal(body: bytes, reason: str) -> DecodeError:
    """Return the exception for a body that is not JSON, with the start of the body."""
    if not body:
        return DecodeError("the response is not JSON: it is empty")
    # Redact before cutting: a part of a key would not be recognized.
    start = redact(body[:_LOOKED_AT_BYTES].decode("utf-8", "backslashreplace"))
    start, more = printable(start[:_SHOWN_BYTES]), "..." if len(body) > _SHOWN_BYTES else ""
    return DecodeError(
        f"the response is not JSON: {reason} ({len(body)} bytes, starting with "
        f"{shortened(start)}{more})"
    )
