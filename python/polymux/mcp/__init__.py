"""The operations as tools of the Model Context Protocol (MCP).

``polymux mcp`` serves them over standard input and output, ``polymux serve`` at ``/mcp``. The
official SDK, from the extra ``mcp``, implements the protocol; it is imported only when needed.
"""

from __future__ import annotations

__all__ = ["REMEDY", "is_installed"]

#: The command that installs the SDK.
REMEDY = "pip install 'polymux[mcp]'"


def is_installed() -> bool:
    """Check whether the SDK is installed, without importing it."""
    from importlib.util import find_spec

    return find_spec("mcp") is not None
