"""Packages that take seconds to import. They are imported at first use.

Each test process collects all tests, including those that it never runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["diffusers", "mcp", "mcp_types", "openai", "safetensors", "torch", "transformers"]


class _Lazy:
    """Forwards attributes to the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):
            raise AttributeError(name)  # pytest checks every name for fixtures and marks.
        return getattr(import_module(self._name), name)


if TYPE_CHECKING:
    import diffusers
    import mcp
    import mcp_types
    import openai
    import safetensors.torch as safetensors
    import torch
    import transformers
else:
    diffusers, mcp, mcp_types, openai, safetensors, torch, transformers = map(
        _Lazy,
        ("diffusers", "mcp", "mcp_types", "openai", "safetensors.torch", "torch", "transformers"),
    )
