"""Loading of model directories in diffusers format.

See https://huggingface.co/docs/diffusers/using-diffusers/loading. ``model_index.json`` names the
class of the pipeline, and the library and class of each component. Only safetensors weights are
loaded: other formats are pickles, which can run any code.
"""

from __future__ import annotations

import inspect
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import hash_of
from polymux.models.diffusion_folders import (
    APART,
    CHECKPOINT,
    INDEX,
    has_pickles,
    has_weights,
    variant_of,
)
from polymux.models.roles import pipelines_of
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LARGEST_INDEX_BYTES = 1 << 20
#: Libraries from which a directory may name classes. Any other library would be imported.
_LIBRARIES = ("diffusers", "transformers")
#: Exceptions of the libraries for invalid directories.
_FAILURES = (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError, IndexError)


def index_of(path: Path) -> dict[str, Any]:
    """Read the index of a directory.

    Raises:
        NoBackendError: The index is missing or invalid.
    """
    file = path / INDEX
    try:
        with file.open("rb") as opened:
            plain = json.loads(opened.read(_LARGEST_INDEX_BYTES))
    except (OSError, ValueError):
        plain = None
    if not isinstance(plain, dict) or not isinstance(plain.get("_class_name"), str):
        raise _unfit(path, f"{INDEX} is missing or does not name a pipeline")
    for name, one in plain.items():
        if isinstance(one, list) and one[:1] != [None] and one[0] not in _LIBRARIES:
            raise _unfit(path, f"its component {name} requires the unsupported library {one[0]}")
    return plain


def kind_of(path: Path) -> str:
    """Return the class of a directory's pipeline.

    Raises:
        NoBackendError: As `index_of`.
    """
    return str(index_of(path)["_class_name"])


def kind_in_role(path: Path, name: str, role: str) -> str:
    """Return the class of a model's pipeline.

    Raises:
        NoBackendError: As `index_of`, or the class cannot have this role.
    """
    kind = kind_of(path)
    if kind not in pipelines_of(role):
        raise status_error(
            errors.NoBackendError, f"model {name} ({kind}) cannot have the role {role}"
        )
    return kind


def loaded(path: Path, dtype: Any) -> dict[str, Any]:
    """Load the components of a model.

    Raises:
        NoBackendError: A component is missing, or its weights are only a pickle.
    """
    import diffusers

    index = index_of(path)
    absent = {name: None for name in APART if name in index}
    kind = getattr(diffusers, index["_class_name"], None)
    if kind is None:
        raise _unfit(path, f"unknown pipeline class {index['_class_name']}")
    try:
        if (path / CHECKPOINT).is_file():
            made = kind.from_single_file(
                str(path / CHECKPOINT),
                config=str(path),
                local_files_only=True,
                torch_dtype=dtype,
                **absent,
            )
        else:
            made = kind.from_pretrained(
                path,
                dtype=dtype,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                variant=variant_of(path),
                **absent,
            )
    except _failures() as error:
        raise _unfit(path, _why(path, error)) from error
    parts: dict[str, Any] = dict(made.components)
    # Settings of the pipeline, such as whether a refiner needs an aesthetic score.
    parts |= {name: one for name, one in made.config.items() if isinstance(one, (bool, int))}
    for one in parts.values():
        if hasattr(one, "eval"):
            one.eval()
            one.requires_grad_(requires_grad=False)
    return parts


def loaded_one(path: Path, kind: str | type, dtype: Any) -> Any:
    """Load a single component, such as a ControlNet or a decoder.

    Args:
        path: The directory with its ``config.json``.
        kind: Name of a class in diffusers, or any class.
        dtype: The data type.

    Raises:
        NoBackendError: A file is missing, or the weights are only a pickle.
    """
    import diffusers

    which: Any = getattr(diffusers, kind) if isinstance(kind, str) else kind
    try:
        made = which.from_pretrained(
            path,
            dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
            variant=variant_of(path),
        )
    except _failures() as error:
        raise _unfit(path, _why(path, error)) from error
    made.eval()
    made.requires_grad_(requires_grad=False)
    return made


def pipeline(kind: Any, parts: Mapping[str, Any]) -> Any:
    """Create a pipeline from loaded components. Missing components become None."""
    known = inspect.signature(kind.__init__).parameters
    given = {name: one for name, one in parts.items() if name in known}
    missing = {
        name: None
        for name, one in known.items()
        if name not in given and name != "self" and one.default is inspect.Parameter.empty
    }
    if "requires_safety_checker" in known:
        given["requires_safety_checker"] = False
    if "add_watermarker" in known:
        given["add_watermarker"] = False
    return kind(**given, **missing)


#: Configuration keys with the channels of a VAE's stages; each stage but the last halves the size.
VAE_STAGES = ("block_out_channels", "decoder_block_out_channels", "dim_mult")
_USUAL_VAE_FACTOR = 8


@cache
def vae_factor(path: Path) -> int:
    """Return the pixels per latent cell of a model; 8 if its VAE has no known configuration."""
    found = _stages(path / "vae", VAE_STAGES)
    return 2 ** (found - 1) if found else _USUAL_VAE_FACTOR


@cache
def unet_factor(path: Path) -> int:
    """Return the factor by which a model's UNet reduces latents on each side; 1 without one."""
    return int(2 ** max(0, _stages(path / "unet", ("block_out_channels",)) - 1))


def _stages(folder: Path, names: tuple[str, ...]) -> int:
    try:
        config = json.loads((folder / "config.json").read_bytes())
        return next((len(config[one]) for one in names if config.get(one)), 0)
    except (OSError, ValueError, TypeError, AttributeError):
        return 0


@cache
def version(path: Path) -> str:
    """Return the SHA-256 of the largest weights file, which has the main network."""
    files = sorted(path.rglob("*.safetensors"), key=lambda one: (one.stat().st_size, one.name))
    return hash_of(files[-1]) if files else "hidden"


def _failures() -> tuple[type[Exception], ...]:
    from safetensors import SafetensorError

    return (*_FAILURES, SafetensorError)


def _why(path: Path, error: Exception) -> str:
    for place in (path, *(one for one in path.glob("*/") if one.name not in APART)):
        names = [one.name for one in place.glob("*")]
        if has_pickles(names) and not has_weights(names):
            return "its weights are pickles, which are not supported. Convert them to safetensors"
    return f"{type(error).__name__}: {error}".replace(f"{path}", "the directory")[:300]


def _unfit(path: Path, why: str) -> errors.NoBackendError:
    return status_error(errors.NoBackendError, f"model {path.name} cannot be used: {why}")
