from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from polymux.errors import InvalidRequestError
from polymux.models import diffusion_folders, import_local, manifest
from polymux.models.diffusion_folders import weight_bytes
from polymux.models.families import layout_of
from support.models import contents
from support.repositories import pipeline, safetensors, write

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.models.folder import ModelsFolder

WEIGHTS = "diffusion_pytorch_model.safetensors"
HALF = "diffusion_pytorch_model.fp16.safetensors"


def test_a_pipeline_is_known_by_its_index(tmp_path: Path) -> None:
    """A pipeline consists of the files that are loaded: the plain variant, and no pickles."""
    needless = {
        "README.md": b"",
        "whole.safetensors": b"",
        f"unet/{HALF}": b"",
        "unet/diffusion_pytorch_model.bin": b"",
        "safety_checker/model.safetensors": b"",
        "unet/.hidden.json": b"",
    }
    seeds = {"seed_images/vibes.png": b"png"}
    place = write(tmp_path / "m", pipeline() | needless | seeds)
    for family in (None, "diffusion"):
        found = layout_of(place, family)
        assert (found.family, found.paths) == ("diffusion", {"model": "."})
        assert sorted(found.files) == sorted([*pipeline(), *seeds])
    with pytest.raises(InvalidRequestError, match=r"\bchat\b"):
        layout_of(place, "chat")


@pytest.mark.parametrize(
    ("named", "variant"),
    [
        ({}, None),
        ({"unet": HALF}, "fp16"),
        ({"unet": "diffusion_pytorch_model.bf16.safetensors"}, "bf16"),
    ],
)
def test_the_variant_that_a_loader_gets(
    tmp_path: Path, named: dict[str, str], variant: str | None
) -> None:
    files = pipeline(named)
    place = write(tmp_path / "m", files)
    assert sorted(layout_of(place).files) == sorted(files)
    assert diffusion_folders.variant_of(place) == variant
    # All weights: 24 numbers, in several files.
    assert weight_bytes(place, 4) == 4 * (15 + 7 + 2)


def test_all_weights_in_one_file(tmp_path: Path) -> None:
    files = {name: data for name, data in pipeline().items() if not name.endswith(WEIGHTS)}
    files["checkpoint.safetensors"] = safetensors(a=(10,))
    place = write(tmp_path / "m", files)
    assert sorted(layout_of(place).files) == sorted(files)
    assert weight_bytes(place, 2) == 20


@pytest.mark.parametrize(
    "config",
    [
        {"_class_name": "ControlNetModel"},
        {"architectures": ["StableDiffusionSafetyChecker"]},
    ],
)
def test_a_part_alone(tmp_path: Path, config: dict[str, object]) -> None:
    files = {"config.json": json.dumps(config).encode(), HALF: safetensors(a=(3,))}
    place = write(tmp_path / "m", files | {"README.md": b"", "other.json": b"{}"})
    assert sorted(layout_of(place).files) == sorted(files)
    assert weight_bytes(place, 2) == 6


def test_what_is_no_model(tmp_path: Path) -> None:
    for name, files in {
        "empty": {"a.txt": b""},
        "transformers": {"config.json": b'{"architectures": ["Bert"]}'},
        "nonsense": {"model_index.json": b"["},
        "no-class": {"model_index.json": b'{"unet": ["diffusers", "UNet2DConditionModel"]}'},
    }.items():
        with pytest.raises(InvalidRequestError, match="save_pretrained"):
            layout_of(write(tmp_path / name, files))


@pytest.mark.parametrize(
    ("missing", "more", "words"),
    [
        ([f"unet/{WEIGHTS}"], {}, r"\bunet\b"),
        (
            [f"unet/{WEIGHTS}"],
            {"unet/diffusion_pytorch_model.bin": b""},
            "polymux models add",
        ),
        (["tokenizer/vocab.json", "tokenizer/merges.txt"], {}, r"\btokenizer\b"),
    ],
)
def test_pipelines_that_lack_something(
    tmp_path: Path, missing: list[str], more: dict[str, bytes], words: str
) -> None:
    files = {name: data for name, data in pipeline().items() if name not in missing}
    with pytest.raises(InvalidRequestError, match=words):
        layout_of(write(tmp_path / "m", files | more))


def test_a_lora_and_what_is_none(tmp_path: Path, folder: ModelsFolder) -> None:
    write(
        tmp_path,
        {
            "l/more_details.safetensors": safetensors(unet__down__lora_A__weight=(4, 2)),
            "whole.safetensors": safetensors(
                model__diffusion_model__x=(2,), cond_stage_model__x=(2,)
            ),
            "other.safetensors": safetensors(x=(2,)),
            "cut.safetensors": safetensors(x=(2,))[:5],
            "huge.safetensors": (1 << 40).to_bytes(8, "little") + b"{}",
        },
    )
    made = import_local.add("more_details", tmp_path / "l", folder)
    path = tmp_path / "l" / "more_details.safetensors"
    assert (made.family, made.engine_options()) == ("diffusion", {"model": str(path)})
    whole = import_local.add("whole", tmp_path / "whole.safetensors", folder)
    assert whole.family == "sdcpp"
    for name in ("other", "cut", "huge"):
        with pytest.raises(InvalidRequestError, match=rf"{name}\.safetensors"):
            import_local.add(name, tmp_path / f"{name}.safetensors", folder)


def test_a_folder_is_linked_copied_and_removed(tmp_path: Path, folder: ModelsFolder) -> None:
    place = write(tmp_path / "mine", pipeline())
    linked = import_local.add("linked", place, folder)
    copied = import_local.add("copied", place, folder, copy=True)
    assert (linked.kind, copied.kind, linked.problem, copied.problem) == ("linked", "owned", "", "")
    kept = contents(folder.path / "copied")
    kept.pop("polymux-model.json")
    assert kept == pipeline()
    assert folder.damage(linked) == folder.damage(copied) == []
    (place / "vae" / WEIGHTS).unlink()
    assert f"vae/{WEIGHTS}" in folder.get("linked").problem
    assert folder.damage(linked) == [f"vae/{WEIGHTS}"]
    # Only foreign files are left.
    (folder.path / "copied" / "unet" / "notes.txt").write_text("mine")
    assert folder.remove("copied") == [folder.path / "copied" / "unet"]
    assert list(contents(folder.path / "copied")) == ["unet/notes.txt"]
    assert folder.remove("linked") == [place]
    assert (place / "unet" / WEIGHTS).is_file()


def test_links_out_of_the_folder(tmp_path: Path, folder: ModelsFolder) -> None:
    """Some programs store models as links. The targets can be copied and are never removed."""
    place = write(tmp_path / "mine", pipeline())
    blob = tmp_path / "blob"
    (place / "unet" / WEIGHTS).rename(blob)
    (place / "unet" / WEIGHTS).symlink_to(blob)
    with pytest.raises(InvalidRequestError, match="--copy"):
        import_local.add("mine", place, folder)
    import_local.add("mine", place, folder, copy=True)
    unet = folder.path / "mine" / "unet"
    assert (unet / WEIGHTS).read_bytes() == blob.read_bytes()
    assert not (unet / WEIGHTS).is_symlink()
    # If a link replaces a folder, the model is damaged, and `rm` removes only the link.
    elsewhere = tmp_path / "elsewhere"
    unet.rename(elsewhere)
    unet.symlink_to(elsewhere)
    assert "unet/config.json" in folder.get("mine").problem
    assert folder.remove("mine") == [unet]
    assert (elsewhere / WEIGHTS).is_file()


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/x",
        "a/../x",
        "a//x",
        "a/.x",
        "",
        "a/",
        "a/b/c/d/e",
        "polymux-model.json",
        "a\0b",
        5,
    ],
)
def test_names_that_manifests_cannot_have(name: object) -> None:
    with pytest.raises(ValueError):
        manifest.check_file_name(name)


def test_names_that_manifests_can_have() -> None:
    for name in ("x", "unet/x.json", "a/b/c/x", "a/polymux-model.json"):
        manifest.check_file_name(name)
