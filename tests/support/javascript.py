"""Finds the string literals of JavaScript modules that a user may see."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[\w$]+)
    |(?P<sign>=>|===?|!==?|\?\?=?|\|\|=?|&&=?|\+=|\.\.\.|\?\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
#: Before a slash, these mean that it begins a regular expression.
_BEFORE_REGEX = re.compile(r"(?:[(,=:\[!&|?{};+]|=>|\breturn)$")
#: Functions to the arguments from which on they show text; others show none.
_SHOWING = {
    "make": 1, "button": 0, "announce": 0, "notify": 0, "empty": 1, "heading": 0, "fill": 1,
    "scrolled": 1, "table": 0, "copyButton": 1, "player": 2, "append": 0, "prepend": 0,
    "complain": 2, "folded": 0, "section": 0, "tile": 0, "act": 0, "linkOut": 1, "Error": 0,
    "fail": 0, "confirmed": 0, "askFor": 0,
}  # fmt: skip
_SHOWN_PROPERTIES = ("aria-label", "title", "alt", "placeholder", "label", "ariaLabel",
                     "textContent", "ariaDescription")  # fmt: skip
#: What stands in these is for programs.
_TECHNICAL_PROPERTIES = ("class", "className", "rel", "type", "d", "aria-describedby",
                         "aria-labelledby", "id", "for", "download")  # fmt: skip
_SELECTING_CALLS = ("querySelector", "querySelectorAll", "closest", "matches", "import",
                    "getContext", "addEventListener", "setAttribute")  # fmt: skip
_TECHNICAL_CALLS = (*_SELECTING_CALLS, "t")
_PROSE = re.compile(r"[A-Za-zÀ-ÿ]{2,}[,.:;]? [A-Za-zÀ-ÿ]|^[A-Z][a-zß-ÿ]+(?:[ ….:,?!]|$)")
#: In a template, a word beside a value.
_PROSE_IN_TEMPLATE = re.compile(r"(?:^| )[A-Za-zÀ-ÿ]{2,}[,.:;]?(?: |$)")
_VALUE = "\0"


@dataclass
class _Place:
    """An open bracket: the function before it, the argument, and the property of an object."""

    sign: str
    call: str
    argument: int = 0
    property: str = ""
    before: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Literal:
    """A string literal, or a template with a NUL character for each value.

    Attributes:
        is_shown: A user may see it.
        is_name: Only programs read it: a selector, a class, an element or an icon.
    """

    text: str
    line: int
    is_shown: bool
    is_name: bool


def shown_literals(source: str, allowed: frozenset[str] = frozenset()) -> list[Literal]:
    """The literals that a user may see, except those in `allowed`."""
    return [one for one in literals(source) if one.is_shown and one.text not in allowed]


def literals(source: str) -> Iterator[Literal]:
    """All string literals and templates, except the names of imported modules."""
    source = re.sub(r'^(?:import|export) [^;]*? from "[^"]*";$', "", source, flags=re.MULTILINE)
    yield from _Scanner(source).run(0, len(source))


class _Scanner:
    def __init__(self, source: str) -> None:
        self.source = source
        self.places = [_Place("", "")]

    def run(self, start: int, end: int) -> Iterator[Literal]:
        at = start
        while at < end:
            place = self.places[-1]
            if self.source[at] == "`":
                text, at, inner = self._template(at)
                yield self._literal(text, at, is_template=True)
                for first, last in inner:
                    yield from self.run(first, last)
                place.before.append("`")
                continue
            before = "".join(place.before[-3:])
            if self.source[at] == "/" and (not before or _BEFORE_REGEX.search(before)):
                found = _REGEX.match(self.source, at)
                if found and not self.source.startswith(("//", "/*"), at):
                    at = found.end()
                    place.before.append("regex")
                    continue
            token = _TOKEN.match(self.source, at)
            assert token, self.source[at : at + 40]
            at = token.end()
            if token.lastgroup == "string":
                text = token.group()[1:-1]
                if self.source[at : at + 1] == ":" and place.sign == "{":
                    place.before.append(text)
                else:
                    yield self._literal(text, at, is_template=False)
                    place.before.append('"')
            elif token.lastgroup == "name":
                place.before.append(token.group())
            elif token.lastgroup == "sign":
                self._sign(token.group())

    def _sign(self, sign: str) -> None:
        place = self.places[-1]
        if sign in "([{":
            last = place.before[-1] if place.before else ""
            call = last if sign == "(" and re.fullmatch(r"[\w$]+", last) else ""
            # Parentheses around a value and lists belong to the call around them.
            inherited = not call and sign != "{"
            self.places.append(
                _Place(sign, place.call if inherited else call,
                       place.argument if inherited else 0, place.property if inherited else "")
            )  # fmt: skip
            return
        if sign in ")]}":
            if len(self.places) > 1:
                self.places.pop()
            self.places[-1].before.append(sign)
            return
        if sign == "," or (sign == ";"):
            place.argument += sign == "," and place.sign == "("
            if place.sign != "[":
                place.property = ""
        elif (sign == ":" and place.sign == "{" and place.before and not place.property) or (
            sign == "=" and place.before[-2:-1] == ["."]
        ):
            place.property = place.before[-1]
        place.before.append(sign)

    def _template(self, at: int) -> tuple[str, int, list[tuple[int, int]]]:
        """The text of a template, its end, and the ranges of its values."""
        text, inner = "", []
        at += 1
        while self.source[at] != "`":
            if self.source[at] == "\\":
                text += self.source[at : at + 2]
                at += 2
            elif self.source.startswith("${", at):
                first = at = at + 2
                depth = 1
                while depth:
                    if self.source[at] == "`":
                        at = self._template(at)[1]
                        continue
                    depth += {"{": 1, "}": -1}.get(self.source[at], 0)
                    at += 1
                inner.append((first, at - 1))
                text += _VALUE
            else:
                text += self.source[at]
                at += 1
        return text, at + 1, inner

    def _literal(self, text: str, at: int, *, is_template: bool) -> Literal:
        place = self.places[-1]
        line = self.source.count("\n", 0, at) + 1
        shown = self._is_shown(place, text, is_template=is_template)
        return Literal(text, line, shown, self._is_name(place))

    @staticmethod
    def _is_name(place: _Place) -> bool:
        if place.property in _TECHNICAL_PROPERTIES or place.call in _SELECTING_CALLS:
            return True
        return place.call in ("make", "icon", "empty") and place.argument == 0

    @staticmethod
    def _is_shown(place: _Place, text: str, *, is_template: bool) -> bool:
        words = text.replace(_VALUE, " ").strip()
        if not re.search(r"[A-Za-zÀ-ÿ]{2}", words):
            return False
        if place.property in _TECHNICAL_PROPERTIES or place.call in _TECHNICAL_CALLS:
            return False
        # Comparisons and choices of a key are for programs.
        if place.before and place.before[-1] in ("===", "!==", "[", "case"):
            return False
        if place.property in _SHOWN_PROPERTIES and (place.sign == "{" or not place.call):
            return True
        first = _SHOWING.get(place.call)
        if place.sign in ("(", "[") and first is not None and place.argument >= first:
            return True
        pattern = _PROSE_IN_TEMPLATE if is_template else _PROSE
        return any(pattern.search(part) for part in text.split(_VALUE)) and " " in f"{text} "
