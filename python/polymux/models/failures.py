"""What goes wrong with models, and with the folder that they are written to."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polymux._text import display_name
from polymux.errors import OutputFailedError, PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator


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
