"""What the native JSON parser leaves to Python: numbers beyond 64 bits, and words for refusals."""

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
    """The document with integers of any size; numbers too large for a float become infinite.

    Raises:
        DecodeError: It is not valid JSON after all.
    """
    try:
        text = body.decode("utf-8-sig")
        value = json.loads(text, parse_constant=_refuse_constant)
        # Half a surrogate pair, which the native parser refuses.
        json.dumps(value, ensure_ascii=False).encode()
        _check_depth(value, DEEPEST)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise refusal(body, f"it is not valid JSON at byte {offset}: {error.msg}") from None
    except RecursionError:
        raise refusal(body, f"it is nested deeper than {DEEPEST} levels") from None
    except ValueError as error:  # UnicodeError and integers of thousands of digits, too
        raise refusal(body, str(error)) from None
    return value


def _check_depth(value: object, levels: int) -> None:
    if isinstance(value, (dict, list)):
        if levels == 0:
            raise RecursionError
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, levels - 1)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def finite(value: object) -> float | None:
    """A number that somebody has sent; None for what is none, and for one that no float holds.

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
    """The body with U+FFFD for each half of a surrogate pair; None where there is none.

    A server that cuts a text at its limit may cut a character in two.
    """
    import re

    escapes = rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)"
    whole, _ = re.subn(
        escapes, lambda found: rb"\ufffd" if found[1] else found[0], body, flags=re.DOTALL
    )
    return None if whole == body else whole


def refusal(body: bytes, reason: str) -> DecodeError:
    """The exception for a body that is no JSON; it shows how the body begins."""
    if not body:
        return DecodeError("the answer is not JSON: it is empty")
    # Keys are hidden before it is cut: in two, one would not be known for what it is.
    start = redact(body[:_LOOKED_AT_BYTES].decode("utf-8", "backslashreplace"))
    start, more = printable(start[:_SHOWN_BYTES]), "..." if len(body) > _SHOWN_BYTES else ""
    return DecodeError(
        f"the answer is not JSON: {reason}; it has {len(body)} bytes and begins with "
        f"{shortened(start)}{more}"
    )
