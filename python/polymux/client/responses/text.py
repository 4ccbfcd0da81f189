"""Results that are one text or the URL of one file."""

from __future__ import annotations

from typing import Any, ClassVar

from polymux._util.html_repr import markdown, preformatted
from polymux.client.responses._base import (
    Response,
    error_of,
    joined,
    keep,
    member,
    parsed,
    wrong,
)
from polymux.errors import DecodeError


class _OneText(Response):
    """A text in the first existing member of `_names`. Base class."""

    __slots__ = ("text",)
    _shown = ("text",)
    _names: ClassVar[tuple[str, ...]]

    text: str
    engine_model: str | None = member("a string")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._also_known = frozenset(cls._names)

    def __init__(self, value: Any, raw: bytes = b"", *, path: str = "") -> None:
        super().__init__(value, raw, path=path)
        keep(self, "text", required_text(value, self._names, path))

    def __str__(self) -> str:
        return self.text


class TextResponse(_OneText):
    """A plain-text answer of a chat or a video summary.

    Attributes:
        text: The text from the member ``response``; an array of strings is joined.
        engine_model: Name of the model that did the work: of an installed model, or of an
            upstream's model; None if unknown.

    Example:
        >>> import polymux
        >>> polymux.TextResponse.decode(b'{"response": "Hello!"}').text
        'Hello!'
    """

    __slots__ = ()
    _names = ("response",)

    def _repr_markdown_(self) -> str:
        """Return the text as Markdown for notebooks, with HTML and links escaped."""
        return markdown(self.text)


class OcrText(_OneText):
    """Text that was recognized in an image.

    Attributes:
        text: The text with line breaks; empty if there is none. From the member ``text`` or
            ``response``.
        engine_model: Name of the model or program that read the text; None if unknown.

    Example:
        >>> import polymux
        >>> polymux.OcrText.decode(b'{"text": "Dear Ada,"}').text
        'Dear Ada,'
    """

    __slots__ = ()
    _names = ("text", "response")

    def _repr_html_(self) -> str:
        """Return the text for notebooks, with its line breaks."""
        return preformatted(self.text)


def media_url(body: bytes) -> str:
    """Return the URL of the output file of a download or conversion.

    Args:
        body: Body of the response. The URL is in its member ``response``, or in ``url`` from some
            servers.

    Raises:
        DecodeError: Invalid JSON, or neither member is a non-empty string.

    Example:
        >>> from polymux.client.responses import media_url
        >>> media_url(b'{"url": "https://files.example/a.mp3"}')
        'https://files.example/a.mp3'
    """
    value = parsed(body)
    if not isinstance(value, dict):
        raise wrong("", "an object with the member response or url", value)
    # An empty string counts as missing: the other member may have the URL.
    given = {name: one for name, one in value.items() if one != ""}
    for name in ("response", "url"):
        if not isinstance(given.get(name), (str, type(None))):
            raise wrong(name, "a string", given[name])
    return required_text(given, ("response", "url"))


def required_text(value: dict[str, Any], names: tuple[str, ...], path: str = "") -> str:
    """Return the text of the first existing member; an array of strings is joined.

    Raises:
        DecodeError: All are missing, or one has a wrong type.
    """
    for name in names:
        text = value.get(name)
        if isinstance(text, list) and all(isinstance(one, str) for one in text):
            return "".join(text)
        if text is not None and not isinstance(text, str):
            raise wrong(joined(path, name), "a string", text)
        if text is not None:
            return text
    raise DecodeError(f"{joined(path, names[0])}: missing{error_of(value)}")
