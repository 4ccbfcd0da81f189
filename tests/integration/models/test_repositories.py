"""Models from local repositories: requests, checks, errors and recorded hashes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from polymux.errors import URLRefusedError
from polymux.fetch.fetcher import FetchPolicy
from polymux.models import download, registry, repositories
from polymux.models.errors import ModelError
from support.models import contents, sha256
from support.repositories import COMMIT, NAME, Hub, described, hub, pickled, pipeline, safetensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.models.folder import Installed, ModelsFolder
    from polymux.models.registry import Model

WEIGHTS = "diffusion_pytorch_model.safetensors"


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub({NAME: pipeline()}) as found:
        monkeypatch.setenv("POLYMUX_MODELS_URL", f"{found.url}/")
        yield found


def model(tmp_path: Path, wanted: str = "", files: str = "") -> Model:
    """A model of the test registry with all folders of the repository by default."""
    text = described(wanted, files)
    path = tmp_path / f"{sha256(text.encode())}.toml"
    path.write_text(text)
    return registry.read(path)[0]


def pull(found: Hub, one: Model, folder: ModelsFolder) -> Installed:
    """The storage host must be allowed: the default is only POLYMUX_MODELS_URL's host."""
    policy = FetchPolicy(allowed_hosts=(found.storage.removeprefix("http://"),))
    return download.pull(one, folder, policy=policy)


def test_a_pipeline(offered: Hub, folder: ModelsFolder, tmp_path: Path) -> None:
    """Required files are downloaded and checked. Pickles and other variants are not."""
    needless = {
        "README.md": b"words",
        ".gitattributes": b"",
        "whole.safetensors": b"all of it",
        "unet/diffusion_pytorch_model.bin": b"a pickle",
        "unet/diffusion_flax_model.msgpack": b"flax",
        "unet/model.onnx": b"onnx",
        "unet/diffusion_pytorch_model.non_ema.safetensors": safetensors(a=(9,)),
        "safety_checker/model.safetensors": b"apart",
    }
    needed = pipeline() | {"LICENSE.md": b"the licence"}
    offered.files[NAME] = needed | needless
    offered.page = 4
    made = pull(offered, model(tmp_path), folder)
    assert sorted(offered.asked) == sorted(needed)
    kept = contents(folder.path / "tiny")
    manifest = json.loads(kept.pop("polymux-model.json"))
    assert kept == needed
    assert {one["name"]: one["sha256"] for one in manifest["files"]} == {
        name: sha256(data) for name, data in needed.items()
    }
    assert manifest["source"] == f"{NAME} at {COMMIT[:12]}"
    assert (made.problem, made.kind, made.family) == ("", "owned", "diffusion")
    assert made.engine_options() == {"model": str(folder.path / "tiny")}
    assert folder.damage(made) == []
    (folder.path / "tiny" / "unet" / "config.json").write_bytes(b"x" * 39)
    assert folder.damage(made) == ["unet/config.json"]
    assert folder.remove("tiny") == []
    assert list(folder.path.iterdir()) == []


def test_half_precision_is_taken_where_both_are(
    offered: Hub, folder: ModelsFolder, tmp_path: Path
) -> None:
    half = pipeline({"unet": "diffusion_pytorch_model.fp16.safetensors"})
    offered.files[NAME] = half | {f"unet/{WEIGHTS}": safetensors(a=(99,))}
    pull(offered, model(tmp_path), folder)
    assert sorted(offered.asked) == sorted(half)


def test_what_the_registry_knows_counts(offered: Hub, folder: ModelsFolder, tmp_path: Path) -> None:
    """Pinned files are compared with the repository's list before any download."""

    def pinned(data: bytes) -> str:
        return (
            f'{{name = "unet/{WEIGHTS}", bytes = {len(data)}, sha256 = "{sha256(data)}", '
            'source = "r"},'
        )

    good = offered.files[NAME][f"unet/{WEIGHTS}"]
    with pytest.raises(ModelError, match=WEIGHTS):
        pull(offered, model(tmp_path, files=pinned(good + b"?")), folder)
    assert offered.asked == []
    pull(offered, model(tmp_path, files=pinned(good)), folder)
    assert folder.get("tiny").problem == ""
    begins = f'{{source = "r", path = "unet/{WEIGHTS}", name = "x", sha256_begins = "%s"}},'
    found = repositories.resolved(model(tmp_path, begins % sha256(good)[:10]))
    assert found.files[0].sha256 == sha256(good)
    with pytest.raises(ModelError, match="0123"):
        repositories.resolved(model(tmp_path, begins % "0123"))


def test_patterns(offered: Hub, tmp_path: Path) -> None:
    """They name exactly one file of the repository, and errors say what is there."""
    offered.files[NAME] = {
        "net-Q4_0.gguf": b"small", "net-Q8_0.gguf": b"large", "parts/vae-Q4_0.gguf": b"vae",
        "README.md": b"words",
    }  # fmt: skip

    def resolved(path: str) -> Model:
        text = f'{{source = "r", path = "{path}", name = "model.gguf"}},'
        return repositories.resolved(model(tmp_path, text))

    (file,) = resolved("net-[qQ]4_0*.gguf").files
    assert (file.name, file.sha256) == ("model.gguf", sha256(b"small"))
    assert file.parts[0].source.path == "net-Q4_0.gguf"
    for path, shown in (
        ("net-*.gguf", ("net-Q4_0.gguf", "net-Q8_0.gguf")),
        ("net-Q5*.gguf", ("net-Q4_0.gguf", "net-Q8_0.gguf", "parts/vae-Q4_0.gguf")),
        ("net-Q5_0.gguf", ("net-Q4_0.gguf", "net-Q8_0.gguf")),
        ("*.safetensors", ("net-Q4_0.gguf", "README.md")),
    ):
        with pytest.raises(ModelError) as failure:
            resolved(path)
        for one in (NAME, path, *shown):
            assert one in str(failure.value)
    with pytest.raises(ModelError, match="path"):
        model(tmp_path, '{source = "r", path = "../*.gguf", name = "model.gguf"},')


@pytest.mark.parametrize("path", [f"unet/{WEIGHTS}", "unet/config.json"])
def test_bytes_that_differ_from_the_list(
    offered: Hub, folder: ModelsFolder, tmp_path: Path, path: str
) -> None:
    data = offered.files[NAME][path]
    offered.sent[path] = data[:-1] + b"?"
    with pytest.raises(ModelError, match=path):
        pull(offered, model(tmp_path), folder)
    assert folder.find("tiny") is None
    assert offered.sent[path] not in contents(folder.path).values()
    # Complete files are kept and not requested again.
    offered.sent.clear()
    before, offered.asked = set(offered.asked), []
    pull(offered, model(tmp_path), folder)
    assert path in offered.asked
    assert set(offered.asked) & before == {path}


@pytest.mark.parametrize(
    "path",
    ["../evil.json", "/etc/evil.json", "unet//e.json", "a\\b", "a\n"],
)
def test_a_list_that_leads_elsewhere(
    offered: Hub, folder: ModelsFolder, tmp_path: Path, path: str
) -> None:
    offered.listed["unet/config.json"] = {"path": path}
    with pytest.raises(ModelError, match=NAME):
        pull(offered, model(tmp_path), folder)
    assert offered.asked == []
    assert contents(folder.path) == {}


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ({"size": -1}, "unet/config.json"),
        ({"oid": "0" * 39}, "unet/config.json"),
        ({"lfs": {"oid": "zz", "size": 3}}, "unet/config.json"),
        ({"path": "vae/config.json"}, "vae/config.json"),
        ({"path": 5}, NAME),
    ],
)
def test_a_list_of_nonsense(
    offered: Hub, folder: ModelsFolder, tmp_path: Path, lie: dict[str, object], words: str
) -> None:
    offered.listed["unet/config.json"] = lie
    with pytest.raises(ModelError, match=words):
        pull(offered, model(tmp_path), folder)
    assert offered.asked == []


@pytest.mark.parametrize(
    ("where", "status", "words"),
    [
        ("/revision/", 401, "models add"),
        ("/resolve/", 403, "models add"),
        ("/revision/", 404, NAME),
        ("/tree/", 429, NAME),
        ("/tree/", 500, "500"),
    ],
)
def test_a_service_that_refuses(
    offered: Hub, folder: ModelsFolder, tmp_path: Path, where: str, status: int, words: str
) -> None:
    offered.status[where] = status
    with pytest.raises(ModelError, match=words):
        pull(offered, model(tmp_path), folder)
    assert folder.find("tiny") is None


def test_terms_that_must_be_agreed_to(offered: Hub, folder: ModelsFolder, tmp_path: Path) -> None:
    offered.about["gated"] = "auto"
    with pytest.raises(ModelError, match="models add"):
        pull(offered, model(tmp_path), folder)
    offered.about = {"sha": "main"}
    with pytest.raises(ModelError, match=r"\bmain\b"):
        pull(offered, model(tmp_path), folder)


def test_files_and_folders_that_there_are_not(
    offered: Hub, folder: ModelsFolder, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"\bx\b"):
        pull(offered, model(tmp_path, '{source = "r", path = "x", name = "y"},'), folder)
    with pytest.raises(ModelError, match="scheduler"):
        pull(offered, model(tmp_path, '{source = "r", path = "scheduler"},'), folder)
    del offered.files[NAME][f"vae/{WEIGHTS}"]
    with pytest.raises(ModelError, match=r"\bvae\b"):
        pull(offered, model(tmp_path), folder)


def test_the_storage_is_judged_like_any_address(
    offered: Hub, folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(URLRefusedError):
        download.pull(model(tmp_path), folder)
    monkeypatch.setenv("POLYMUX_MODELS_URL", "file:///etc")
    with pytest.raises(ValueError, match="POLYMUX_MODELS_URL"):
        download.pull(model(tmp_path), folder)


def test_pickles_are_converted(offered: Hub, folder: ModelsFolder, tmp_path: Path) -> None:
    numbers = bytes(range(24))
    files = pipeline({"unet": "diffusion_pytorch_model.bin"})
    files["unet/diffusion_pytorch_model.bin"] = pickled({"w.x": (numbers, (2, 3))})
    offered.files[NAME] = files
    made = pull(offered, model(tmp_path), folder)
    kept = contents(folder.path / "tiny")
    assert "unet/diffusion_pytorch_model.bin" not in kept
    data = kept[f"unet/{WEIGHTS}"]
    assert data.endswith(numbers)
    assert b'"w.x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}' in data
    assert "pickle" in made.manifest.source
    assert folder.damage(made) == []
    assert hashlib.sha256(data).hexdigest() in {one.sha256 for one in made.manifest.files}


def test_a_pickle_that_wants_more(offered: Hub, folder: ModelsFolder, tmp_path: Path) -> None:
    files = pipeline({"unet": "diffusion_pytorch_model.bin"})
    files["unet/diffusion_pytorch_model.bin"] = pickled({"w": (bytes(4), (1,))}, evil=Path.touch)
    offered.files[NAME] = files
    with pytest.raises(ModelError, match=r"getattr|touch"):
        pull(offered, model(tmp_path), folder)
    assert folder.find("tiny") is None
    # Pickles split into several files are not converted.
    offered.files[NAME] = pipeline({"unet": "diffusion_pytorch_model-00001-of-00002.bin"})
    with pytest.raises(ModelError, match=r"docs/reference/models\.md"):
        pull(offered, model(tmp_path), folder)
