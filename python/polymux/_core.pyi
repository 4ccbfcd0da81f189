"""The native core module. Private: use the functions of `polymux`."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, final

from _typeshed import ReadableBuffer

__version__: str

def describe(operation: str | None = None) -> str:
    """The contract as JSON text: all operations, or the one named."""

def read_json(
    operation: str, model: str | None, body: ReadableBuffer, server: bool, longest_bytes: int
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Parses and checks a JSON body: (variant, model, values, warnings)."""

def read_form(
    operation: str, model: str | None, fields: Sequence[tuple[str, Any]], server: bool
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Checks a form of (name, text or file object): (variant, model, values, warnings)."""

def parse_json(body: ReadableBuffer) -> Any:
    """A JSON document (RFC 8259) as None, bool, int, float, str, list and dict.

    Of members that come twice the last counts; integers may have any size, numbers too large for
    a float become infinite, a byte order mark is skipped.

    Raises:
        polymux.errors.DecodeError: Empty, not JSON, not UTF-8, half a surrogate pair, NaN, or
            nested deeper than 200 levels.
    """

def content_type_of(file_name: str) -> str:
    """The content type of a file name's extension."""

@final
class MultipartBody:
    """A multipart/form-data body that is made while it is read."""

    on_progress: Callable[[int, int | None], object] | None
    def __init__(
        self,
        fields: Sequence[tuple[str, str]],
        files: Sequence[tuple[str, str, Any, str, str, str, int | None]],
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> None: ...
    @property
    def content_type(self) -> str:
        """For the header, with the boundary."""
    @property
    def length_bytes(self) -> int | None:
        """Of the whole body; None where a part does not know its own."""
    @property
    def sent_bytes(self) -> int:
        """Given out since the start."""
    @property
    def finished(self) -> bool:
        """Whether all of it was given out."""
    @property
    def can_rewind(self) -> bool:
        """Whether it can be sent again."""
    @property
    def may_block(self) -> bool:
        """Whether reading may wait: for a disk, or in code of the caller."""
    def read(self, size: int = ...) -> bytes:
        """Up to `size` bytes; empty at the end, and only there."""
    async def aread(self, size: int = ...) -> bytes:
        """The same for asyncio; the only way where a part is an async iterable."""
    def rewind(self) -> None:
        """Back to the start."""
    def __iter__(self) -> MultipartBody: ...
    def __next__(self) -> bytes: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def _read_or_none(self, size: int) -> bytes | None: ...
    def _awaited(self) -> AsyncIterator[Any]: ...
    def _feed(self, piece: ReadableBuffer | None) -> None: ...
    def _fail(self, exception: BaseException) -> None: ...
