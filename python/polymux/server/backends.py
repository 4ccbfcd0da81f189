"""The engines that a server begins with: those that its settings name, else what is installed."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.engines.prepared import reading, refuse_addresses, speech, upscaling
from polymux.engines.supervisor import EngineBackend, Supervision
from polymux.server.settings import EngineSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.server.settings import ServerSettings
    from polymux.service.backend import Backend
    from polymux.service.work import Work


class MediaBackend(EngineBackend):
    """The media engine: of an address it would have to fetch the file first."""

    def refuse(self, work: Work) -> None:
        """Addresses are no files."""
        refuse_addresses(work, "file")


#: Family to the operations of its engine.
OPERATIONS = {
    "media": ("convert_to_mp3",),
    "chat": ("chat", "free_chat"),
    "speech": ("transcribe",),
    "rapidocr": ("read_text",),
    "tesseract": ("read_text",),
    "upscale": ("upscale_image",),
}
#: What a process that opens strangers' files may read: libraries, and what they need to start.
_READABLE = (
    "/usr",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/proc",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/sys/devices/system/cpu",
)
_MEDIA_ADDRESS_SPACE_BYTES = 8 << 30


def backends_of(settings: ServerSettings, media: Backend | None = None) -> list[Backend]:
    """The backends of a server, none of them loaded.

    Args:
        settings: The server's.
        media: What opens files for the others. Default: a confined process, for strangers' files.
    """
    engines = settings.engines
    if engines is None:
        engines = {name: EngineSettings(name) for name in _installed()}
    media = media or _media(engines, settings)
    return [_backend(name, one, settings, media) for name, one in engines.items()]


def _media(engines: Mapping[str, EngineSettings], settings: ServerSettings) -> Backend:
    """The backend that opens strangers' files: the one that is named, else one of its own."""
    for name, one in engines.items():
        if one.family == "media":
            return _engine(name, one, settings)
    return _engine("media", EngineSettings("media"), settings)


def _installed() -> list[str]:
    found = []
    if find_spec("polymux._media") is not None:
        found.append("media")
    # The engines that need no model of the user's: one of them will do.
    if find_spec("rapidocr") is not None:
        found.append("rapidocr")
    elif shutil.which("tesseract") is not None:
        found.append("tesseract")
    return found


def _backend(
    name: str, engine: EngineSettings, settings: ServerSettings, media: Backend
) -> Backend:
    if engine.family == "media":
        return media
    made = _engine(name, engine, settings)
    prepare = {"transcribe": speech, "read_text": reading, "upscale_image": upscaling}
    for operation in OPERATIONS.get(engine.family, ()):
        if operation in prepare:
            return prepare[operation](made, media)
    return made


def _engine(name: str, engine: EngineSettings, settings: ServerSettings) -> EngineBackend:
    options: dict[str, Any] = {"slots": engine.slots, **engine.options}
    confinement = None
    if engine.family == "media":
        limits = settings.limits
        options.setdefault("limits", {"duration_s": limits.duration_s, "streams": 100})
        options.setdefault("most_pixels", limits.pixels)
        confinement = media_confinement(settings)
    supervision = Supervision(threads=engine.threads, idle_s=engine.idle_s, confinement=confinement)
    kind = MediaBackend if engine.family == "media" else EngineBackend
    return kind(
        name,
        engine.family,
        OPERATIONS.get(engine.family, ()),
        options,
        slots=engine.slots,
        supervision=supervision,
    )


def media_confinement(settings: ServerSettings) -> dict[str, Any]:
    """What the process that opens strangers' files may still do: read them, write drafts."""
    package = Path(__file__).parents[1]
    own = {sys.prefix, sys.base_prefix, str(package.parent), *(one for one in sys.path if one)}
    return {
        "readable": [*_READABLE, *sorted(own)],
        "writable": [str(settings.store.folder / "drafts")],
        "network": False,
        "limits": {
            "AS": _MEDIA_ADDRESS_SPACE_BYTES,
            "CORE": 0,
            "FSIZE": settings.store.bytes,
            "NOFILE": 256,
        },
    }
