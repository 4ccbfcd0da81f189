"""Which server a command is about: that of a file of settings, or of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from polymux.server.settings.settings import ServerSettings


def settings_of(options: argparse.Namespace) -> ServerSettings:
    """The settings that ``--config`` and ``--store`` name."""
    from dataclasses import replace
    from pathlib import Path

    from polymux.server.settings.settings import ServerSettings, StoreSettings, read_settings

    if options.config is None and options.store is not None:
        return ServerSettings(store=StoreSettings(Path(options.store)))
    settings = ServerSettings() if options.config is None else read_settings(Path(options.config))
    if options.store is not None:
        store = replace(settings.store, folder=Path(options.store))
        settings = replace(settings, store=store)
    return settings
