"""Errors of models and of the models directory."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polymux._util.text import display_name, size
from polymux.errors import OutputFailedError, PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class ModelError(PolymuxError):
    """A model is damaged, does not match its hash, or cannot be downloaded."""

    code = "model_failed"


@contextmanager
def writing(path: os.PathLike[str]) -> Iterator[None]:
    """Raise file system errors as one error that names `path`.

    Raises:
        OutputFailedError: The disk is full, permission was denied, or an I/O error occurred.
    """
    try:
        yield
    except PolymuxError:
        raise
    except OSError as error:
        raise OutputFailedError(
            f"cannot write {display_name(os.fspath(path))}: {error.strerror or error}",
            errno=error.errno,
        ) from error


def check_room(what: str, folder: Path, needed_bytes: int, shown_as: Path | None = None) -> None:
    """Raise `OutputFailedError` naming `shown_as` or the directory if the disk lacks space."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise OutputFailedError(
            f"{what}: not enough disk space in {display_name(os.fspath(shown_as or folder))} "
            f"(needed {size(needed_bytes)}, free {size(free_bytes)})",
            errno=errno.ENOSPC,
        )
