"""The models directory: installed models, models added by hand, and removal."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from polymux._util.atomic_file import sync_folder, write_atomically
from polymux._util.text import did_you_mean, display_name
from polymux.config import models_folder
from polymux.errors import InputNotFoundError, OutputExistsError, OutputRefusedError, PolymuxError
from polymux.models import manifest as manifests
from polymux.models.errors import ModelError, writing
from polymux.models.families import FAMILIES, checked_name, is_name, layout_of
from polymux.models.manifest import Kept, Manifest, is_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from polymux.models.families import Layout

    #: Called with the name of the file, the bytes processed, and the total bytes if known.
    OnProgress = Callable[[str, int, int | None], object]

_PIECE_BYTES = 1 << 20
_LARGEST_BYTES = 1 << 63
_LOCK = "lock"
#: The file with the models that the user has assigned to roles.
_USES = "roles.json"
_LARGEST_USES_BYTES = 1 << 20
#: The folder of the distribution polymux-mini-models among the installed packages.
_PACKAGED = "polymux_mini_models"


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed model.

    Attributes:
        manifest: Its manifest.
        folder: Directory of its files.
        kind: ``"owned"`` (files in the models directory), ``"linked"`` (registered, files
            elsewhere), ``"found"`` (put into the models directory by hand), or ``"packaged"`` (in
            the distribution polymux-mini-models, read-only).
        problem: Problem of the model as text; empty if there is no problem.
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
        """Return the options to load the engine with this model."""
        paths = {key: os.fspath(self.folder / one) for key, one in self.manifest.paths.items()}
        return {**self.manifest.options, **paths}


def packaged_models() -> Path | None:
    """Return the directory of the distribution polymux-mini-models; None if it is not installed."""
    spec = find_spec(_PACKAGED)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None


class ModelsFolder:
    """The models directory, and the models of the distribution polymux-mini-models.

    The directory may not exist yet. Its models hide those of the distribution with the same name.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else models_folder()
        self._packaged = packaged_models()

    def installed(self) -> list[Installed]:
        """Return all models sorted by name, including models with problems."""
        names = dict.fromkeys(map(self._name_of, [*_entries(self.path), *_entries(self._packaged)]))
        found = [self._look(name) for name in names if is_name(name)]
        return sorted((one for one in found if one is not None), key=lambda one: one.name)

    def find(self, name: str) -> Installed | None:
        return self._look(name) if is_name(name) else None

    def get(self, name: str) -> Installed:
        """Return the model with this name, or raise `InputNotFoundError`."""
        found = self.find(name)
        if found is None:
            hint = did_you_mean(name, [one.name for one in self.installed()])
            raise InputNotFoundError(
                f"model {display_name(name)} is not installed"
                + (hint or ". Run 'polymux models list' to show the installed models")
            )
        return found

    def default(self, family: str) -> Installed | None:
        """Return the default model of an engine: the first by name without a problem.

        None if there is no such model, or if the family assigns models to roles.
        """
        about = FAMILIES.get(family)
        if about is not None and about.has_roles:
            return None
        of_family = (one for one in self.installed() if one.family == family and not one.problem)
        return next(of_family, None)

    def uses(self) -> dict[str, str]:
        """Return the models that ``polymux models use`` has assigned: role to name.

        Raises:
            ModelError: The file with the assignments cannot be read, or it is invalid.
        """
        path = self.path / _USES
        try:
            with path.open("rb") as file:
                plain = json.loads(file.read(_LARGEST_USES_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise _invalid_uses(path, error) from None
        if not isinstance(plain, dict) or not all(map(is_name, plain.values())):
            raise _invalid_uses(path, "not a table of roles and model names")
        return plain

    def use(self, roles: Iterable[str], name: str | None) -> None:
        """Assign a model to roles; None restores the default choice.

        Raises:
            ModelError: The file with the assignments is invalid.
            OutputFailedError: The models directory cannot be written.
        """
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)  # Another process may assign roles too.
                named = dict.fromkeys(roles, name)
                wanted = {role: one for role, one in (self.uses() | named).items() if one}
                text = json.dumps(wanted, indent=2, sort_keys=True) + "\n"
                write_atomically(self.path / _USES, text.encode(), overwrite=True)
            finally:
                os.close(descriptor)

    def _name_of(self, entry: str) -> str:
        """Return the model name of a directory entry.

        Files that the user has put here lose ``.gguf``; models added by polymux keep their whole
        name.
        """
        return entry if self._was_added(entry) else entry.removesuffix(".gguf")

    def _was_added(self, entry: str) -> bool:
        return os.path.lexists(self.path / entry / manifests.FILE_NAME)

    def _look(self, name: str) -> Installed | None:
        try:
            return self._added(name) or self._found(name) or self._of_package(name)
        except ModelError as error:
            broken = Manifest(name, "", "", "", {}, {}, ())
            return Installed(broken, self.path / name, "owned", str(error))

    def _added(self, name: str) -> Installed | None:
        folder = self.path / name
        manifest = manifests.read(folder / manifests.FILE_NAME)
        if manifest is None:
            return None
        if manifest.name != name:
            # The directory was renamed by hand: its name is the model's name now.
            manifest = replace(manifest, name=name)
        where, kind = folder, "owned"
        if manifest.folder is not None:
            where, kind = manifest.folder, "linked"
        return Installed(manifest, where, kind, _problem(manifest, where))

    def _found(self, name: str) -> Installed | None:
        """Detect a model that the user has put here as a directory or GGUF file."""
        for entry in (name, f"{name}.gguf"):
            if self._was_added(entry):
                continue  # This entry is another model.
            try:
                found = layout_of(self.path / entry)
                kept = tuple(
                    Kept(one, (found.folder / one).stat().st_size, "") for one in found.files
                )
            except (PolymuxError, OSError):
                continue
            manifest = Manifest(
                name, found.family, "", "put into the models directory by hand", found.paths,
                {}, kept,
            )  # fmt: skip
            return Installed(manifest, found.folder, "found", _problem(manifest, found.folder))
        return None

    def _of_package(self, name: str) -> Installed | None:
        if self._packaged is None:
            return None
        folder = self._packaged / name
        manifest = manifests.read(folder / manifests.FILE_NAME)
        if manifest is None:
            return None
        return Installed(manifest, folder, "packaged", _problem(manifest, folder))

    def is_begun(self, name: str) -> bool:
        """Whether an incomplete download of the model exists."""
        return is_name(name) and self._workspace(name).is_dir()

    def _workspace(self, name: str) -> Path:
        return self.path / f".{name}.part"

    @contextmanager
    def workspace(self, name: str) -> Iterator[Path]:
        """Provide a directory for an incomplete model next to its final place. Its content is kept.

        Raises:
            OutputExistsError: A model or file with this name exists.
            ModelError: Another process is using the workspace.
            OutputFailedError: The directory cannot be written.
        """
        work = self._workspace(checked_name(name))
        self._check_free(name)
        with writing(work):
            work.mkdir(parents=True, exist_ok=True)
            lock = _locked(work, name)
        try:
            self._check_free(name)  # Another process may have added it meanwhile.
            yield work
        finally:
            if work.is_dir() and [one.name for one in work.iterdir()] == [_LOCK]:
                shutil.rmtree(work, ignore_errors=True)
            os.close(lock)

    def _check_free(self, name: str) -> None:
        found = self.find(name)
        if found is not None and found.kind == "packaged":
            raise OutputExistsError(
                f"model {name} already exists in the package polymux-mini-models. Choose another "
                "name"
            )
        if found is not None or os.path.lexists(self.path / name):
            raise OutputExistsError(
                f"model {name} already exists in {display_name(str(self.path))}. "
                f"Run 'polymux models rm {name}' to remove it"
            )

    def publish(self, work: Path, files: Path, manifest: Manifest) -> Installed:
        """Atomically publish the files of a workspace as the model, and delete the workspace."""
        target = self.path / manifest.name
        with writing(target):
            write_atomically(files / manifests.FILE_NAME, manifest.encoded(), overwrite=True)
            files.rename(target)
            sync_folder(self.path)
        shutil.rmtree(work, ignore_errors=True)
        return self.get(manifest.name)

    def remove(self, name: str) -> list[Path]:
        """Remove a model or its incomplete download, and its roles. The user's own files are kept.

        Returns:
            Paths that are kept: the directory of a linked model, or other files in the model's
                directory.

        Raises:
            InputNotFoundError: The model does not exist.
            OutputRefusedError: The user put the model here by hand, or it belongs to a package.
            OutputFailedError: Removing failed.
            ModelError: The file with the assignments of roles is invalid. Nothing was removed.
        """
        roles = [role for role, used in self.uses().items() if used == name]
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
        left = [] if found is None else self._removed(found)
        if roles:
            self.use(roles, None)
        return left

    def _removed(self, model: Installed) -> list[Path]:
        if model.kind == "packaged":
            raise OutputRefusedError(
                f"model {model.name} was not removed: it belongs to the package "
                "polymux-mini-models. Run 'pip uninstall polymux-mini-models' to remove all models "
                "of the package"
            )
        folder = self.path / model.name
        if model.kind == "found" or folder.is_symlink():
            raise OutputRefusedError(
                f"model {model.name} was not removed: it was put into "
                f"{display_name(str(self.path))} by hand, and its files may be the only copy. "
                "Delete them yourself"
            )
        own = [] if model.kind == "linked" else [one.name for one in model.manifest.files]
        with writing(folder):
            for name in own:
                if is_within(folder, os.path.dirname(name)):  # noqa: PTH120 - a name, not a path
                    (folder / name).unlink(missing_ok=True)
            _remove_empty(folder, own)
            # The manifest is removed last, so a partly removed model can be removed again.
            (folder / manifests.FILE_NAME).unlink(missing_ok=True)
            left = sorted(folder.iterdir())
            if not left:
                folder.rmdir()
        return [model.folder] if model.kind == "linked" else left

    def damage(self, model: Installed, on_progress: OnProgress | None = None) -> list[str]:
        """Return the files that do not match their SHA-256.

        Raises:
            ModelError: The manifest has no hashes.
        """
        kept = model.manifest.files
        if not kept or not all(one.sha256 for one in kept):
            raise ModelError(
                f"model {model.name} cannot be verified: no SHA-256 hashes are recorded for its "
                f"files ({model.manifest.source or model.problem})"
            )
        damaged = []
        done, total = 0, model.bytes
        for one in kept:
            on_bytes = counting(on_progress, one.name, total, done)
            try:
                if sha256_of(model.folder / one.name, on_bytes) != one.sha256:
                    damaged.append(one.name)
            except OSError:
                damaged.append(one.name)
            done += one.bytes
        return damaged


def _entries(folder: Path | None) -> list[str]:
    try:
        if folder is None:
            return []
        return sorted(one.name for one in folder.iterdir() if one.name != _USES)
    except OSError:
        return []


def kept_of(layout: Layout, on_progress: OnProgress | None = None) -> tuple[Kept, ...]:
    """Return the files of a model with their sizes and SHA-256."""
    kept = []
    for name in layout.files:
        path = layout.folder / name
        size = path.stat().st_size
        kept.append(Kept(name, size, sha256_of(path, counting(on_progress, name, size))))
    return tuple(kept)


def counting(
    on_progress: OnProgress | None, name: str, total: int, before: int = 0
) -> Callable[[int], object] | None:
    """Return a callback for `pieces_of` that reports the progress of a file."""
    if on_progress is None:
        return None
    return lambda count: on_progress(name, before + count, total)


def sha256_of(path: Path, on_bytes: Callable[[int], object] | None = None) -> str:
    """Return the SHA-256 of a file. `on_bytes` receives the bytes read so far."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        for piece in pieces_of(file, on_bytes):
            digest.update(piece)
    return digest.hexdigest()


def pieces_of(
    file: IO[bytes],
    on_bytes: Callable[[int], object] | None = None,
    max_bytes: int = _LARGEST_BYTES,
) -> Iterator[bytes]:
    """Yield the content of a file in chunks. `on_bytes` receives the bytes consumed so far."""
    count = 0
    while piece := file.read(min(_PIECE_BYTES, max_bytes - count)):
        yield piece
        count += len(piece)
        if on_bytes is not None:
            on_bytes(count)


def write_new(target: Path, pieces: Iterable[bytes]) -> str:
    """Write and sync a file that must not exist. Return its SHA-256."""
    digest = hashlib.sha256()
    with target.open("xb") as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _invalid_uses(path: Path, problem: object) -> ModelError:
    return ModelError(
        f"{display_name(os.fspath(path))}: invalid ({problem}). Delete it, then assign the roles "
        "again with 'polymux models use'"
    )


def _remove_empty(folder: Path, names: list[str]) -> None:
    """Remove the directories of these files if they are empty, deepest first."""
    below = {parent for name in names for parent in (folder / name).parents}
    for one in sorted(below, key=lambda path: len(path.parts), reverse=True):
        if one != folder and one.is_relative_to(folder) and not one.is_symlink():
            with suppress(OSError):  # Not empty, or already removed.
                one.rmdir()


def _problem(manifest: Manifest, folder: Path) -> str:
    for one in manifest.files:
        if "/" in one.name and not is_within(folder, one.name):
            return f"{one.name} is outside of the model's directory"
        try:
            size = (folder / one.name).stat().st_size
        except OSError:
            return f"{one.name} is missing"
        if size != one.bytes:
            return f"{one.name} has the wrong size (got {size} bytes, expected {one.bytes})"
    return ""


def _locked(work: Path, name: str) -> int:
    """Lock the workspace and return the descriptor. Closing it releases the lock."""
    path = work / _LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The previous holder may have removed the workspace before we got the lock.
        if path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    raise ModelError(
        f"model {name}: another process is downloading or removing it. Try again later"
    )
