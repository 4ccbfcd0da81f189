"""Which doors a server has beside the interface."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """Addresses in the shapes of others' interfaces.

    Attributes:
        openai: Whether there is ``/v1``, in OpenAI's shape. Default: where nobody but this machine
            is meant.
        mcp: Whether there is ``/mcp``, the Model Context Protocol. Default: as `openai`.
        replicate: Whether there is ``/replicate/v1``, in Replicate's shape. Default: as `openai`.
    """

    openai: bool | None = None
    mcp: bool | None = None
    replicate: bool | None = None
