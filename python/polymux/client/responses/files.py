"""Answers of the operations on files: where the result lies, and text that was read."""

from __future__ import annotations

from typing import Any

from polymux._util.html_repr import preformatted
from polymux.client.responses._base import Response, keep, parsed, required_text, wrong


class OcrText(Response):
    """Text that was read in a picture.

    Attributes:
        text: The text, line by line; empty when there is none. From the member ``text``, or
            ``response``.

    Example:
        >>> import polymux
        >>> polymux.OcrText.decode(b'{"text": "Dear Ada,"}').text
        'Dear Ada,'
    """

    __slots__ = ("text",)
    _also_known = frozenset({"text", "response"})
    _shown = ("text",)

    text: str

    def __init__(self, value: Any, raw: bytes = b"", *, path: str = "") -> None:
        super().__init__(value, raw, path=path)
        keep(self, "text", required_text(value, ("text", "response"), path))

    def __str__(self) -> str:
        return self.text

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
