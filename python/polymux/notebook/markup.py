"""Text from outside as HTML and as Markdown that are text, and nothing else."""

from __future__ import annotations

import html
import re
from itertools import takewhile
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from polymux._util.redaction import redact
from polymux._util.text import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["code", "escaped", "is_address", "link", "markdown", "preformatted", "table", "unsigned"]

_MAX_CHARACTERS = 2_000
_MAX_MARKDOWN_CHARACTERS = 100_000
_MAX_ROWS = 200
#: What follows the path of an address may be what opens it.
_QUERY = re.compile(r"(https?://[^\s?#\"'<>]+)[?#][^\s\"'<>]+", re.IGNORECASE)
_USER = re.compile(r"(https?://)[^\s/@\"'<>]+@", re.IGNORECASE)
_FENCE = re.compile(r"( *)(`{3,}|~{3,}) *([^`\s]*)[^`]*")
_LANGUAGE = re.compile(r"[\w+#.-]{1,20}", re.ASCII)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
#: What could begin a tag, an entity, a link, a picture, code or a formula.
_MEANINGFUL = re.compile(r"[&<\[\]\\$`]")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def unsigned(text: str) -> str:
    """The text with addresses cut where a signature, or a password, may be.

    Example:
        >>> from polymux.notebook.markup import unsigned
        >>> unsigned("see https://files.example/a.png?signature=1 there")
        'see https://files.example/a.png?... there'
    """
    return _USER.sub(r"\1", _QUERY.sub(r"\1?...", text))


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
        >>> from polymux.notebook.markup import escaped
        >>> escaped("<script>")
        '&lt;script&gt;'
    """
    return html.escape(_shown(unsigned(str(text)), most))


def preformatted(text: object, most: int = 20_000) -> str:
    """The text as a block of HTML that keeps its lines."""
    return f'<pre style="white-space: pre-wrap">{escaped(text, most)}</pre>'


def is_address(text: str) -> bool:
    """Whether the text is an address of a page or file that a browser may be sent to.

    Example:
        >>> from polymux.notebook.markup import is_address
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
    return f'<a href="{html.escape(url)}" rel="noopener noreferrer">{escaped(text)}</a>'


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
    lines += ["".join(f"<td{style}>{cell}</td>" for cell in row) for row in kept[:_MAX_ROWS]]
    more = f"<div>and {len(kept) - _MAX_ROWS} more</div>" if len(kept) > _MAX_ROWS else ""
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{more}"


def _character(match: re.Match[str]) -> str:
    return f"&#{ord(match.group())};"


def _spoken(line: str) -> str:
    """A line outside of blocks of code; its own code becomes a tag that holds plain characters."""
    made, position = [], 0
    for code in _CODE.finditer(line):
        made.append(_MEANINGFUL.sub(_character, line[position : code.start()]))
        made.append(f"<code>{_PUNCTUATION.sub(_character, code.group(2).strip())}</code>")
        position = code.end()
    made.append(_MEANINGFUL.sub(_character, line[position:]))
    return "".join(made)


def markdown(text: str) -> str:
    """What a model wrote, as Markdown in which nothing is a tag, a picture, a link or a formula.

    Headings, lists, emphasis, tables and code stay. A picture or a script in an answer would tell
    strangers who reads it; a dollar sign in it is money more often than mathematics.

    Args:
        text: The answer; of very long ones the middle is left out.

    Example:
        >>> from polymux.notebook.markup import markdown
        >>> markdown("**Bold** <b>5</b>, `a<b`")
        '**Bold** &#60;b>5&#60;/b>, <code>a&#60;b</code>'
    """
    made: list[str] = []
    lines = iter(_shown(text, _MAX_MARKDOWN_CHARACTERS).split("\n"))
    for line in lines:
        begins = _FENCE.fullmatch(line)
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
    known = language if _LANGUAGE.fullmatch(language) else ""
    return ["", f"{fence}{known}", *lines, fence, ""]
