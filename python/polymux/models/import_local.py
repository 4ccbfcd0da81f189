"""The user's own files as models: named where they are, or copied."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from polymux._util.text import display_name
from polymux.errors import InputUnreadableError, InvalidRequestError
from polymux.models.errors import writing
from polymux.models.families import checked_name, layout_of
from polymux.models.folder import counting, kept_of, pieces_of, write_new
from polymux.models.manifest import Kept, Manifest, check_file_name, is_within

if TYPE_CHECKING:
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
    on_progress: OnProgress | None = None,
) -> Installed:
    """Gives the user's own file or folder a name that engines know it by.

    Args:
        path: A GGUF file, a folder in CTranslate2's form, a ``.param`` file of ncnn, a folder with
            one of these, a folder in diffusers' form, or a LoRA's ``.safetensors`` file.
        family: What it is for. Default: what it looks like.
        copy: Copy the files. Default: they stay where they are, and nothing here removes them.

    Raises:
        InputNotFoundError: There is nothing at `path`.
        InputUnreadableError: It cannot be read.
        InvalidRequestError: It is no model; or the name cannot be one.
        OutputExistsError: There is a model of that name.
        OutputFailedError: The folder of models cannot be written.
    """
    checked_name(name)
    layout = layout_of(path, family)
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
            )
            return folder.publish(work, files, manifest)
        except BaseException:
            shutil.rmtree(files, ignore_errors=True)
            raise


def _check_place(layout: Layout, folder: ModelsFolder, *, copy: bool) -> None:
    if layout.folder.resolve().is_relative_to(folder.path.resolve()):
        raise InvalidRequestError(
            f"{display_name(os.fspath(layout.folder))} lies in the folder of models already: "
            "'polymux models list' shows it"
        )
    for name in layout.files:
        try:
            check_file_name(name)
        except ValueError:
            raise InvalidRequestError(
                f"the file {display_name(name)} begins with a dot: give it another name"
            ) from None
        if "/" in name and not copy and not is_within(layout.folder, name):
            raise InvalidRequestError(
                f"the file {display_name(name)} is a link that leads out of the model's folder: "
                "--copy takes what it leads to"
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
            told = counting(on_progress, name, os.fstat(source.fileno()).st_size)
            digest = write_new(target, pieces_of(source, told))
            kept.append(Kept(name, target.stat().st_size, digest))
    return tuple(kept)


def _unreadable(layout: Layout, error: OSError) -> InputUnreadableError:
    return InputUnreadableError(
        f"cannot read {display_name(os.fspath(layout.folder))}: {error.strerror or error}",
        errno=error.errno,
    )
