"""The page in its languages, and its catalogs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect
from polymux import contract

from browser.test_access import check_axe, show_playground

if TYPE_CHECKING:
    from typing import Any

    from playwright.sync_api import Page

    from browser.conftest import Opened

#: The names of both catalogs with their placeholders, and the choices with their values.
_CATALOGS = """async () => {
  const { ENGLISH } = await import("./texts-en.js");
  const german = await import("./texts-de.js");
  const valuesOf = (choices) => Object.entries(choices).flatMap(
    ([field, values]) => Object.keys(values).map((value) => `${field}=${value}`));
  const named = (texts) => Object.fromEntries(Object.entries(texts).map(([name, text]) => {
    if (typeof text === "string") return [name, text ? [] : "empty"];
    if (name === "choices") return [name, valuesOf(text).sort()];
    if (typeof text === "object") return [name, Object.keys(text).sort()];
    const found = new Set();
    text(new Proxy({}, { get: (_, value) => { found.add(value); return 2; } }));
    return [name, [...found].sort()];
  }));
  return { english: named(ENGLISH), german: named(german.texts), operations: german.operations };
}"""


def catalogs(page: Page) -> Any:
    return page.evaluate(_CATALOGS)


def test_the_catalogs_have_the_same_texts_with_the_same_values(opened: Opened) -> None:
    with opened("songs") as page:
        found = catalogs(page)
        assert found["german"] == found["english"]
        assert len(found["english"]) > 100


def technical(text: str) -> list[str]:
    """What a translation keeps: names of fields and values, and numbers."""
    return sorted(re.findall(r"`[^`]+`|(?<![\w.])\d[\d.:]*\d|(?<!\w)\d(?!\w)", text))


def test_every_operation_and_field_is_translated(opened: Opened) -> None:
    """A translation names the same values as the contract, which may change."""
    with opened("songs") as page:
        german = catalogs(page)["operations"]
    known = {one["name"]: one for one in contract.describe()}
    assert german.keys() == known.keys()
    for name, operation in known.items():
        translated = german[name]
        assert translated["title"]
        assert translated["summary"]
        used = set()
        for variant in operation["variants"]:
            if variant.get("summary"):
                assert technical(translated["variants"][variant["id"]]) == technical(
                    variant["summary"]
                )
            for field in variant["fields"]:
                if field.get("deprecated"):
                    continue
                own = f"{variant.get('id') or ''}.{field['name']}"
                key = own if own in translated["fields"] else field["name"]
                used.add(key)
                title, doc = translated["fields"][key]
                assert title, (name, key)
                assert technical(doc) == technical(field["doc"]), (name, key)
        assert used == translated["fields"].keys(), name


def test_choices_that_have_labels_are_of_the_contract(opened: Opened) -> None:
    with opened("songs") as page:
        labelled = set(catalogs(page)["english"]["choices"])
    fields = [field for one in contract.operations() for variant in one.variants
              for field in variant.fields]  # fmt: skip
    fields += [
        member for field in fields if field.items_object for member in field.items_object.fields
    ]
    known = {f"{field.name}={choice}" for field in fields for choice in field.choices or ()}
    assert labelled <= known


def test_the_language_of_the_browser_is_used(opened: Opened) -> None:
    with opened("playground", locale="de-DE") as page:
        show_playground(page)
        assert page.evaluate("document.documentElement.lang") == "de"
        page.get_by_role("link", name="Bilder erzeugen").click()
        expect(page.get_by_label("Breite", exact=True)).to_be_visible()
        expect(page.get_by_text("Am besten arbeitet das").first).to_be_visible()
        page.get_by_role("button", name="Ausführen").focus()
        check_axe(page)
    with opened("playground", locale="fr-FR") as page:
        show_playground(page)
        assert page.evaluate("document.documentElement.lang") == "en"


def test_the_language_is_changed_and_remembered(opened: Opened) -> None:
    with opened("playground/convert_to_mp3") as page:
        expect(page.get_by_role("heading", name="Conversion to MP3", level=1)).to_be_visible()
        assert not [url for url in page.guard.asked if url.endswith("-de.js")]  # type: ignore[attr-defined]
        page.get_by_role("button", name="Language: English").click()
        expect(page.get_by_role("heading", name="In MP3 umwandeln", level=1)).to_be_visible()
        expect(page.get_by_role("button", name="Sprache: Deutsch")).to_be_focused()
        expect(page.get_by_role("navigation", name="Hauptnavigation")).to_be_visible()
        page.reload()
        expect(page.get_by_role("heading", name="In MP3 umwandeln", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.lang") == "de"
        page.get_by_role("button", name="Sprache: Deutsch").click()
        expect(page.get_by_role("heading", name="Conversion to MP3", level=1)).to_be_visible()
