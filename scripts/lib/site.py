"""The pages of the site: those of docs/, and those that people look for elsewhere.

MkDocs loads this file as its hook; the tests use the same functions without MkDocs.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
#: File of the repository to its page, in the folder of the pages.
ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "CHANGELOG.md": "changelog.md",
    "THIRD_PARTY.md": "third-party.md",
    "contract/README.md": "contract.md",
    "benchmarks/README.md": "benchmarking.md",
    "notebooks/pages/quickstart.md": "notebook-quickstart.md",
    "notebooks/pages/local.md": "notebook-local.md",
    "notebooks/pages/pipeline.md": "notebook-pipeline.md",
    "notebooks/pages/songs.md": "notebook-songs.md",
    "notebooks/pages/administration.md": "notebook-administration.md",
}
#: The same the other way, and pages that stand for another file.
_PAGES = ELSEWHERE | {"README.md": "index.md"}
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


def prose(text: str) -> Iterator[tuple[int, int]]:
    """Where Markdown is not code: beginnings and ends of what lies between fences and backquotes.

    Text of a link may hold code, so that a link is looked for around it: see `links`.
    """
    position = 0
    for fence in _FENCE.finditer(text):
        yield position, fence.start()
        position = fence.end()
    yield position, len(text)


def links(text: str) -> Iterator[re.Match[str]]:
    """Links of Markdown outside of code: group 1 is the text, group 2 where it leads."""
    for begin, end in prose(text):
        code = [one.span() for one in _CODE.finditer(text, begin, end)]
        for link in _LINK.finditer(text, begin, end):
            if not any(first < link.start() < last for first, last in code):
                yield link


def is_outside(target: str) -> bool:
    """Whether a link leads to another site."""
    return "://" in target or target.startswith("mailto:")


def relinked(text: str, origin: str) -> str:
    """A page's Markdown with links as they are on the site.

    A file of the repository that has no page is named and not linked: the site stands alone.

    Args:
        text: As it lies in the repository.
        origin: Where, such as ``contract/README.md``.
    """
    pieces, position = [], 0
    for link in links(text):
        words, target = link.groups()
        path, mark, anchor = target.partition("#")
        if is_outside(target) or not path:
            continue
        file = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        page = _PAGES.get(file) or (
            file.removeprefix("docs/") if file.startswith("docs/") else None
        )
        if page is not None:
            instead = f"[{words}]({page}{mark}{anchor})"
        elif file in words.replace("`", ""):
            instead = words
        else:
            instead = f"{words} (`{file}`)"
        pieces += [text[position : link.start()], instead]
        position = link.end()
    return "".join([*pieces, text[position:]])


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that lie elsewhere in the repository (a hook of MkDocs)."""
    from mkdocs.structure.files import File

    for origin, page in ELSEWHERE.items():
        text = (ROOT / origin).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links as they are on the site (a hook of MkDocs)."""
    del config, files
    origins = {one: origin for origin, one in ELSEWHERE.items()}
    name = page.file.src_uri
    return relinked(markdown, origins.get(name, f"docs/{name}"))
