"""Settings of the server."""

from polymux.runtime.settings import EngineSettings

__all__ = ["EngineSettings"]  # Where 0.1 had it.
