"""What all engines ask of their surroundings: packages, threads, what a model's file is."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.service.errors import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DEFAULT_CONTEXT = 4096


def missing_package(what: str, package: str, extra: str) -> errors.NoBackendError:
    """An engine whose package is not installed."""
    message = f"{what} needs {package}: install it with pip install 'polymux[{extra}]'"
    return refusal(errors.NoBackendError, message)


def threads() -> int:
    """How many threads this process's libraries may use."""
    return int(os.environ.get("POLYMUX_THREADS", "1"))


def hash_of(path: Path) -> str:
    """SHA-256 of a model's file, as predictions tell it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def context_tokens(options: Mapping[str, Any]) -> int:
    """How much a chat engine's model reads and writes in one chat.

    Example:
        >>> context_tokens({"context": 1024}), context_tokens({})
        (1024, 4096)
    """
    return int(options.get("context", _DEFAULT_CONTEXT))
