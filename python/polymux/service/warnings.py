"""The ``polymux-warnings`` header field, for responses without logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux._util.text import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence


_MAX_WARNINGS = 20


def warnings_fields(lines: Sequence[str]) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header field with the warnings of a response without ``logs``.

    The value is a list of strings (RFC 9651, 3.1): the first 20 and the number of further ones.

    Example:
        >>> from polymux.service.warnings import warnings_fields
        >>> warnings_fields(["top_k: is not known here", "seed: is 1"])
        ((b'polymux-warnings', b'"top_k: is not known here", "seed: is 1"'),)
        >>> warnings_fields([])
        ()
    """
    if not lines:
        return ()
    warnings = [shortened(printable(one)) for one in lines[:_MAX_WARNINGS]]
    if len(lines) > _MAX_WARNINGS:
        warnings.append(f"and {len(lines) - _MAX_WARNINGS} more")
    plain = (one.encode("ascii", "backslashreplace").decode() for one in warnings)
    quoted = (one.replace("\\", "\\\\").replace('"', '\\"') for one in plain)
    return ((b"polymux-warnings", ", ".join(f'"{one}"' for one in quoted).encode()),)
