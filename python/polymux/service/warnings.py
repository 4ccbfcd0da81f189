"""The header field by which responses without logs report warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux._util.text import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence


_MAX_WARNINGS = 20


def warnings_fields(lines: Sequence[str]) -> tuple[tuple[bytes, bytes], ...]:
    """The field by which an answer that has no ``logs`` tells what was left out or changed.

    A list of strings (RFC 9651, 3.1); of many the first 20, and how many more there were.

    Example:
        >>> from polymux.service.warnings import warnings_fields
        >>> warnings_fields(["top_k: is not known here", "seed: is 1"])
        ((b'polymux-warnings', b'"top_k: is not known here", "seed: is 1"'),)
        >>> warnings_fields([])
        ()
    """
    if not lines:
        return ()
    told = [shortened(printable(one)) for one in lines[:_MAX_WARNINGS]]
    if len(lines) > _MAX_WARNINGS:
        told.append(f"and {len(lines) - _MAX_WARNINGS} more")
    plain = (one.encode("ascii", "backslashreplace").decode() for one in told)
    quoted = (one.replace("\\", "\\\\").replace('"', '\\"') for one in plain)
    return ((b"polymux-warnings", ", ".join(f'"{one}"' for one in quoted).encode()),)
