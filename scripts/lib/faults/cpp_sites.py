"""Finds possible faults in C++ code formatted by clang-format."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from faults.fault import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = re.compile(
    r"""
    (?P<skipped> //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:\\\n|[^\n])* )
    | (?P<string> (?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"
        | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' )
    | (?P<word> [A-Za-z_]\w* )
    | (?P<number> \.?\d(?:'?[\w.]|(?<=[eEpP])[+-])* )
    | (?P<operator> <=> | <<= | >>= | ->\*? | \.\.\. | :: | \+\+ | -- | && | \|\|
        | [<>=!+\-*/%&|^]= | << | >> | \S )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
COMPARISONS = {
    "<": [">=", "<="],
    "<=": [">", "<"],
    ">": ["<=", ">="],
    ">=": ["<", ">"],
    "==": ["!="],
    "!=": ["=="],
}
OTHERS = {
    "&&": ("||", "and, or"),
    "||": ("&&", "and, or"),
    "true": ("false", "constant"),
    "false": ("true", "constant"),
}
#: Changed statements of these kinds do not compile, or have no effect at run time.
COMPILE_TIME = {"template", "requires", "concept", "static_assert", "noexcept", "operator", "using"}


class Token(NamedTuple):
    text: str
    kind: str
    start: int
    #: Whether blanks or line ends surround it, which distinguishes operators from template
    #: brackets.
    spaced: bool


def sites(text: str) -> list[Site]:
    found = []
    for statement in _statements(_tokens(text)):
        if not COMPILE_TIME.isdisjoint(token.text for token in statement):
            continue
        for index in range(1, _code_length(statement) - 1):
            found += _sites_at(text, statement, index)
    return found


def _tokens(text: str) -> Iterator[Token]:
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "mark":
            kind = "string"
        around = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
        if kind != "skipped":
            yield Token(match.group(), kind, match.start(), len(around.split()) == 0)


def _statements(tokens: Iterator[Token]) -> Iterator[list[Token]]:
    """Split at `;`, `{` and `}`, and keep that token as the first of the next statement."""
    statement: list[Token] = []
    for token in tokens:
        statement.append(token)
        if token.text in {";", "{", "}"}:
            yield statement
            statement = [token]


def _code_length(statement: list[Token]) -> int:
    """Return the number of tokens before a message: all, or the condition if there is a text."""
    texts = [token.text for token in statement if token.text.endswith('"')]
    choice = any(token.text == "?" for token in statement)
    if not any(choice or re.search(r"\w \w|\w: |\w '| \w", text) for text in texts):
        return len(statement)
    depth = 0
    words = [token.text for token in statement[1:3]]
    if not {"if", "while", "for"}.intersection(words):
        return 0
    for index, token in enumerate(statement):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == ")" and depth == 0:
            return index + 1
    return len(statement)


def _sites_at(text: str, statement: list[Token], index: int) -> list[Site]:
    before, token, after = statement[index - 1 : index + 2]
    others: list[str] = []
    kind = ""
    if token.kind == "operator" and token.text in COMPARISONS and token.spaced:
        # The compiler rejects `>= 0` for an unsigned number.
        others = COMPARISONS[token.text][: 1 if after.text.startswith("0") else 2]
        kind = "comparison"
    elif token.text in {"&&", "||"} and token.spaced:
        others, kind = [OTHERS[token.text][0]], OTHERS[token.text][1]
    elif token.text in {"true", "false"}:
        # Functions that end with `while (true)` need no return; `<true>` belongs to a type.
        if before.text != "<" and after.text != ">" and statement[index - 2].text != "while":
            others, kind = [OTHERS[token.text][0]], OTHERS[token.text][1]
    elif token.text in {"+", "-"} and token.spaced and after.text == "1":
        if (before.kind in {"word", "number"} and before.text != "return") or before.text in ")]":
            others, kind = ["-" if token.text == "+" else "+"], "plus, minus"
    elif token.text == "!" and (after.kind == "word" or after.text == "("):
        others, kind = [""], "removed not"
    line = text.count("\n", 0, token.start) + 1
    column = token.start - (text.rfind("\n", 0, token.start) + 1)
    return [Site(line, column, token.text, other, kind) for other in others]
