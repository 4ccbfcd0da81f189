"""The folder of models: what is installed there, what the user has put there, and what goes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from polymux._util.atomic_file import sync_folder, write_atomically
from polymux._util.text import display_name
from polymux.config import models_folder
from polymux.errors import InputNotFoundError, OutputExistsError, OutputRefusedError, PolymuxError
from polymux.models import manifest as manifests
from polymux.models.errors import ModelError, writing
from polymux.models.families import FAMILIES, checked_name, is_name, layout_of
from polymux.models.manifest import Kept, Manifest, is_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from polymux.models.families import Layout

    #: Called with what is being worked on, the bytes that are done, and all of them where known.
    OnProgress = Callable[[str, int, int | None], object]

_PIECE_BYTES = 1 << 20
_LARGEST_BYTES = 1 << 63
_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Installed:
    """A model that is there.

    Attributes:
        manifest: What is known of it.
        folder: Where its files are.
        kind: ``"owned"`` (files of the models folder), ``"linked"`` (registered, files elsewhere),
            or ``"found"`` (put into the models folder by hand).
        problem: What is wrong with it, in words; empty where nothing is.
    """

    manifest: Manifest
    folder: Path
    kind: str
    problem: str = ""

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def family(self) -> str:
        return self.manifest.family

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.manifest.files)

    def engine_options(self) -> dict[str, Any]:
        """What the engine is to be loaded with for it."""
        paths = {key: os.fspath(self.folder / one) for key, one in self.manifest.paths.items()}
        return {**self.manifest.options, **paths}


class ModelsFolder:
    """The folder of models; it need not exist."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else models_folder()

    def installed(self) -> list[Installed]:
        """All models, in the order of their names; those with a problem, too."""
        try:
            entries = sorted(one.name for one in self.path.iterdir())
        except OSError:
            return []
        names = dict.fromkeys(map(self._name_of, entries))
        found = [self._look(name) for name in names if is_name(name)]
        return sorted((one for one in found if one is not None), key=lambda one: one.name)

    def find(self, name: str) -> Installed | None:
        return self._look(name) if is_name(name) else None

    def get(self, name: str) -> Installed:
        """The model of that name; InputNotFoundError where there is none."""
        found = self.find(name)
        if found is None:
            raise InputNotFoundError(
                f"no model of the name {display_name(name)} is installed: 'polymux models list' "
                "shows which are"
            )
        return found

    def default(self, family: str) -> Installed | None:
        """The model that an engine takes where none is named: of those without a problem the first
        by name; None where there is none, and for a family whose models have roles.
        """
        about = FAMILIES.get(family)
        if about is not None and about.has_roles:
            return None
        of_family = (one for one in self.installed() if one.family == family and not one.problem)
        return next(of_family, None)

    def _name_of(self, entry: str) -> str:
        """What is called how: what people put here goes without its ``.gguf``, and what was added
        by the name that it was given, whatever that ends with.
        """
        return entry if self._was_added(entry) else entry.removesuffix(".gguf")

    def _was_added(self, entry: str) -> bool:
        return os.path.lexists(self.path / entry / manifests.FILE_NAME)

    def _look(self, name: str) -> Installed | None:
        folder = self.path / name
        try:
            manifest = manifests.read(folder / manifests.FILE_NAME)
        except ModelError as error:
            broken = Manifest(name, "", "", "", {}, {}, ())
            return Installed(broken, folder, "owned", str(error))
        if manifest is None:
            return self._found(name)
        if manifest.name != name:
            # Renamed by hand: the folder's name is what people type.
            manifest = replace(manifest, name=name)
        where, kind = folder, "owned"
        if manifest.folder is not None:
            where, kind = manifest.folder, "linked"
        return Installed(manifest, where, kind, _problem(manifest, where))

    def _found(self, name: str) -> Installed | None:
        """A folder or a GGUF file that somebody has put here, where it looks like a model."""
        for entry in (name, f"{name}.gguf"):
            if self._was_added(entry):
                continue  # That is a model by its whole name, and no file of this one.
            try:
                found = layout_of(self.path / entry)
                kept = tuple(
                    Kept(one, (found.folder / one).stat().st_size, "") for one in found.files
                )
            except (PolymuxError, OSError):
                continue
            manifest = Manifest(
                name, found.family, "", "put into the folder of models by hand", found.paths,
                {}, kept,
            )  # fmt: skip
            return Installed(manifest, found.folder, "found", _problem(manifest, found.folder))
        return None

    def is_begun(self, name: str) -> bool:
        """Whether something of it has been fetched and the rest has not."""
        return is_name(name) and self._workspace(name).is_dir()

    def _workspace(self, name: str) -> Path:
        return self.path / f".{name}.part"

    @contextmanager
    def workspace(self, name: str) -> Iterator[Path]:
        """A folder beside the model's for what is not whole yet; what is in it stays.

        Raises:
            OutputExistsError: Something of that name is there already.
            ModelError: Another process works at it.
            OutputFailedError: The folder cannot be written.
        """
        work = self._workspace(checked_name(name))
        self._check_free(name)
        with writing(work):
            work.mkdir(parents=True, exist_ok=True)
            lock = _locked(work, name)
        try:
            self._check_free(name)  # Another process may have made it until now.
            yield work
        finally:
            if work.is_dir() and [one.name for one in work.iterdir()] == [_LOCK]:
                shutil.rmtree(work, ignore_errors=True)
            os.close(lock)

    def _check_free(self, name: str) -> None:
        if self.find(name) is not None or os.path.lexists(self.path / name):
            raise OutputExistsError(
                f"there is a model {name} already in {display_name(str(self.path))}: "
                f"'polymux models rm {name}' removes it"
            )

    def publish(self, work: Path, files: Path, manifest: Manifest) -> Installed:
        """Makes the files of a workspace the model, whole or not at all, and ends the workspace."""
        target = self.path / manifest.name
        with writing(target):
            write_atomically(files / manifests.FILE_NAME, manifest.encoded(), overwrite=True)
            files.rename(target)
            sync_folder(self.path)
        shutil.rmtree(work, ignore_errors=True)
        return self.get(manifest.name)

    def remove(self, name: str) -> list[Path]:
        """Removes a model, or what was fetched of one; files of the user's own stay.

        Returns:
            What stays where it is: the files of a linked model, or what else lies in its folder.

        Raises:
            InputNotFoundError: There is none.
            OutputRefusedError: It is not the models folder's, but the user's own.
            OutputFailedError: It cannot be removed.
        """
        work = self._workspace(checked_name(name))
        begun = work.is_dir() and not work.is_symlink()
        found = self.find(name)
        if found is None and not begun:
            self.get(name)
        if begun:
            with writing(work):
                lock = _locked(work, name)
                shutil.rmtree(work)
                os.close(lock)
        return [] if found is None else self._removed(found)

    def _removed(self, model: Installed) -> list[Path]:
        folder = self.path / model.name
        if model.kind == "found" or folder.is_symlink():
            raise OutputRefusedError(
                f"{model.name} was put into {display_name(str(self.path))} by hand, and its files "
                "may be the only ones: remove them by hand"
            )
        own = [] if model.kind == "linked" else [one.name for one in model.manifest.files]
        with writing(folder):
            for name in own:
                if is_within(folder, os.path.dirname(name)):  # noqa: PTH120 - a name, not a path
                    (folder / name).unlink(missing_ok=True)
            _remove_empty(folder, own)
            # Last: what is half removed is still known to be a model, and can be removed again.
            (folder / manifests.FILE_NAME).unlink(missing_ok=True)
            left = sorted(folder.iterdir())
            if not left:
                folder.rmdir()
        return [model.folder] if model.kind == "linked" else left

    def damage(self, model: Installed, on_progress: OnProgress | None = None) -> list[str]:
        """The files that are not what they were, by their SHA-256.

        Raises:
            ModelError: Nobody has noted what they should be.
        """
        kept = model.manifest.files
        if not kept or not all(one.sha256 for one in kept):
            raise ModelError(
                f"nobody knows what the files of {model.name} should be: "
                f"{model.manifest.source or model.problem}"
            )
        damaged = []
        done, total = 0, model.bytes
        for one in kept:
            told = counting(on_progress, one.name, total, done)
            try:
                if sha256_of(model.folder / one.name, told) != one.sha256:
                    damaged.append(one.name)
            except OSError:
                damaged.append(one.name)
            done += one.bytes
        return damaged


def kept_of(layout: Layout, on_progress: OnProgress | None = None) -> tuple[Kept, ...]:
    """The files of a model with their lengths and SHA-256."""
    kept = []
    for name in layout.files:
        path = layout.folder / name
        size = path.stat().st_size
        kept.append(Kept(name, size, sha256_of(path, counting(on_progress, name, size))))
    return tuple(kept)


def counting(
    on_progress: OnProgress | None, name: str, total: int, before: int = 0
) -> Callable[[int], object] | None:
    """Reports the bytes of a file that are done, as `pieces_of` tells them."""
    if on_progress is None:
        return None
    return lambda count: on_progress(name, before + count, total)


def sha256_of(path: Path, told: Callable[[int], object] | None = None) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        for piece in pieces_of(file, told):
            digest.update(piece)
    return digest.hexdigest()


def pieces_of(
    file: IO[bytes],
    told: Callable[[int], object] | None = None,
    max_bytes: int = _LARGEST_BYTES,
) -> Iterator[bytes]:
    """What is read from a file, at most `max_bytes`; `told` is called with how much was used."""
    count = 0
    while piece := file.read(min(_PIECE_BYTES, max_bytes - count)):
        yield piece
        count += len(piece)
        if told is not None:
            told(count)


def write_new(target: Path, pieces: Iterable[bytes]) -> str:
    """Writes a file that must not exist, and syncs it; its SHA-256."""
    digest = hashlib.sha256()
    with target.open("xb") as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _remove_empty(folder: Path, names: list[str]) -> None:
    """Removes the folders of these files, the lowest first, where nothing else lies in them."""
    below = {parent for name in names for parent in (folder / name).parents}
    for one in sorted(below, key=lambda path: len(path.parts), reverse=True):
        if one != folder and one.is_relative_to(folder) and not one.is_symlink():
            with suppress(OSError):  # It is not empty, or is gone.
                one.rmdir()


def _problem(manifest: Manifest, folder: Path) -> str:
    for one in manifest.files:
        if "/" in one.name and not is_within(folder, one.name):
            return f"{one.name} leads out of the model's folder"
        try:
            size = (folder / one.name).stat().st_size
        except OSError:
            return f"{one.name} is missing"
        if size != one.bytes:
            return f"{one.name} has {size} bytes and not {one.bytes}"
    return ""


def _locked(work: Path, name: str) -> int:
    """A lock of the workspace, held until the descriptor is closed."""
    path = work / _LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had it may have removed the whole workspace in between.
        if path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    raise ModelError(f"another process is at work on the model {name}: try again when it is done")
