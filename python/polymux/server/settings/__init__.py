"""Settings of the server."""

from polymux.runtime.settings import EngineSettings

__all__ = ["EngineSettings"]  # Its location in 0.1.
