"""The small music model of this repository, and music that it generates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.models.manifest import FILE_NAME

from support import diffusion
from support.music_judge import read

if TYPE_CHECKING:
    from polymux.engines.diffusion.engine import DiffusionEngine
    from polymux.models.folder import ModelsFolder

MUSIC = Path(__file__).parents[2] / "models" / "music-mini"
NAME = MUSIC.name
MANIFEST = json.loads((MUSIC / FILE_NAME).read_text())
DEFAULTS = MANIFEST["defaults"]["music"]


def install(folder: ModelsFolder) -> None:
    """Install the model where it is, with the manifest that ships with it."""
    place = folder.path / NAME
    place.mkdir(parents=True)
    (place / FILE_NAME).write_text(json.dumps(MANIFEST | {"folder": str(MUSIC)}))


def generated(engine: DiffusionEngine, folder: Path, prompt: str, **given: Any) -> Any:
    """Return the samples of music with the model's own settings, unless others are given."""
    values = DEFAULTS | {"prompt_a": prompt} | given
    work = diffusion.request("generate_music", "", **values)
    output = engine.run(work, diffusion.HeardSink(folder), diffusion.token())
    return read(output.value["audio"].path)
