#!/usr/bin/env python3
"""prose.py [PATH ...]: finds sentences that are not plain technical English, and British spellings.

Reads the prose of the README, the other pages, the texts of the contract, docstrings, comments and
messages of the Python package, and comments of the C++ code. It skips code, inline code and tables.
The paths limit it to some files or folders. Run it in the root of the repository.

Prints one line per finding. The exit status is 1 if there is one.
"""

import ast
import bisect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from house_rules import files_of

#: Where the texts are. Generated files repeat texts of others.
READ = re.compile(
    r"[A-Z_]+\.md$|(docs|contract)/.*\.md$|contract/.*\.toml$"
    r"|python/polymux/.*\.(pyi?|js)$|(cpp|bindings)/.*\.[ch]pp$"
)
SKIPPED = re.compile(
    r"cpp/third_party/|.*/generated/|python/polymux/client/methods/[^_]|python/polymux/cli/operation_commands"
)

BE = r"\b(?:is|are|was|were) "
#: Advice to the pattern of what it replaces. Case does not matter.
RULES = {
    "begin with a subject or an imperative": r"^(?:what|who|whoever|whatever|(?-i:Of(?! course)))\b"
    r"(?!.*\?)(?:\W+\w+){3}",
    "use if or when for a condition": r"(?:^|[,;:] )"
    r"where (?:there|that|one|it|they|nothing|none|nobody|no)\b",
    "write not, invalid, missing or unknown": rf"(?<!there ){BE}"
    r"(?:(?-i:none)\b|no (?!longer|more|less|guarantee|problem)\w)",
    "use a modern word": r"\b(?:anew|beneath|at hand|shall|but for|whoever|wherever|hence|thus"
    r"|thereby|wherein)\b",
    "name the person or program": r"\b(?:nobody|somebody|strangers?)\b|\bone's own\b"
    r"|\b(?:of|by|for|with) others\b",
    "write its own, or leave it out": r"\bof (?:its|their|one's) own\b",
    "write reported, configured, sent, called or received": r"\b(?<!you )"
    r"(?:is|are|was|were|be|been) (?:told(?! apart)|said (?:as|that|to)|asked|heard)\b",
    "write is in, results from, continues or deleted": r"\blies? (?:at|in|on|there)\b"
    r"|\b(?:come|came|comes) (?:by|to an end)\b|\bgoes on\b|\bgone\b",
    "write supports or accepts": r"\b(?:server|client|engine|command|program|model|function|it) "
    r"knows (?!that|this|the|its|when|whether|which)",
    "write returns and the status code": rf"{BE}(?:a )?(?:40[1-9]|41\d|42\d|431|50[1-4])\b"
    r"(?! *(?:%|[kKM]i?B|bytes|ms|s|times)\b)",
    "use the standard term": r"\b(?:door|desk|clerk|errand|enlarger|bringer|tiny decoder)s?\b",
    "split the sentence": r"(?:;(?-i:(?:\s[a-z]+){3})[^;]*){3}",
    # Parts of identifiers, paths and calls are not words.
    "use US spelling": r"(?<![\w'./{-])(?:\w*colour\w*|\w*licence\w*|cancell(?:ed|ing)"
    r"|labell(?:ed|ing)|(?-i:catalogue[ds]?)|(?:behavi|fav|flav|hon|neighb)our\w*"
    r"|cent(?:re[sd]?|ring)|grey\w*|artefacts?|analys(?:e[ds]?|ing)"
    r"|(?:author|central|initial|maxim|minim|normal|optim|organ|recogn|serial|summar|synthes|util)"
    r"is(?:e[drs]?|ers|ing|ations?|able))(?![\w(/=}]|\.\w|-\w)",
}
COMPILED = {advice: re.compile(pattern, re.IGNORECASE) for advice, pattern in RULES.items()}
SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s+[A-Z\"'(`])|$)")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
LINK_TARGET = re.compile(r"\]\([^)]*\)")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|no)\.", re.IGNORECASE)

#: A text: its lines with their numbers.
Text = list[tuple[int, str]]


def markdown(text: str) -> Iterator[Text]:
    """Yield paragraphs and items of lists."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match.group().count("\n")

    text = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    text = re.sub(r"^ *(```|~~~).*?^ *\1", blank, text, flags=re.DOTALL | re.MULTILINE)
    found: Text = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        item = re.match(r"(?:[-*+]|\d+\.) +", stripped)
        if item or not stripped or stripped.startswith(("|", "#", "!", "<")):
            yield found
            found = []
        if stripped and not stripped.startswith(("|", "#", "!", "<")):
            found.append((number, stripped[item.end() :] if item else stripped))
    yield found


def comments(text: str, mark: str) -> Iterator[Text]:
    """Yield comments, without code in them. Adjacent lines are one text."""
    found: Text = []
    pattern = re.compile(rf"^\s*{mark}[!/:]?<? ?(.*)|^.*?\S  ?{mark}[/!]?<? (.*)")
    for number, line in enumerate(text.splitlines(), 1):
        match = pattern.match(line) if mark in line else None
        if not match or match[1] is None or not match[1].strip():
            yield found
            found = []
        if match and not line.endswith((";", "{", "}")):
            found.append((number, match[1] if match[1] is not None else match[2]))
    yield found


def docstring(first: int, text: str) -> Iterator[Text]:
    """Yield paragraphs of a docstring, and the descriptions of its arguments, without examples."""
    found: Text = []
    example = False
    for number, line in enumerate(text.splitlines(), first):
        stripped = line.strip()
        named = re.match(r"[\w*`]+(?: \([^)]*\))?: +|[-*] |\S+ {2,}", stripped)
        if named or not stripped or stripped.endswith(":") or stripped.startswith(">>>"):
            yield found
            found = []
        example = stripped.startswith(">>>") or (example and stripped != "")
        if not example:
            found.append((number, stripped[named.end() :] if named else stripped))
    yield found


def python(text: str) -> Iterator[Text]:
    """Yield comments, docstrings and messages."""
    yield from comments(text, "#")
    pieces: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            pieces.update(map(id, node.values))
            values = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            yield [(node.lineno, "".join(map(str, values)))]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            if "\n" in node.value:
                yield from docstring(node.lineno, node.value)
            elif id(node) not in pieces and not node.value.startswith("<"):
                yield [(node.lineno, node.value)]


def toml(text: str) -> Iterator[Text]:
    """Yield strings that have spaces, and comments."""
    yield from comments(text, "#")
    for number, line in enumerate(text.splitlines(), 1):
        for value in re.findall(r'\w+ = "((?:[^"\\]|\\.)*)"', line):
            if " " in value:
                yield [(number, value)]


def texts(path: Path) -> Iterator[Text]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from markdown(text)
    elif path.suffix in (".py", ".pyi"):
        yield from python(text)
    elif path.suffix == ".toml":
        yield from toml(text)
    else:
        yield from comments(text, "//")


def sentences(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a text with their lines, without inline code and targets of links."""
    starts, whole = [], ""
    for _, line in text:
        starts.append(len(whole))
        whole += line + " "
    # The length stays, because positions give the lines.
    whole = CODE.sub(lambda match: "`".ljust(len(match.group()), "_"), whole)
    whole = LINK_TARGET.sub(lambda match: " " * len(match.group()), whole)
    whole = ABBREVIATION.sub(lambda match: match.group().replace(".", "_"), whole)
    whole = re.sub(r"[*\[]", " ", whole)
    for match in SENTENCE.finditer(whole):
        number = text[bisect.bisect_right(starts, match.start()) - 1][0]
        yield number, re.sub(r"`_*", "CODE", " ".join(match.group().split()))


def findings(path: Path, name: str) -> Iterator[str]:
    for text in filter(None, texts(path)):
        for number, sentence in sentences(text):
            for advice, pattern in COMPILED.items():
                if pattern.search(sentence):
                    yield f"{name}:{number}: {sentence[:160]} [{advice}]"


def main() -> int:
    root = Path.cwd()
    below = tuple(argument.rstrip("/") for argument in sys.argv[1:])
    found = False
    for path in files_of(root):
        name = path.relative_to(root).as_posix()
        if not READ.match(name) or SKIPPED.match(name):
            continue
        if below and not any(name == one or name.startswith(f"{one}/") for one in below):
            continue
        for line in findings(path, name):
            print(line)
            found = True
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
