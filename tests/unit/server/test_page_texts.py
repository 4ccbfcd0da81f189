"""All texts of the page are in its catalogs, so that it can be translated."""

from __future__ import annotations

import re

import pytest
from polymux.server.routes.webui import FOLDER
from support.javascript import literals, shown_literals

#: The catalogs, the names of HTML entities, and code of other languages.
DATA = {"texts-en.js", "texts-de.js", "operations-de.js", "entities.js", "snippets.js"}
#: Names and units that are the same in all languages, and what only programs and developers read.
ALLOWED = frozenset({
    "polymux", "polymux \0", "Python", "OpenAI SDK", "Replicate SDK", "OpenAPI",
    "English", "Deutsch", "Enter", "Escape", "\0 min \0 s", " \0 min", "\0 kHz",
    "mailto:\0", "quiet small", "unknown text: \0", "\0: use children instead of HTML",
    "\0 · polymux", "\0px", "Bearer \0", "pmx_…", "polymux models pull \0",
    "polymux songs add FOLDER", "recording.\0",
})  # fmt: skip
CATALOGS = ["texts-en.js", "texts-de.js"]
#: Texts by the names of fields.
TABLES = {"facts", "choices"}
MODULES = sorted({one.name for one in FOLDER.glob("*.js")} - DATA)


@pytest.mark.parametrize("name", MODULES)
def test_the_texts_of_a_module_are_in_the_catalogs(name: str) -> None:
    found = shown_literals((FOLDER / name).read_text("utf-8"), ALLOWED)
    assert [(one.line, one.text) for one in found] == []


@pytest.mark.parametrize(
    "planted",
    [
        'make("p", "deleted")',
        'make("p.note", { id: "a" }, isOver ? t("done") : "running")',
        "announce(`Job ended: ${state}`)",
        'button("Stop", { name: "stop" })',
        'make("input", { placeholder: "song" })',
        "make('button', { 'aria-label': `Play ${name}` })",
        'shown.textContent = "done"',
        'const NAMES = { a: ["Audio", "songs"] };',
        'const words = "no limit";',
        "const found = `${count} waiting`;",
        'fill(place, [make("li", `${t("a")} of them`)])',
        'throw new Error("the server is away")',
        'call(/"/.test(a), make("p", "found"))',
    ],
)
def test_a_literal_that_a_user_sees_is_found(planted: str) -> None:
    source = f'import {{ make }} from "./dom.js";\n\nfunction shown() {{\n\t{planted}\n}}\n'
    assert [one.line for one in shown_literals(source)] == [4]


@pytest.mark.parametrize(
    "written",
    [
        '// "A comment"',
        'make("div.quiet", { class: "quiet small", rel: "noopener nofollow" })',
        'make("p", t("stopped"))',
        'document.querySelector("main a[href] b")',
        'if (error.name === "AbortError") return;',
        'const METHODS = ["POST", "GET"];',
        'element.className = `badge ${kind}`;',
        'ask(`api/v1/predictions/${id}`, { method: "POST" })',
        'const parts = text.split(/"quoted text"/);',
        'make("path", { d: "M5 4l14 8" })',
    ],
)  # fmt: skip
def test_what_programs_read_is_not(written: str) -> None:
    assert shown_literals(f"function shown() {{\n\t{written}\n}}\n") == []


def catalog(name: str) -> list[str]:
    return re.findall(r"^\t(\w+):", (FOLDER / name).read_text("utf-8"), re.MULTILINE)


def looked_up(source: str) -> set[str]:
    """The names in calls of `t`, whether the name is a literal or one of two."""
    names: set[str] = set()
    for arguments in re.findall(r"(?<![\w.$])t\(([^{}()]*)", source):
        first = re.sub(r'\w+\??\.\w+ ===? "[^"]*"', "", arguments).split(",")[0]
        names |= set(re.findall(r'"([^"]*)"', first))
    return names


@pytest.mark.parametrize("name", CATALOGS)
def test_every_text_that_is_looked_up_is_in_the_catalog_once(name: str) -> None:
    known = catalog(name)
    assert [one for one in set(known) if known.count(one) > 1] == []
    sources = {one: (FOLDER / one).read_text("utf-8") for one in MODULES}
    found = {text: one for one, source in sources.items() for text in looked_up(source)}
    assert len(found) > 200
    assert {text: module for text, module in found.items() if text not in known} == {}


@pytest.mark.parametrize("name", CATALOGS)
def test_every_text_of_the_catalog_is_used(name: str) -> None:
    """A name is a literal where it is looked up, or in a table of names."""
    used = {
        one.text
        for module in MODULES
        for one in literals((FOLDER / module).read_text("utf-8"))
        if not one.is_name
    }
    assert [one for one in catalog(name) if one not in used | TABLES] == []
