"""Which engines there are, by the names that a child process is started with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polymux.engines.base import Engine

#: Family to the class of its engine: module and name.
FAMILIES = {
    "media": ("polymux.engines.media.engine", "MediaEngine"),
    "chat": ("polymux.engines.chat.engine", "ChatEngine"),
    "speech": ("polymux.engines.speech.engine", "SpeechEngine"),
    "rapidocr": ("polymux.engines.ocr.rapidocr", "RapidOcrEngine"),
    "tesseract": ("polymux.engines.ocr.tesseract", "TesseractEngine"),
    "diffusion": ("polymux.engines.diffusion.engine", "DiffusionEngine"),
    "upscale": ("polymux.engines.upscale", "UpscaleEngine"),
}


def engine_of(family: str) -> Engine:
    """A new engine, nothing loaded. ``MODULE:CLASS`` names one that is not in the table.

    Raises:
        KeyError: There is no such family.
        ImportError: Its module is not there.
    """
    module, _, name = family.partition(":")
    if not name:
        module, name = FAMILIES[family]
    engine: Engine = getattr(import_module(module), name)()
    return engine
