"""Tables of the docs that speak of the code: what does what, models, settings, and figures."""

from __future__ import annotations

import json
import re
import sys
import tomllib

import pytest
from polymux import contract
from polymux._util.settings import rules_of
from polymux.engines.registry import ENGINES
from polymux.media.options import Limits as MediaLimits
from polymux.models.registry import all_models
from polymux.runtime import settings as runtime_settings
from polymux.server import settings as server_settings
from polymux.server.settings.settings import ServerSettings
from polymux.service.routes import Route
from polymux.upstreams.model_names import OPENAI_OPERATIONS
from polymux.upstreams.replicate.models import operations_of
from support.native_build import ROOT

sys.path.append(str(ROOT / "scripts/lib"))

from contract import settings_tables

OPERATIONS = {name: one.operations for name, one in ENGINES.items()}
KINDS = ("real model", "real work", "plumbing only", "upstream only", "small model")
#: What README calls them.
README_KINDS = {
    "real model": KINDS[0], "no model": KINDS[1], "stand-in": KINDS[2], "small model": KINDS[4],
}  # fmt: skip
#: Backends that are no family of engines, and what they do.
OTHERS = {
    "songs": ("search_music", "identify_song"),
    "song_search": ("search_music",),
    "song_recognition": ("identify_song",),
    "download": ("download_video", "download_music"),
    "summaries": ("summarize_video",),
}


def marked(page: str, name: str) -> str:
    """The text between two marks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(f"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", text, re.DOTALL)
    assert found is not None
    return found[1]


def cells(table: str) -> list[list[str]]:
    """Rows without header; cells without blanks at their ends."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[one.strip() for one in line.strip("|").split("|")] for line in lines[2:]]


WHAT = cells(marked("docs/reference/models.md", "what does what"))


def code_words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_package_is_described_as_in_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert f"{project['description']}." in lines[:8]


def test_every_settings_class_is_exported() -> None:
    classes = {one.name for one in settings_tables.TABLES.values()}
    assert classes <= set(server_settings.__all__)
    assert classes - {"CompatSettings", "ServerSettings"} <= set(runtime_settings.__all__)
    names = {*server_settings.__all__, *runtime_settings.__all__}
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    text = "".join(one.read_text(encoding="utf-8") for one in pages)
    assert set(re.findall(r"\b[A-Z][a-z]\w*Settings\b|SummaryOptions", text)) <= names


def test_readme_says_what_each_operation_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    kinds = {(code_words(row[0])[0], row[2]) for row in WHAT}
    names = []
    for operation, needs, _, tested, upstreams in cells(marked("README.md", "operations")):
        assert set(code_words(needs)) <= set(project["optional-dependencies"])
        for name in code_words(operation):
            names.append(name)
            assert (name, README_KINDS[tested]) in kinds
            able = {"OpenAI API": name in OPENAI_OPERATIONS}
            able["Replicate API"] = name in operations_of({})
            assert upstreams == (", ".join(one for one in able if able[one]) or "none")
    assert set(names) == {one.name for one in contract.operations()}


def test_every_operation_has_its_row() -> None:
    documented = dict.fromkeys(code_words(row[0])[0] for row in WHAT)
    assert list(documented) == [one.name for one in contract.operations()]
    assert {row[2] for row in WHAT} <= set(KINDS)


@pytest.mark.parametrize("row", WHAT, ids=lambda row: row[0])
def test_engines_and_upstreams_can_do_it(row: list[str]) -> None:
    (operation,) = code_words(row[0])
    able = {name: OTHERS.get(name) or OPERATIONS[name] for name in code_words(row[1])}
    assert {name for name, one in able.items() if operation not in one} == set()
    assert bool(able) != (row[2] == "upstream only")
    upstreams = [
        *(["OpenAI-compatible"] if operation in OPENAI_OPERATIONS else []),
        *(["Replicate-compatible"] if operation in operations_of({}) else []),
        "polymux",
    ]
    assert row[3] == ", ".join(upstreams)


def test_no_engine_is_left_out() -> None:
    documented = {(name, code_words(row[0])[0]) for row in WHAT for name in code_words(row[1])}
    able = {**OPERATIONS, **OTHERS}
    assert documented == {(name, one) for name, operations in able.items() for one in operations}


def size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"


def test_models_and_their_licences() -> None:
    documented = [
        [code_words(name)[0], code_words(family)[0], licence, use, size.removeprefix("about "), yes]
        for name, family, licence, use, size, yes in cells(
            marked("docs/reference/models.md", "models")
        )
    ]
    # The tests install the models that come in packages.
    known = [
        [
            one.name, one.family, one.license, one.commercial_use, size(one.download_bytes),
            "yes" if any(source.project for source in one.sources) else "no",
        ]
        for one in all_models()
    ]  # fmt: skip
    assert documented == known, json.dumps(known, indent=1)


CONFIGURATION = "docs/deploy/configuration.md"
#: Settings whose values are other tables; the page has a heading for each.
TABLES = {
    "limits", "fetch", "store", "songs", "song_recognition", "song_search", "download",
    "summaries", "engines", "upstreams", "ray", "routes", "compat",
}  # fmt: skip


def settings_classes() -> dict[str, type]:
    """The settings class of each table of the page."""
    found: dict[str, type] = {"server": ServerSettings, "routes": Route}
    for name, one in rules_of(ServerSettings).items():
        kind = one.table or one.tables
        if kind is not None:
            found[name] = kind
    return found | {"media limits": MediaLimits}


def test_every_setting_has_its_row() -> None:
    assert settings_classes().keys() - {"server", "media limits"} == TABLES
    for name, kind in settings_classes().items():
        documented = [code_words(row[0])[0] for row in cells(marked(CONFIGURATION, name))]
        known = [one for one in rules_of(kind) if one not in TABLES or name != "server"]
        assert sorted(documented) == sorted(known), name


def test_every_table_of_settings_has_its_heading() -> None:
    page = (ROOT / CONFIGURATION).read_text(encoding="utf-8")
    named = set(re.findall(r"^##+ .*`\[(\w+)[^`]*\]`$", page, re.MULTILINE))
    assert named == TABLES


def test_every_option_of_engines_has_its_row() -> None:
    page = (ROOT / CONFIGURATION).read_text(encoding="utf-8")
    table = page.partition("| engine | option |")[2].partition("\n\n")[0]
    documented = {(code_words(row[0])[0], code_words(row[1])[0]) for row in cells(f"|{table}")}
    assert documented == {(name, option) for name, one in ENGINES.items() for option in one.options}
