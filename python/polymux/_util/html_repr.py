"""HTML and Markdown for notebooks, in which untrusted text stays text.

Results build their `_repr_html_` from these functions. Small media are embedded in the page, so
that a saved notebook can be viewed later; large ones are linked.
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

#: Bytes of media that one result embeds.
MAX_EMBEDDED_BYTES = 10_000_000
#: Rows of a table of facts.
MAX_ROWS = 20
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_MAX_CHARACTERS = 2_000
_MAX_MARKDOWN_CHARACTERS = 100_000
_MAX_TABLE_ROWS = 200
# Patterns are compiled at their first use: clients load this module, and few show results.
#: What follows the path of an address may be what opens it.
_QUERY = r"(?i)(https?://[^\s?#\"'<>]+)[?#][^\s\"'<>]+"
_USER = r"(?i)(https?://)[^\s/@\"'<>]+@"
_FENCE = r"( *)(`{3,}|~{3,}) *([^`\s]*)[^`]*"
_LANGUAGE = r"(?a)[\w+#.-]{1,20}"
_CODE = r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)"
#: What could begin a tag, an entity, a link, a picture, code or a formula.
_MEANINGFUL = r"[&<\[\]\\$`]"
_PUNCTUATION = r"[!-/:-@\[-`{-~]"


def _escape(text: str) -> str:
    # As html.escape does: its module loads a table of 2,231 entities.
    return text.translate(_ESCAPES)


def unsigned(text: str) -> str:
    """The text with addresses cut where a signature, or a password, may be.

    Example:
        >>> from polymux._util.html_repr import unsigned
        >>> unsigned("see https://files.example/a.png?signature=1 there")
        'see https://files.example/a.png?... there'
    """
    return re.sub(_USER, r"\1", re.sub(_QUERY, r"\1?...", text))


def _shown(text: str, most: int) -> str:
    # Keys first: one that is cut in two would not be found.
    plain = shortened(redact(text), most)
    lines = (line.replace("\t", "    ").rstrip("\r") for line in plain.split("\n"))
    return "\n".join(printable(line) for line in lines)


def escaped(text: object, most: int = _MAX_CHARACTERS) -> str:
    """The text as HTML shows it: no tag, no key, no signature, no mark that turns the line around.

    Args:
        text: What is to be shown.
        most: Longest text, in characters; of longer ones the middle is left out.

    Example:
        >>> from polymux._util.html_repr import escaped
        >>> escaped("<script>")
        '&lt;script&gt;'
    """
    return _escape(_shown(unsigned(str(text)), most))


def preformatted(text: object, most: int = 20_000) -> str:
    """The text as a block of HTML that keeps its lines."""
    return f'<pre style="white-space: pre-wrap">{escaped(text, most)}</pre>'


def is_address(text: str) -> bool:
    """Whether the text is an address of a page or file that a browser may be sent to.

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
    """A link of HTML; the text alone where the address is none, or holds a password or a key."""
    if not is_address(url) or "@" in urlsplit(url).netloc or redact(url) != url:
        return escaped(text)
    return f'<a href="{_escape(url)}" rel="noopener noreferrer">{escaped(text)}</a>'


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table of HTML.

    Args:
        rows: Cells that are HTML already; of very many rows the first 200 are taken.
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
    """A line outside of blocks of code; its own code becomes a tag that holds plain characters."""
    made, position = [], 0
    for code in re.finditer(_CODE, line):
        made.append(re.sub(_MEANINGFUL, _character, line[position : code.start()]))
        made.append(f"<code>{re.sub(_PUNCTUATION, _character, code.group(2).strip())}</code>")
        position = code.end()
    made.append(re.sub(_MEANINGFUL, _character, line[position:]))
    return "".join(made)


def markdown(text: str) -> str:
    """What a model wrote, as Markdown in which nothing is a tag, a picture, a link or a formula.

    Headings, lists, emphasis, tables and code stay. A picture or a script in an answer would tell
    strangers who reads it; a dollar sign in it is money more often than mathematics.

    Args:
        text: The answer; of very long ones the middle is left out.

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
    """A text as a block of code in Markdown, whatever is in it."""
    return "\n".join(_block(_shown(text, _MAX_MARKDOWN_CHARACTERS).split("\n"), language)).strip()


def _block(lines: list[str], language: str) -> list[str]:
    """A block of code whose fence nothing in it can end."""
    longest = max((len(run) for run in re.findall("`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    known = language if re.fullmatch(_LANGUAGE, language) else ""
    return ["", f"{fence}{known}", *lines, fence, ""]


def linked_path(path: Path, text: str) -> str:
    """A link to a file below the notebook's own folder; the text where no browser would open it."""
    try:
        below = path.absolute().relative_to(Path.cwd())
    except (OSError, ValueError):
        return escaped(text)
    return f'<a href="{quote(below.as_posix())}">{escaped(text)}</a>'


def embedded(tag: str, content_type: str, data: bytes) -> str:
    """An image, sound or video whose bytes are part of the page."""
    source = (
        f"data:{escaped(content_type)};base64,{b2a_base64(data, newline=False).decode('ascii')}"
    )
    controls, end = ("", "") if tag == "img" else (" controls", f"</{tag}>")
    return f'<{tag}{controls} src="{source}" style="max-width: 100%">{end}'


def image(content_type: str, data: bytes, height_px: int = 240) -> str:
    """An embedded image; the type and size alone if browsers do not show it or it is large."""
    kind = content_type.lower()
    if kind not in _IMAGE_TYPES or len(data) > MAX_EMBEDDED_BYTES:
        return f"<div>{escaped(kind)}, {size(len(data))}</div>"
    return embedded("img", kind, data).replace("max-width: 100%", f"max-height: {height_px}px")


def key_values(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names and values, all of them text."""
    return table([(escaped(name), escaped(value)) for name, value in pairs])


def facts(one: object, names: Iterable[str]) -> str:
    """Names and values; what is not known, or empty, is left out.

    Args:
        one: The result.
        names: Its attributes, in the order in which they are shown.

    Example:
        >>> from polymux import Progress
        >>> from polymux._util.html_repr import facts
        >>> told = facts(Progress(30.0, None, 480_000, 0.5), ("position_s", "duration_s"))
        >>> "position s" in told, "duration" in told
        (True, False)
    """
    found = ((name.replace("_", " "), _plain(getattr(one, name))) for name in names)
    return key_values((name, value) for name, value in found if value != "")


def _plain(value: Any) -> str:
    """A value in short. Of a file the name: its folder says who keeps it where."""
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
    """Shows its fields in notebooks. Base class of results; `_shown` names the fields if given."""

    __slots__ = ()
    _shown: ClassVar[tuple[str, ...]] = ()

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        # Here: it takes a quarter of a first request, and answers are no dataclasses.
        from dataclasses import fields

        own: Any = self
        return facts(self, self._shown or [one.name for one in fields(own)])
