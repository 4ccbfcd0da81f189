"""The native core module. Private: use the functions of `polymux`."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, final

from _typeshed import ReadableBuffer

__version__: str

def describe(operation: str | None = None) -> str:
    """The contract as JSON text: all operations, or the one named."""

def read_json(
    operation: str, model: str | None, body: ReadableBuffer, server: bool, longest_bytes: int
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Parses and checks a JSON body: (variant, model, values, warnings)."""

def read_form(
    operation: str, model: str | None, fields: Sequence[tuple[str, Any]], server: bool
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Checks a form of (name, text or file object): (variant, model, values, warnings)."""

from collections.abc import AsyncIterator, Callable, Sequence
