"""The catalogue: what is in it is true, and what is wrong in one is found."""

from __future__ import annotations

import hashlib
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from polymux.cli import models as command
from polymux.models import catalogue
from polymux.models.failures import ModelError
from polymux.models.families import FAMILIES
from polymux.server.backends import OPERATIONS
from support.models import sha256
from support.native_build import ROOT
from support.weights import folder_of

if TYPE_CHECKING:
    from pathlib import Path

MODELS = {one.name: one for one in catalogue.all_models()}
#: Of SPDX's list, those that models in the catalogue are under.
LICENSES = {"Apache-2.0", "MIT", "BSD-3-Clause"}
#: What engines take for a model beside its paths.
OPTIONS = {"chat": set(), "speech": set(), "upscale": {"factor", "input", "output"}}


@pytest.mark.parametrize("name", MODELS)
def test_it_names_the_bytes_of_the_packages(name: str) -> None:
    """All files of a model, as they lie in the installed packages: by length and SHA-256."""
    for file in MODELS[name].files:
        digest, length = hashlib.sha256(), 0
        for part in file.parts:
            package = part.source.file.split("-")[0]
            data = (folder_of(package).parent / part.member).read_bytes()
            assert (len(data), sha256(data)) == (part.bytes, part.sha256), part.member
            digest.update(data)
            length += len(data)
        assert (length, digest.hexdigest()) == (file.bytes, file.sha256), file.name


def test_its_wheels_are_those_that_the_tests_install() -> None:
    pinned = dict(
        line.split("==")
        for line in (ROOT / "requirements" / "weights.txt").read_text().splitlines()
        if "==" in line
    )
    named = {source.project: source.version for one in MODELS.values() for source in one.sources}
    assert named == pinned
    plain = tomllib.loads(catalogue.FILE.read_text())
    used = {source.sha256 for one in MODELS.values() for source in one.sources}
    assert {one["sha256"] for one in plain["source"].values()} == used


@pytest.mark.parametrize("name", MODELS)
def test_what_it_says_of_a_model(name: str) -> None:
    model = MODELS[name]
    assert model.license in LICENSES
    assert model.license_source
    assert model.title
    assert set(model.options) == OPTIONS[model.family]
    # The licence's text comes with the model.
    assert "LICENSE" in {one.name for one in model.files}
    assert model.bytes == sum(one.bytes or 0 for one in model.files)
    assert (model.download_bytes or 0) > 1_000_000
    factor = re.search(r"x(\d)", name)
    assert model.options.get("factor") == (int(factor[1]) if factor else None)


def test_families_are_said_once() -> None:
    assert tuple(FAMILIES) == command.FAMILIES
    assert {name: OPERATIONS[name] for name in FAMILIES} == {
        name: one.operations for name, one in FAMILIES.items()
    }
    for name, one in FAMILIES.items():
        recommended = catalogue.recommended(name)
        assert recommended is not None
        assert recommended.family == name
        assert f"\n{one.extra} = [" in (ROOT / "pyproject.toml").read_text()


GOOD = f"""
[source.w]
file = "tiny-1.0-py3-none-any.whl"
project = "tiny"
version = "1.0"
bytes = 1000
sha256 = "{"ab" * 32}"
[source.u]
file = "m.bin"
url = "https://models.example/m.bin"
bytes = 7
sha256 = "{"cd" * 32}"
[[model]]
name = "tiny"
family = "chat"
title = "a model"
license = "MIT"
license_source = "here"
paths = {{ model = "m.gguf" }}
[[model.file]]
name = "m.gguf"
bytes = 9
sha256 = "{"12" * 32}"
[[model.file.part]]
source = "w"
member = "tiny/a"
bytes = 4
sha256 = "{"34" * 32}"
[[model.file.part]]
source = "w"
member = "tiny/b"
bytes = 5
sha256 = "{"56" * 32}"
[[model.file]]
name = "m.bin"
bytes = 7
sha256 = "{"cd" * 32}"
source = "u"
"""


def read(tmp_path: Path, text: str) -> tuple[catalogue.Model, ...]:
    path = tmp_path / f"{sha256(text.encode())}.toml"
    path.write_text(text)
    return catalogue.read(path)


def test_a_good_one(tmp_path: Path) -> None:
    (model,) = read(tmp_path, GOOD)
    assert [one.file for one in model.sources] == ["tiny-1.0-py3-none-any.whl", "m.bin"]
    assert (model.bytes, model.download_bytes) == (16, 1007)
    assert [[part.member for part in one.parts] for one in model.files] == [
        ["tiny/a", "tiny/b"],
        [""],
    ]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('name = "tiny"', 'name = "../tiny"', "cannot be a model's name"),
        ('name = "tiny"', "", "name must be there"),
        ('name = "m.gguf"', 'name = "../m.gguf"', "not of its form"),
        ('name = "m.gguf"', 'name = ".hidden"', "not of its form"),
        ('name = "m.gguf"', 'name = "polymux-model.json"', "manifest"),
        ('name = "m.gguf"', 'name = "m.bin"', "two files have one name"),
        ('member = "tiny/a"', 'member = "../../etc/passwd"', "not of its form"),
        ('member = "tiny/a"', 'member = "tiny/../../a"', "no plain path"),
        ('member = "tiny/a"', 'member = "/etc/passwd"', "not of its form"),
        ('member = "tiny/a"', "", "member=''"),
        ('family = "chat"', 'family = "songs"', "no family"),
        ('title = "a model"', "title = 5", "title must be there"),
        ('license = "MIT"', "", "license must be there"),
        ("bytes = 9", "bytes = 10", "not as long as the whole"),
        ("bytes = 1000", "bytes = 0", "no size"),
        ("bytes = 1000", "bytes = true", "bytes must be there"),
        (f'"{"ab" * 32}"', f'"{"AB" * 32}"', "sha256="),
        ('sha256 = "12', 'sha256 = "1', "sha256="),
        ('version = "1.0"', 'version = "1.0 --index-url=http://a"', "version="),
        ('project = "tiny"', 'project = "-r tiny"', "project="),
        ('file = "tiny-1.0-py3-none-any.whl"', 'file = "tiny-1.0.tar.gz"', "file="),
        ('url = "https://models', 'url = "ftp://models', "begins with neither"),
        ('source = "u"', 'source = "v"', "no source"),
        (f'bytes = 7\nsha256 = "{"cd" * 32}"\nsource', f'bytes = 7\nsha256 = "{"ce" * 32}"\nsource',
         "whose SHA-256 is another"),
        ('paths = { model = "m.gguf" }', 'paths = { model = "other" }', "none of its files"),
        ('paths = { model = "m.gguf" }', "paths = {}", "paths.model must be there"),
        ('title = "a model"', 'title = "a"\nscript = "rm"', "script is not known"),
        ("[source.w]", "[[model]]\n[source.w]", "name must be there"),
        ("[source.w]", "nonsense\n[source.w]", "cannot be read"),
        ("[source.w]", "[sources]\n[source.w]", "sources is not known"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert GOOD.count(before) >= 1
    with pytest.raises(ModelError, match=words):
        read(tmp_path, GOOD.replace(before, after, 1))


def test_two_of_one_name_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="twice"):
        read(tmp_path, GOOD + GOOD[GOOD.index("[[model]]") :])
    with pytest.raises(ModelError, match="cannot be read"):
        catalogue.read(tmp_path / "nothing.toml")
