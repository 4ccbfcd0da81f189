"""HTML and Markdown for notebooks, in which untrusted text stays text.

Results build their `_repr_html_` from these functions. Small media are embedded, which keeps them
visible in a saved notebook; large ones are linked.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, urlsplit

from polymux._util.redaction import redact
from polymux._util.text import printable, shortened, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Maximum number of media bytes that one result embeds.
MAX_EMBEDDED_BYTES = 10_000_000
#: Maximum number of rows in a table of facts.
MAX_ROWS = 20
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_MAX_CHARACTERS = 2_000
_MAX_MARKDOWN_CHARACTERS = 100_000
_MAX_TABLE_ROWS = 200
# Patterns are compiled at first use: clients load this module, but few display results.
#: The query of a URL may contain a signature.
_QUERY = r"(?i)(https?://[^\s?#\"'<>]+)[?#][^\s\"'<>]+"
_USER = r"(?i)(https?://)[^\s/@\"'<>]+@"
_FENCE = r"( *)(`{3,}|~{3,}) *([^`\s]*)[^`]*"
_LANGUAGE = r"(?a)[\w+#.-]{1,20}"
_CODE = r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)"
#: Characters that could start a tag, an entity, a link, an image, code or a formula.
_MEANINGFUL = r"[&<\[\]\\$`]"
_PUNCTUATION = r"[!-/:-@\[-`{-~]"


def _escape(text: str) -> str:
    # Like html.escape, whose module loads a table of 2,231 entities.
    return text.translate(_ESCAPES)


def unsigned(text: str) -> str:
    """Remove queries and user names, which may contain secrets, from URLs in a text.

    Example:
        >>> from polymux._util.html_repr import unsigned
        >>> unsigned("see https://files.example/a.png?signature=1 there")
        'see https://files.example/a.png?... there'
    """
    return re.sub(_USER, r"\1", re.sub(_QUERY, r"\1?...", text))


def _shown(text: str, most: int) -> str:
    # Redact before shortening: a part of a key would not be recognized.
    plain = shortened(redact(text), most)
    lines = (line.replace("\t", "    ").rstrip("\r") for line in plain.split("\n"))
    return "\n".join(printable(line) for line in lines)


def escaped(text: object, most: int = _MAX_CHARACTERS) -> str:
    """Escape a text for HTML, without keys, URL signatures and control characters.

    Args:
        text: The text.
        most: Maximum length in characters; longer texts are cut in the middle.

    Example:
        >>> from polymux._util.html_repr import escaped
        >>> escaped("<script>")
        '&lt;script&gt;'
    """
    return _escape(_shown(unsigned(str(text)), most))


def preformatted(text: object, most: int = 20_000) -> str:
    """Return the text as an HTML block that keeps its line breaks."""
    return f'<pre style="white-space: pre-wrap">{escaped(text, most)}</pre>'


def is_address(text: str) -> bool:
    """Return whether the text is an http or https URL that is safe to link.

    Example:
        >>> from polymux._util.html_repr import is_address
        >>> is_address("https://files.example/a.png"), is_address("javascript:alert(1)")
        (True, False)
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    plain = text.isprintable() and not any(character.isspace() for character in text)
    return plain and parts.scheme in ("http", "https") and bool(parts.hostname)


def link(url: str, text: str) -> str:
    """Return an HTML link; only the text if the URL is unsafe or contains a password or key."""
    if not is_address(url) or "@" in urlsplit(url).netloc or redact(url) != url:
        return escaped(text)
    return f'<a href="{_escape(url)}" rel="noopener noreferrer">{escaped(text)}</a>'


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return an HTML table.

    Args:
        rows: Cells as HTML. At most 200 rows are shown.
        head: Names of the columns, as text.
    """
    kept = list(rows)
    lines = []
    if head:
        lines.append("".join(f"<th>{escaped(name)}</th>" for name in head))
    style = ' style="text-align: left"'
    lines += ["".join(f"<td{style}>{cell}</td>" for cell in row) for row in kept[:_MAX_TABLE_ROWS]]
    more = (
        f"<div>and {len(kept) - _MAX_TABLE_ROWS} more</div>" if len(kept) > _MAX_TABLE_ROWS else ""
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{more}"


def _character(match: re.Match[str]) -> str:
    return f"&#{ord(match.group())};"


def _spoken(line: str) -> str:
    """Convert a line outside of code blocks. Inline code becomes a tag with plain characters."""
    made, position = [], 0
    for code in re.finditer(_CODE, line):
        made.append(re.sub(_MEANINGFUL, _character, line[position : code.start()]))
        made.append(f"<code>{re.sub(_PUNCTUATION, _character, code.group(2).strip())}</code>")
        position = code.end()
    made.append(re.sub(_MEANINGFUL, _character, line[position:]))
    return "".join(made)


def markdown(text: str) -> str:
    """Return a model's answer as Markdown without HTML tags, images, links and formulas.

    Headings, lists, emphasis, tables and code are kept. An image or a script in an answer could
    reveal the reader to third parties. A dollar sign is more often money than mathematics.

    Args:
        text: The answer; very long ones are cut in the middle.

    Example:
        >>> from polymux._util.html_repr import markdown
        >>> markdown("**Bold** <b>5</b>, `a<b`")
        '**Bold** &#60;b>5&#60;/b>, <code>a&#60;b</code>'
    """
    made: list[str] = []
    lines = iter(_shown(text, _MAX_MARKDOWN_CHARACTERS).split("\n"))
    for line in lines:
        begins = re.fullmatch(_FENCE, line)
        if begins is None:
            made.append(_spoken(line))
            continue
        indent, fence, language = begins.groups()
        inside = list(takewhile(lambda one, fence=fence: not _ends(one, fence), lines))  # type: ignore[misc]
        made += _block([one.removeprefix(indent) for one in inside], language)
    return "\n".join(made)


def _ends(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


def code(text: str, language: str = "") -> str:
    """Return a text as a Markdown code block."""
    return "\n".join(_block(_shown(text, _MAX_MARKDOWN_CHARACTERS).split("\n"), language)).strip()


def _block(lines: list[str], language: str) -> list[str]:
    """Return a code block whose fence is longer than any fence inside."""
    longest = max((len(run) for run in re.findall("`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    known = language if re.fullmatch(_LANGUAGE, language) else ""
    return ["", f"{fence}{known}", *lines, fence, ""]


def linked_path(path: Path, text: str) -> str:
    """Return a link to a file in the notebook's directory, else only the text."""
    try:
        below = path.absolute().relative_to(Path.cwd())
    except (OSError, ValueError):
        return escaped(text)
    return f'<a href="{quote(below.as_posix())}">{escaped(text)}</a>'


def embedded(tag: str, content_type: str, data: bytes) -> str:
    """Return an image, audio or video element with embedded data."""
    source = (
        f"data:{escaped(content_type)};base64,{b2a_base64(data, newline=False).decode('ascii')}"
    )
    controls, end = ("", "") if tag == "img" else (" controls", f"</{tag}>")
    return f'<{tag}{controls} src="{source}" style="max-width: 100%">{end}'


def image(content_type: str, data: bytes, height_px: int = 240) -> str:
    """Return an embedded image; only type and size if it is large or of an unsupported type."""
    kind = content_type.lower()
    if kind not in _IMAGE_TYPES or len(data) > MAX_EMBEDDED_BYTES:
        return f"<div>{escaped(kind)}, {size(len(data))}</div>"
    return embedded("img", kind, data).replace("max-width: 100%", f"max-height: {height_px}px")


def key_values(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return a table of names and values, both as text."""
    return table([(escaped(name), escaped(value)) for name, value in pairs])


def facts(one: object, names: Iterable[str]) -> str:
    """Return a table of attributes without unknown and empty ones.

    Args:
        one: The result.
        names: Names of attributes, in display order.

    Example:
        >>> from polymux import Progress
        >>> from polymux._util.html_repr import facts
        >>> html = facts(Progress(30.0, None, 480_000, 0.5), ("position_s", "duration_s"))
        >>> "position s" in html, "duration" in html
        (True, False)
    """
    found = ((name.replace("_", " "), _plain(getattr(one, name))) for name in names)
    return key_values((name, value) for name, value in found if value != "")


def _plain(value: Any) -> str:
    """Return a value as short text; for a path only the name."""
    if value is None or value in ((), [], {}, ""):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Path):
        return value.name
    if isinstance(value, tuple):
        return ", ".join(map(_plain, value))
    return str(value)


class HtmlReprMixin:
    """Base class that displays attributes in notebooks; `_shown` names them, by default all."""

    __slots__ = ()
    _shown: ClassVar[tuple[str, ...]] = ()

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        # Imported here: it takes a quarter of a first request, and most results need no fields.
        from dataclasses import fields

        own: Any = self
        return facts(self, self._shown or [one.name for one in fields(own)])
