"""The pages as a site: what a strict build would find, without building it.

`scripts/docs` builds it with an environment of its own, and `scripts/lint` calls that.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import unicodedata
from typing import TYPE_CHECKING

import pytest
from support.native_build import ROOT

if TYPE_CHECKING:
    from types import ModuleType


def _site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "scripts/lib/site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = _site()
#: Page of the site to the file that it is made of.
FILES = {
    **{path.relative_to(ROOT / "docs").as_posix(): path for path in ROOT.glob("docs/**/*.md")},
    **{page: ROOT / origin for origin, page in SITE.ELSEWHERE.items()},
}


def navigation() -> list[str]:
    """Pages in the order of the navigation."""
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    return re.findall(r"^ +- [^:\n]+: (\S+\.md)$", text, re.MULTILINE)


def headings(text: str) -> list[str]:
    found = []
    for begin, end in SITE.prose(text):
        found += re.findall(r"^#{1,6} +(.+?)\s*$", text[begin:end], re.MULTILINE)
    return [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one).replace("`", "") for one in found]


def slug_of_mkdocs(heading: str) -> str:
    """As Python-Markdown's `toc` makes it."""
    ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    words = re.sub(r"[^\w\s-]", "", ascii_only).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def slug_of_forges(heading: str) -> str:
    """As the places where people read the repository make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken(page: str, text: str, files: dict[str, str]) -> list[str]:
    """Links of a page's Markdown on the site that lead nowhere."""
    found = []
    for link in SITE.links(text):
        target = link.group(2)
        if SITE.is_outside(target):
            continue
        path, _, anchor = target.partition("#")
        other = files.get(path or page)
        if other is None:
            found.append(f"{page}: {target}: no such page")
        elif anchor:
            found += [
                f"{page}: {target}: no such heading ({slug.__name__})"
                for slug in (slug_of_mkdocs, slug_of_forges)
                if anchor not in [slug(one) for one in headings(other)]
            ]
    return found


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(navigation()) == sorted(FILES)


def test_links_between_pages_and_to_headings_lead_somewhere() -> None:
    texts = {
        page: SITE.relinked(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
        for page, path in FILES.items()
    }
    assert [one for page, text in texts.items() for one in broken(page, text, texts)] == []


@pytest.mark.parametrize(
    ("origin", "text", "expected"),
    [
        ("docs/a.md", "[x](#c) [y](https://z.example)", "[x](#c) [y](https://z.example)"),
        ("docs/a.md", "[x](../CONTRIBUTING.md#rules)", "[x](contributing.md#rules)"),
        ("CONTRIBUTING.md", "[x](docs/a.md)", "[x](a.md)"),
        ("docs/a.md", "[the `store`](../python/s.py)", "the `store` (`python/s.py`)"),
        ("docs/a.md", "```text\n[x](../y.py)\n```\n", "```text\n[x](../y.py)\n```\n"),
    ],
)
def test_links_of_the_repository_become_those_of_the_site(
    origin: str, text: str, expected: str
) -> None:
    assert SITE.relinked(text, origin) == expected


def test_lists_and_tables_begin_after_a_blank_line() -> None:
    """Elsewhere they need none; Python-Markdown takes them for text."""
    found = []
    for page, path in FILES.items():
        text = path.read_text(encoding="utf-8")
        for begin, end in SITE.prose(text):
            lines = text[begin:end].splitlines()
            for before, line in itertools.pairwise(lines):
                starts = re.match(r"(- |\d+\. |\|)", line)
                goes_on = before.startswith((" ", "-", "|")) or re.match(r"\d+\. ", before)
                if starts and before.strip() and not goes_on:
                    found.append(f"{page}: {line}")
    assert found == []


def test_the_site_asks_nobody_else() -> None:
    """No font, analytics, or feature that fetches; the build looks at the pages themselves."""
    text = (ROOT / "mkdocs.yml").read_text()
    settings = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    assert "://" not in settings
    assert re.search(r"^  font: false$", settings, re.MULTILINE)
    for name in ("analytics", "repo_url", "mermaid", "instant", "social", "extra_javascript"):
        assert name not in settings
    assert (ROOT / "docs/javascripts/iframe-worker.js").is_file()
