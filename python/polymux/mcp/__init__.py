"""The operations as tools of the Model Context Protocol (MCP).

``polymux mcp`` serves them over standard input and output, ``polymux serve`` at ``/mcp``. The
protocol is that of the official SDK, which the extra ``mcp`` brings; nothing here loads it before
somebody asks.
"""

from __future__ import annotations

__all__ = ["REMEDY", "is_installed"]

#: How to get the SDK.
REMEDY = "pip install 'polymux[mcp]'"


def is_installed() -> bool:
    """Whether the SDK is there; it is not loaded."""
    from importlib.util import find_spec

    return find_spec("mcp") is not None
