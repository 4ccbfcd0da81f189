"""Registration of the user's own files as models, in place or as a copy."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name
from polymux.errors import InputUnreadableError, InvalidRequestError
from polymux.models.errors import writing
from polymux.models.families import checked_name, layout_of
from polymux.models.folder import counting, kept_of, pieces_of, write_new
from polymux.models.manifest import (
    FILE_NAME,
    Kept,
    Manifest,
    check_description,
    check_file_name,
    is_within,
    read,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from polymux.models.families import Layout
    from polymux.models.folder import Installed, ModelsFolder, OnProgress


def add(
    name: str,
    path: Path,
    folder: ModelsFolder,
    *,
    family: str | None = None,
    license: str = "",  # noqa: A002 - as SPDX calls it
    copy: bool = False,
    description: Mapping[str, Any] | None = None,
    on_progress: OnProgress | None = None,
) -> Installed:
    """Register a file or directory of the user as a model.

    A manifest in the directory describes how the model is used, such as its native size. Its
    fallback roles are left out: only models of a package are small models.

    Args:
        name: Name of the model.
        path: A GGUF file, a directory in CTranslate2 format, an ncnn ``.param`` file, a directory
            with one of these, a directory in diffusers format, or a ``.safetensors`` file of a
            LoRA.
        folder: The models directory.
        family: The engine that uses it. Default: detected.
        license: SPDX identifier or text.
        copy: Copy the files. Default: the files stay in place, and polymux never removes them.
        description: Fields of `DESCRIPTION`, which have priority over the manifest in the
            directory; `defaults` has priority field by field.
        on_progress: Called with the file's name, the bytes processed, and the total bytes.

    Raises:
        InputNotFoundError: `path` does not exist.
        InputUnreadableError: It cannot be read.
        InvalidRequestError: It is not a model, or the name or the description is invalid.
        OutputExistsError: A model with this name exists.
        OutputFailedError: The models directory cannot be written.
        ModelError: The directory has an invalid manifest.
    """
    checked_name(name)
    layout = layout_of(path, family)
    own = read(layout.folder / FILE_NAME)
    described = _described(own, description or {})
    _check_place(layout, folder, copy=copy)
    with folder.workspace(name) as work:
        files = work / "files"
        with writing(files):
            shutil.rmtree(files, ignore_errors=True)
            files.mkdir()
        try:
            kept = _copied(layout, files, on_progress) if copy else _hashed(layout, on_progress)
            manifest = Manifest(
                name=name,
                family=layout.family,
                license=license,
                source=("a copy of " if copy else "") + display_name(os.fspath(path.absolute())),
                paths=layout.paths,
                options={},
                files=kept,
                folder=None if copy else layout.folder,
                **described,
            )
            return folder.publish(work, files, manifest)
        except BaseException:
            shutil.rmtree(files, ignore_errors=True)
            raise


def _described(own: Manifest | None, given: Mapping[str, Any]) -> dict[str, Any]:
    found = {} if own is None else own.description()
    found.pop("fallback_roles", None)
    defaults = dict(found.get("defaults", {}))
    for role, values in given.get("defaults", {}).items():
        defaults[role] = {**defaults.get(role, {}), **values}
    found |= {**given, "defaults": defaults}
    try:
        check_description(found.get("native_size"), found.get("vae_factor"), defaults, ())
    except ValueError as error:
        raise InvalidRequestError(str(error)) from None
    return found


def _check_place(layout: Layout, folder: ModelsFolder, *, copy: bool) -> None:
    if layout.folder.resolve().is_relative_to(folder.path.resolve()):
        raise InvalidRequestError(
            f"{display_name(os.fspath(layout.folder))} is already in the models directory. Run "
            "'polymux models list' to show it"
        )
    for name in layout.files:
        try:
            check_file_name(name)
        except ValueError as error:
            raise InvalidRequestError(f"{error}. Rename the file") from None
        if "/" in name and not copy and not is_within(layout.folder, name):
            raise InvalidRequestError(
                f"{display_name(name)} is a symlink to a file outside of the model's directory. "
                "Use --copy to copy that file"
            )


def _hashed(layout: Layout, on_progress: OnProgress | None) -> tuple[Kept, ...]:
    try:
        return kept_of(layout, on_progress)
    except OSError as error:
        raise _unreadable(layout, error) from error


def _copied(layout: Layout, files: Path, on_progress: OnProgress | None) -> tuple[Kept, ...]:
    kept = []
    for name in layout.files:
        try:
            source = (layout.folder / name).open("rb", buffering=0)
        except OSError as error:
            raise _unreadable(layout, error) from error
        target = files / name
        with source, writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            on_bytes = counting(on_progress, name, os.fstat(source.fileno()).st_size)
            digest = write_new(target, pieces_of(source, on_bytes))
            kept.append(Kept(name, target.stat().st_size, digest))
    return tuple(kept)


def _unreadable(layout: Layout, error: OSError) -> InputUnreadableError:
    return InputUnreadableError(
        f"cannot read {display_name(os.fspath(layout.folder))}: {error.strerror or error}",
        errno=error.errno,
    )
