"""The small image model of this repository, installed in a models folder or an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.models.families import layout_of
from polymux.models.manifest import FILE_NAME, Kept, Manifest

if TYPE_CHECKING:
    from polymux.models.folder import ModelsFolder

PICTURES = Path(__file__).parents[2] / "models" / "pictures-mini"
NAME = "pictures-mini"
ROLES = ("picture:A", "picture:B", "picture:C")
DEFAULTS = {"num_inference_steps": 25, "guidance_scale": 4.0}


def install(folder: ModelsFolder, *roles: str) -> None:
    """Install the model as a small model of roles, by default of all images."""
    layout = layout_of(PICTURES, "diffusion")
    files = tuple(Kept(one, (PICTURES / one).stat().st_size, "") for one in layout.files)
    made = Manifest(
        NAME, "diffusion", "MIT", "this repository", layout.paths, {}, files, folder=PICTURES,
        native_size=(64, 64), vae_factor=4, defaults=dict.fromkeys(ROLES, DEFAULTS),
        fallback_roles=roles or ROLES,
    )  # fmt: skip
    (folder.path / NAME).mkdir(parents=True)
    (folder.path / NAME / FILE_NAME).write_bytes(made.encoded())


def assigned(**others: Any) -> dict[str, Any]:
    """The model in an engine's option ``models``."""
    facts = {
        "path": str(PICTURES), "name": NAME, "version": "f" * 64, "is_small": True,
        "instead_of": "sdxl-base-1.0", "native_size": [64, 64], "vae_factor": 4,
    }  # fmt: skip
    return dict.fromkeys(ROLES, facts | others)
