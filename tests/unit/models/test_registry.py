from __future__ import annotations

import hashlib
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from polymux.models import manifest, registry
from polymux.models.errors import ModelError
from polymux.models.families import FAMILIES, is_name
from polymux.models.roles import FAMILIES_WITH_ROLES, ROLES, request_of, roles_named
from support.models import sha256
from support.native_build import ROOT
from support.weights import folder_of

if TYPE_CHECKING:
    from pathlib import Path

MODELS = {one.name: one for one in registry.all_models()}
FILES = (registry.FILE, registry.FILE.with_name(registry.FURTHER))
SHA256 = re.compile("[0-9a-f]{64}")
#: Forms of the values in sources: pip and repositories use them in commands and URLs.
FORMS = {
    "sha256": SHA256.pattern,
    "file": r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}",
    "project": "[a-z0-9]+(-[a-z0-9]+)*",
    "version": r"[0-9][0-9a-z.]*",
    "url": r"https://\S+",
    "repository": r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}",
    "revision": r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
}
#: The SPDX licenses of the models in the registry.
LICENSES = {"Apache-2.0", "MIT", "BSD-3-Clause", "CC-BY-NC-4.0"}
#: The options that an engine accepts for a model, besides its paths.
OPTIONS = {
    "chat": {"system_prompt"}, "speech": set(), "upscale": {"factor", "input", "output"},
    "diffusion": set(),
}  # fmt: skip
#: Models from packages; the tests install these packages.
PACKAGED = [name for name, one in MODELS.items() if one.family not in FAMILIES_WITH_ROLES]


@pytest.mark.parametrize("name", PACKAGED)
def test_it_names_the_bytes_of_the_packages(name: str) -> None:
    """Length and SHA-256 of every file of a model match the installed package."""
    model = MODELS[name]
    assert model.license in LICENSES
    assert model.license_source
    assert model.title
    assert set(model.options) == OPTIONS[model.family]
    # The text of the license comes with the model.
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
    # invisible-watermark is installed only for a comparison with polymux's own watermark.
    assert set(pinned) - set(named) <= {"invisible-watermark"}
    entries = [one for file in FILES for one in tomllib.loads(file.read_text())["source"].values()]
    whole = {one.sha256 for one in sources if not one.repository}
    assert {one["sha256"] for one in entries if "sha256" in one} == whole
    repositories = {name for one in MODELS.values() for name in one.repositories}
    assert {one["repository"] for one in entries if "repository" in one} == repositories


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


def read(tmp_path: Path, text: str) -> tuple[registry.Model, ...]:
    path = tmp_path / f"{sha256(text.encode())}.toml"
    path.write_text(text)
    return registry.read(path)


def test_a_good_one(tmp_path: Path) -> None:
    (model,) = read(tmp_path, GOOD)
    assert [one.file for one in model.sources] == ["tiny-1.0-py3-none-any.whl", "m.bin"]
    assert (model.bytes, model.download_bytes) == (16, 1007)
    assert [[part.member for part in one.parts] for one in model.files] == [
        ["tiny/a", "tiny/b"],
        [""],
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_files_of_the_package_are_sound(path: Path) -> None:
    plain = tomllib.loads(path.read_text())
    for key, source in plain["source"].items():
        own = {"repository", "revision"} if "repository" in source else {"file", "sha256", "bytes"}
        more = {"project", "version"} if "url" not in source else {"url"}
        assert set(source) == own | (set() if "repository" in source else more), key
        assert source.get("bytes", 1) > 0, key
        for name, value in source.items():
            assert name == "bytes" or re.fullmatch(FORMS[name], value), (key, name)
        is_wheel = re.fullmatch(r"\w[\w.]*(-[\w.]+){4,5}\.whl", source.get("file", ""))
        assert bool(is_wheel) == ("project" in source), key
    names = [one["name"] for one in plain["model"]]
    assert len(set(names)) == len(names)
    for model in plain["model"]:
        if "with" in model:
            others = {one.name for one in MODELS[model["with"]["model"]].files}
            assert set(model["with"]["without"]) <= others, model["name"]
        assert {"file", "wanted"} & set(model), model["name"]


@pytest.mark.parametrize("name", MODELS)
def test_the_files_of_a_model_are_sound(name: str) -> None:
    model = MODELS[name]
    assert is_name(name)
    assert model.family in FAMILIES
    names = [one.name for one in model.files] + [one.name for one in model.wanted if one.name]
    assert len(set(names)) == len(names)
    assert manifest.FILE_NAME not in names
    assert "model" in model.paths
    assert set(model.paths.values()) <= {".", *names}
    assert bool(model.wanted) == (model.about_bytes is not None)
    for file in model.files:
        assert file.parts, file.name
        assert sum(one.bytes or 0 for one in file.parts) == file.bytes, file.name
        for one in (file, *file.parts):
            assert SHA256.fullmatch(one.sha256), file.name
            assert (one.bytes or 0) > 0, file.name
        for part in file.parts:
            assert not part.source.url or part.source.sha256 == part.sha256, file.name
            assert not {"", ".", ".."} & set((part.member or part.source.path or "a").split("/"))
    manifest.check_description(model.native_size, None, dict(model.defaults), ())
    own = [role for role, one in ROLES.items() if one.model == name]
    assert not (own and model.suits)
    operations = {(request_of(role) or ("",))[0] for role in roles_named(model.suits)}
    assert operations <= set(FAMILIES[model.family].operations)
    assert (model.seconds is None) == (model.seconds_for == "")
    assert model.commercial_use in ("yes", "no", "limited")
    for wanted in model.wanted:
        assert re.fullmatch(FORMS["repository"], wanted.repository)
        assert re.fullmatch("[0-9a-f]{0,64}", wanted.sha256_begins)
        assert not wanted.name or wanted.path not in ("", ".")


@pytest.mark.parametrize(
    ("text", "before", "after", "words"),
    [
        ("good", 'name = "tiny"', "", "name"),
        ("good", 'name = "m.gguf"', 'name = "../m.gguf"', "'../m.gguf'"),
        ("good", 'license = "MIT"', "", "license"),
        ("good", 'source = "u"', 'source = "v"', "'v'"),
        ("good", 'title = "a model"', 'title = "a"\nscript = "rm"', "script"),
        ("good", "[source.w]", "nonsense\n[source.w]", "line 2"),
        ("repository", 'name = "unet/w.safetensors", m', 'name = "../w", m', "'../w'"),
        ("repository", 'name = "unet/w.safetensors", m', 'name = "a/b/c/d/w", m', "'a/b/c/d/w'"),
        ("repository", 'name = "unet/w.safetensors", m', 'name = "unet/.w", m', "'unet/.w'"),
        ("repository", 'path = "vae"', 'path = "vae/.."', "'vae/..'"),
        ("repository", 'name = "unet/w.safetensors", s', 'name = "../w", s', "'../w'"),
        ("repository", 'model = "base"', 'model = "nothing"', "'nothing'"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, text: str, before: str, after: str, words: str
) -> None:
    good = {"good": GOOD, "repository": REPOSITORY}[text]
    assert before in good
    with pytest.raises(ModelError, match=words):
        read(tmp_path, good.replace(before, after, 1))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nothing\.toml"):
        registry.read(tmp_path / "nothing.toml")


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
