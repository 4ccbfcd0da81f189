"""Answers that are one text, or the address of one file."""

from __future__ import annotations

from typing import Any, ClassVar

from polymux._util.html_repr import markdown, preformatted
from polymux.client.responses._base import Response, error_of, joined, keep, parsed, wrong
from polymux.errors import DecodeError


class _OneText(Response):
    """An answer that is a text, in the first of these members that is there. Base class."""

    __slots__ = ("text",)
    _shown = ("text",)
    _names: ClassVar[tuple[str, ...]]

    text: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._also_known = frozenset(cls._names)

    def __init__(self, value: Any, raw: bytes = b"", *, path: str = "") -> None:
        super().__init__(value, raw, path=path)
        keep(self, "text", required_text(value, self._names, path))

    def __str__(self) -> str:
        return self.text


class TextResponse(_OneText):
    """An answer that is a text: of the free chat and of a video's summary.

    Attributes:
        text: The text, from the member ``response``; texts in an array are joined.

    Example:
        >>> import polymux
        >>> polymux.TextResponse.decode(b'{"response": "Hello!"}').text
        'Hello!'
    """

    __slots__ = ()
    _names = ("response",)

    def _repr_markdown_(self) -> str:
        """The text as Markdown for notebooks; nothing in it is a tag or a link."""
        return markdown(self.text)


class OcrText(_OneText):
    """Text that was read in a picture.

    Attributes:
        text: The text, line by line; empty when there is none. From the member ``text``, or
            ``response``.

    Example:
        >>> import polymux
        >>> polymux.OcrText.decode(b'{"text": "Dear Ada,"}').text
        'Dear Ada,'
    """

    __slots__ = ()
    _names = ("text", "response")

    def _repr_html_(self) -> str:
        """The text for notebooks, line by line."""
        return preformatted(self.text)


def media_url(body: bytes) -> str:
    """Where the file lies that a download or conversion made.

    Args:
        body: Of the answer; the address is its member ``response``, or ``url`` from servers that
            say so.

    Raises:
        DecodeError: No JSON, or neither member is there as a text that is not empty.

    Example:
        >>> from polymux.client.responses import media_url
        >>> media_url(b'{"url": "https://files.example/a.mp3"}')
        'https://files.example/a.mp3'
    """
    value = parsed(body)
    if not isinstance(value, dict):
        raise wrong("", "an object with the member response", value)
    # An empty text is as good as none: another member may have the address.
    given = {name: one for name, one in value.items() if one != ""}
    for name in ("response", "url"):
        if not isinstance(given.get(name), (str, type(None))):
            raise wrong(name, "a text", given[name])
    return required_text(given, ("response", "url"))


def required_text(value: dict[str, Any], names: tuple[str, ...], path: str = "") -> str:
    """The text of the first of these members that is there; an array of texts is joined.

    Raises:
        DecodeError: None is there, or it is something else.
    """
    for name in names:
        text = value.get(name)
        if isinstance(text, list) and all(isinstance(one, str) for one in text):
            return "".join(text)
        if text is not None and not isinstance(text, str):
            raise wrong(joined(path, name), "a text", text)
        if text is not None:
            return text
    raise DecodeError(f"{joined(path, names[0])}: is missing{error_of(value)}")
