"""Errors of inputs and outputs."""

from __future__ import annotations

import os

from polymux.errors._base import PolymuxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _FileError(PolymuxError, OSError):
    """Fills in what handlers of `OSError` look at."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.filename = self.input_name or None
        self.strerror = os.strerror(self.errno) if self.errno is not None else message


class InputError(_FileError):
    """The input cannot be read. Base class."""

    code = "input_error"


class InputNotFoundError(InputError, FileNotFoundError):
    """The input path does not exist."""

    code = "input_not_found"


class InputUnreadableError(InputError):
    """The input is a folder, pipe or device, is not permitted, or a read failed."""

    code = "input_unreadable"


class InputChangedError(InputError):
    """The input shrank, grew or was written to while it was being sent; nothing was sent whole."""

    code = "input_changed"


class OutputError(_FileError):
    """The output cannot be written. Base class."""

    code = "output_error"


class OutputExistsError(OutputError, FileExistsError):
    """The destination exists and overwriting was not allowed."""

    code = "output_exists"


class OutputRefusedError(OutputError):
    """The destination is a symlink, a folder, a device, or the input itself."""

    code = "output_refused"


class OutputFailedError(OutputError):
    """Writing failed: disk full, no permission, or an I/O error."""

    code = "output_failed"
