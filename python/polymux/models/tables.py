"""A table of a TOML file, read with care: what is wrong in it is named with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from polymux._util.text import shown
from polymux.models.errors import ModelError

if TYPE_CHECKING:
    import re


class Table:
    """A table of the file, whose members are taken one by one, checked; what is left is wrong."""

    def __init__(self, where: str, plain: object) -> None:
        """Checks that it is a table."""
        self.where = where
        if not isinstance(plain, dict):
            self.fail("must be a table")
        self._left = dict(plain)

    def fail(self, what: str) -> NoReturn:
        """Says what is wrong, and where.

        Raises:
            ModelError: Always.
        """
        raise ModelError(f"{self.where}: {what}")

    def take(self, key: str, kind: type[Any], default: Any = None) -> Any:
        """A member of that type; one without a default must be there."""
        value = self._left.pop(key, default)
        if not isinstance(value, kind) or isinstance(value, bool):
            self.fail(f"{key} must be there, and of the type {kind.__name__}")
        return value

    def text(self, key: str, form: re.Pattern[str] | None = None, default: str = "") -> str:
        """A text of that form; without a default it must be there and not be empty."""
        value: str = self.take(key, str, default)
        if form is not None and not form.fullmatch(value):
            self.fail(f"{key}={shown(value)} is not of its form")
        return value

    def size(self, key: str = "bytes") -> int:
        """A count of bytes."""
        value: int = self.take(key, int)
        if not 0 < value < 1 << 50:
            self.fail(f"{key}={value} is no size of a file")
        return value

    def has(self, key: str) -> bool:
        """Whether there is such a member, not taken yet."""
        return key in self._left

    def end(self) -> None:
        """Fails where members are left."""
        if self._left:
            self.fail(f"{', '.join(sorted(self._left))} is not known")
