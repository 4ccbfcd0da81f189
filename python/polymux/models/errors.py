"""What goes wrong with models, and with the folder that they are written to."""

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
    """A model is damaged, is not what it should be, or cannot be had."""

    code = "model_failed"


@contextmanager
def writing(path: os.PathLike[str]) -> Iterator[None]:
    """Failures of the file system as one error that names `path`.

    Raises:
        OutputFailedError: Disk full, no permission, or an I/O error.
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


def check_room(what: str, folder: Path, needed_bytes: int, told: Path | None = None) -> None:
    """OutputFailedError where there is no room for `what`; it names `told`, else the folder."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise OutputFailedError(
            f"{what}: {size(needed_bytes)} are needed in "
            f"{display_name(os.fspath(told or folder))}, and {size(free_bytes)} are free there",
            errno=errno.ENOSPC,
        )
