"""Counts the bytes that a server reads, for uvicorn protocols of peers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def count_bytes(protocol: Any, path: Path) -> None:
    """Record for each connection the bytes read before its answer began and after that."""
    data_received, connection_lost = protocol.data_received, protocol.connection_lost
    read: dict[Any, list[int]] = {}

    def counted(self: Any, data: bytes) -> None:
        answered = self.cycle is not None and self.cycle.response_started
        read.setdefault(self, [0, 0])[answered] += len(data)
        data_received(self, data)

    def lost(self: Any, exc: Exception | None) -> None:
        with path.open("a") as file:
            file.write(json.dumps(read.pop(self, [0, 0])) + "\n")
        connection_lost(self, exc)

    protocol.data_received, protocol.connection_lost = counted, lost
