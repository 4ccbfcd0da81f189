"""Hook of MkDocs: add pages from outside docs/ to the site and adapt links between pages."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
#: File of the repository to its page on the site.
ELSEWHERE = {
    "CONTRIBUTING.md": "development/contributing.md",
    "SECURITY.md": "development/reporting.md",
    "CHANGELOG.md": "help/changelog.md",
    "THIRD_PARTY.md": "help/third-party.md",
    "contract/README.md": "development/contract.md",
    "notebooks/pages/quickstart.md": "notebooks/quickstart.md",
    "notebooks/pages/local.md": "notebooks/local.md",
    "notebooks/pages/pipeline.md": "notebooks/pipeline.md",
    "notebooks/pages/songs.md": "notebooks/songs.md",
    "notebooks/pages/administration.md": "notebooks/administration.md",
}
#: Also files that another page stands for.
_PAGES = ELSEWHERE | {
    "README.md": "index.md",
    "benchmarks/README.md": "development/benchmarks.md",
}
#: Weight of pages in search, by the beginning of their path: guides before references.
_SEARCH_WEIGHTS = {
    "guides/": 4.0,
    "deploy/": 4.0,
    "integrations/": 3.0,
    "get-started/": 3.0,
    "notebooks/": 0.3,
    "development/": 0.2,
    "help/third-party": 0.1,
    "reference/command-line": 0.3,
    "reference/operations": 0.3,
    "reference/python-api": 0.3,
    "help/troubleshooting": 0.7,
    "benchmarks": 0.5,
}
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


def prose(text: str) -> Iterator[tuple[int, int]]:
    """Yield beginnings and ends of the text outside of fenced code."""
    position = 0
    for fence in _FENCE.finditer(text):
        yield position, fence.start()
        position = fence.end()
    yield position, len(text)


def links(text: str) -> Iterator[re.Match[str]]:
    """Yield links outside of code: group 1 is the text, group 2 the target."""
    for begin, end in prose(text):
        code = [one.span() for one in _CODE.finditer(text, begin, end)]
        for link in _LINK.finditer(text, begin, end):
            if not any(first < link.start() < last for first, last in code):
                yield link


def is_outside(target: str) -> bool:
    """Return whether a link leads to another site."""
    return "://" in target or target.startswith("mailto:")


def page_of(file: str) -> str | None:
    """Return the page of a file of the repository, as a path on the site."""
    return _PAGES.get(file) or (file.removeprefix("docs/") if file.startswith("docs/") else None)


def relinked(text: str, origin: str) -> str:
    """Return a page's Markdown with links between pages of the site.

    A link to a file that has no page becomes text, as the site must work offline.

    Args:
        text: Markdown, with links relative to `origin`.
        origin: Path of the file in the repository, such as ``contract/README.md``.
    """
    folder = posixpath.dirname(page_of(origin) or "")
    pieces, position = [], 0
    for link in links(text):
        words, target = link.groups()
        path, mark, anchor = target.partition("#")
        if is_outside(target) or not path:
            continue
        file = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        page = page_of(file)
        if page is not None:
            instead = f"[{words}]({posixpath.relpath(page, folder or '.')}{mark}{anchor})"
        elif file in words.replace("`", ""):
            instead = words
        else:
            instead = f"{words} (`{file}`)"
        pieces += [text[position : link.start()], instead]
        position = link.end()
    return "".join([*pieces, text[position:]])


def on_files(files: Any, config: Any) -> Any:
    """Add pages from outside docs/ (called by MkDocs)."""
    from mkdocs.structure.files import File

    for origin, page in ELSEWHERE.items():
        text = (ROOT / origin).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Adapt the links of a page, and set its weight in search (called by MkDocs)."""
    del config, files
    origins = {one: origin for origin, one in ELSEWHERE.items()}
    name = page.file.src_uri
    for beginning, weight in _SEARCH_WEIGHTS.items():
        if name.startswith(beginning):
            page.meta["search"] = {"boost": weight}
    return relinked(markdown, origins.get(name, f"docs/{name}"))
