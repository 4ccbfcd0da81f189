"""Output files of `polymux.Local`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux._util.html_repr import embedded, escaped, linked_path
from polymux._util.text import display_name, size
from polymux.media.media_file import MediaFile

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from polymux.media.results import ConversionReport

__all__ = ["LocalFile"]


class LocalFile(MediaFile):
    """A file on this computer. `Local` may delete it when it closes; use `save` to keep it.

    Attributes:
        path: Path of the file.
        data: None.

    Example:
        >>> from pathlib import Path
        >>> from polymux.local.local_file import LocalFile
        >>> _ = Path("a.txt").write_text("text")
        >>> LocalFile(Path("a.txt"), "text/plain").read()
        b'text'
    """

    __slots__ = ("_content_type",)
    path: Path
    _content_type: str

    def __init__(
        self, path: Path, content_type: str, report: ConversionReport | None = None
    ) -> None:
        super().__init__(report, path)
        self._set(_content_type=content_type)

    @property
    def size_bytes(self) -> int:
        """Size of the file in bytes."""
        return self.path.stat().st_size

    @property
    def content_type(self) -> str:
        """MIME type of the content."""
        return self._content_type

    @property
    def url(self) -> str:
        """The file as a ``file:`` URL."""
        return self.path.as_uri()

    def _repr_html_(self) -> str:
        """Return an image or player for notebooks; other and large files are linked.

        Browsers can only open links to files in the notebook's directory. For other files, only
        name and size are shown.
        """
        name = display_name(self.path.name)
        if not self.path.is_file():
            return f"<div>{escaped(name)}: file not found</div>"
        facts = f"{linked_path(self.path, name)}, {size(self.size_bytes)}"
        kind = self.content_type.partition("/")[0]
        tag = {"image": "img", "audio": "audio", "video": "video"}.get(kind)
        if tag is None or self.size_bytes > _LARGEST_SHOWN_BYTES:
            return f"<div>{facts}</div>"
        shown = embedded(tag, self.content_type, self.read())
        return f"<div>{shown}<div>{facts}</div></div>"

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"LocalFile({display_name(str(self.path))!r}, {self._content_type!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalFile) and other.path == self.path

    def __hash__(self) -> int:
        return hash((LocalFile, self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFile, (self.path, self._content_type, self._report)


_LARGEST_SHOWN_BYTES = 10_000_000
