"""The catalogue: what is in it is true, and what is wrong in one is found."""

from __future__ import annotations

import hashlib
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from polymux.models import catalogue
from polymux.models.errors import ModelError
from polymux.models.roles import ROLES
from support.models import sha256
from support.native_build import ROOT
from support.weights import folder_of

if TYPE_CHECKING:
    from pathlib import Path

MODELS = {one.name: one for one in catalogue.all_models()}
#: Of SPDX's list, those that models in the catalogue are under.
LICENSES = {"Apache-2.0", "MIT", "BSD-3-Clause", "CC-BY-NC-4.0"}
#: What engines take for a model beside its paths.
OPTIONS = {
    "chat": set(), "speech": set(), "upscale": {"factor", "input", "output"}, "diffusion": set(),
}  # fmt: skip
#: Models that come in packages, which the tests have.
PACKAGED = [name for name, one in MODELS.items() if one.family != "diffusion"]


@pytest.mark.parametrize("name", PACKAGED)
def test_it_names_the_bytes_of_the_packages(name: str) -> None:
    """All files of a model, as they lie in the installed packages: by length and SHA-256."""
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
    for file in model.files:
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
    sources = [source for one in MODELS.values() for source in one.sources]
    named = {one.project: one.version for one in sources if one.project}
    assert named == {project: pinned.get(project) for project in named}
    # The others are compared with what polymux makes itself.
    assert set(pinned) - set(named) <= {"invisible-watermark"}
    files = [catalogue.FILE, catalogue.FILE.with_name(catalogue.FURTHER)]
    told = [one for file in files for one in tomllib.loads(file.read_text())["source"].values()]
    whole = {one.sha256 for one in sources if not one.repository}
    assert {one["sha256"] for one in told if "sha256" in one} == whole
    repositories = {name for one in MODELS.values() for name in one.repositories}
    assert {one["repository"] for one in told if "repository" in one} == repositories


def test_each_role_has_a_model() -> None:
    for role in ROLES.values():
        model = MODELS[role.model]
        assert (model.family, model.paths) == ("diffusion", {"model": "."})


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


SHA = "34" * 32
REPOSITORY = f"""
[source.r]
repository = "owner/model"
revision = "main"
[[model]]
name = "base"
family = "diffusion"
title = "a model"
license = "MIT"
license_source = "here"
paths = {{ model = "." }}
file = [
    {{ name = "model_index.json", bytes = 9, source = "r", sha256 = "{"12" * 32}" }},
    {{ name = "unet/w.safetensors", member = "w", bytes = 7, source = "r", sha256 = "{SHA}" }},
]
[[model]]
name = "other"
family = "diffusion"
title = "a model"
license = "MIT"
license_source = "here"
paths = {{ model = "." }}
about_bytes = 100
with = {{ model = "base", without = ["unet/w.safetensors"] }}
wanted = [
    {{ source = "r", path = "vae" }},
    {{ source = "r", path = "own/w", name = "unet/w.safetensors", sha256_begins = "ab" }},
]
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
        ('name = "m.gguf"', 'name = "polymux-model.json"', "manifest"),
        ('name = "m.gguf"', 'name = "m.bin"', "two files have one name"),
        ('member = "tiny/a"', 'member = "../../etc/passwd"', "not of its form"),
        ('member = "tiny/a"', 'member = "tiny/../../a"', "no plain path"),
        ('member = "tiny/a"', "", "member=''"),
        ('family = "chat"', 'family = "songs"', "no family"),
        ('title = "a model"', "title = 5", "title must be there"),
        ('license = "MIT"', "", "license must be there"),
        ("bytes = 9", "bytes = 10", "not as long as the whole"),
        ("bytes = 1000", "bytes = 0", "no size"),
        (f'"{"ab" * 32}"', f'"{"AB" * 32}"', "sha256="),
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
        ("[source.w]", "nonsense\n[source.w]", "cannot be read"),
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


def test_repositories(tmp_path: Path) -> None:
    base, other = read(tmp_path, REPOSITORY)
    assert [(one.path, one.file, one.sha256) for one in base.sources] == [
        ("model_index.json", "model_index.json", "12" * 32), ("w", "w", "34" * 32),
    ]  # fmt: skip
    assert (base.bytes, base.download_bytes, base.origins) == (16, 16, ("owner/model at main",))
    assert (other.files, other.bytes) == (base.files[:1], 100)
    assert [(one.path, one.name, one.sha256_begins) for one in other.wanted] == [
        ("vae", "", ""), ("own/w", "unet/w.safetensors", "ab"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('repository = "owner/model"', 'repository = "owner"', "repository="),
        ('revision = "main"', 'revision = "../main"', "revision="),
        ('name = "unet/w.safetensors", member', 'name = "../w.safetensors", member', "of its form"),
        ('name = "unet/w.safetensors", member', 'name = "a/b/c/d/w", member', "of its form"),
        ('name = "unet/w.safetensors", member', 'name = "unet/.w", member', "of its form"),
        ('member = "w"', 'member = "../w"', "member="),
        ('path = "vae"', 'path = "vae/.."', "no plain path"),
        ('path = "own/w"', 'path = "."', "must be that of a file"),
        ('name = "unet/w.safetensors", sha256_b', 'name = "../w", sha256_b', "no plain path"),
        (
            'name = "unet/w.safetensors", sha256_b',
            'name = "model_index.json", sha256_b',
            "one name",
        ),
        ('sha256_begins = "ab"', 'sha256_begins = "AB"', "sha256_begins="),
        ("about_bytes = 100", "", "about_bytes belongs"),
        ('model = "base"', 'model = "nothing"', "no model 'nothing' before it"),
        ('without = ["unet/w.safetensors"]', 'without = ["x"]', "is none of the files of base"),
        ('{ source = "r", path = "vae" }', '{ source = "s", path = "vae" }', "no source 's'"),
    ],
)
def test_what_is_wrong_with_repositories_is_named(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    assert before in REPOSITORY
    with pytest.raises(ModelError, match=words):
        read(tmp_path, REPOSITORY.replace(before, after, 1))
