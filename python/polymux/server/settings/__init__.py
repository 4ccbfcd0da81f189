"""Settings of the server: every class that a table of the settings file is read into."""

from polymux.runtime.settings import (
    DownloadSettings,
    EngineSettings,
    FetchPolicy,
    Limits,
    RaySettings,
    Route,
    SongRecognitionSettings,
    SongSearchSettings,
    SongSettings,
    StoreSettings,
    SummaryOptions,
    UpstreamSettings,
)
from polymux.server.settings.settings import CompatSettings, ServerSettings, read_settings

__all__ = [
    "CompatSettings",
    "DownloadSettings",
    "EngineSettings",
    "FetchPolicy",
    "Limits",
    "RaySettings",
    "Route",
    "ServerSettings",
    "SongRecognitionSettings",
    "SongSearchSettings",
    "SongSettings",
    "StoreSettings",
    "SummaryOptions",
    "UpstreamSettings",
    "read_settings",
]
