from __future__ import annotations

import importlib.util
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from polymux import contract
from polymux.downloads.settings import DownloadSettings
from polymux.engines import registry
from polymux.errors import (
    BadRequestError,
    InvalidRequestError,
    NoBackendError,
    OverloadedError,
)
from polymux.local.home import with_installed_model
from polymux.models import import_local, selection
from polymux.models.folder import ModelsFolder
from polymux.models.manifest import Kept, Manifest
from polymux.models.roles import assign_models, use
from polymux.runtime.build import backends_of, installed_engines, usual_engines
from polymux.runtime.settings import EngineSettings, StoreSettings
from polymux.server.settings.settings import ServerSettings
from polymux.service.model import OperationRequest
from polymux.service.routes import Routes
from support.models import GGUF
from support.repositories import pipeline, safetensors, write
from support.services import Scripted

if TYPE_CHECKING:
    from polymux.service.backend import Backend


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelsFolder:
    """A models folder with the chat models ``b`` and ``a`` and an upscaler by 2."""
    made = ModelsFolder(tmp_path / "models")
    (tmp_path / "m.gguf").write_bytes(GGUF)
    for suffix in (".param", ".bin"):
        (tmp_path / f"net-x2{suffix}").write_bytes(b"net")
    for name in ("b", "a"):
        import_local.add(name, tmp_path / "m.gguf", made, copy=True)
    import_local.add("net", tmp_path / "net-x2.param", made)
    monkeypatch.setenv("POLYMUX_MODELS", str(made.path))
    return made


def test_a_name_becomes_a_path(folder: ModelsFolder, tmp_path: Path) -> None:
    def chosen(family: str, **options: Any) -> Any:
        found = selection.chosen(family, options)
        assert not found.problem
        return found.options

    where = str(folder.path / "b" / "m.gguf")
    assert chosen("chat", model="b", context=512) == {
        "model": where, "aliases": ["b"], "context": 512,
    }  # fmt: skip
    assert chosen("chat", model="b", aliases=["other"])["aliases"] == ["other"]
    # Without a name, the default is the first model by name.
    for options in ({}, {"model": None}, {"model": ""}):
        assert chosen("chat", **options)["model"] == str(folder.path / "a" / "m.gguf")
    # Other settings are passed on with the model.
    net = {"model": str(tmp_path / "net-x2.param")}
    assert chosen("upscale") == net
    assert chosen("upscale", model="net", factor=4, tile=64) == {**net, "factor": 4, "tile": 64}


@pytest.mark.parametrize("path", ["/models/m.gguf", "~/m.gguf", "./b", "models/b", 5])
def test_paths_are_left_to_the_engine(folder: ModelsFolder, path: object) -> None:
    assert selection.chosen("chat", {"model": path}) == ({"model": path}, "", "")


def test_a_file_of_the_current_folder_comes_second(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert selection.chosen("chat", {"model": "m.gguf"}) == ({"model": "m.gguf"}, "", "")
    Path("b").write_bytes(b"a stranger's")
    assert selection.chosen("chat", {"model": "b"}).options["model"].startswith(str(folder.path))


@pytest.mark.parametrize(
    ("family", "options", "words"),
    [
        ("speech", {}, "'polymux models pull whisper-base'"),
        ("speech", {"model": "whisper-base"}, "'polymux models pull whisper-base'"),
        ("chat", {"model": "whisper-base"}, "whisper-base"),
        ("chat", {"model": "nothing.gguf"}, "nothing.gguf"),
        ("chat", {"model": "net"}, "upscale"),
    ],
)
def test_what_is_reported_where_there_is_none(
    folder: ModelsFolder, family: str, options: dict[str, str], words: str
) -> None:
    found = selection.chosen(family, options)
    assert found.options == options
    assert words in found.problem
    assert str(folder.path) not in found.problem


def test_a_damaged_model_is_no_default_and_says_so(folder: ModelsFolder) -> None:
    (folder.path / "a" / "m.gguf").unlink()
    assert selection.chosen("chat", {}).options["aliases"] == ["b"]
    problem = selection.chosen("chat", {"model": "a"}).problem
    assert re.search(r"m\.gguf.*'polymux models rm a'", problem)


def test_what_a_server_begins_with(folder: ModelsFolder, tmp_path: Path) -> None:
    engines = installed_engines()
    models = {name: one.options.get("model") for name, one in engines.items()}
    assert models == {
        "media": None, "rapidocr": None, "chat": "a", "chat-b": "b", "upscale": "net",
    }  # fmt: skip
    settings = ServerSettings(store=StoreSettings(tmp_path / "store"))
    found = {one.name: one for one in backends_of(settings)}
    assert set(found) == {*engines, "download", "summaries"}
    assert found["chat"].models == ("a", "chat")
    assert found["chat-b"].models == ("b", "chat-b")
    named = {"chat": EngineSettings("chat", {"model": "nothing"})}
    off = DownloadSettings(enabled=False)
    (missing,) = backends_of(ServerSettings(store=settings.store, engines=named, download=off))
    assert missing.health().state == "failed"
    assert missing.models == ("nothing", "chat")


def test_a_configured_engine_keeps_its_name(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if an installed engine of another family has this name."""
    file = tmp_path / "config.toml"
    file.write_text('[engines.chat]\nfamily = "speech"\n')
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    assert installed_engines()["chat"].family == "chat"
    assert usual_engines()["chat"].family == "speech"


def test_remedies(folder: ModelsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert selection.remedy("parse_json") == ""
    assert selection.remedy("read_text") == ""
    assert "pull whisper-base'" in selection.remedy("transcribe")
    assert "pip install" not in selection.remedy("transcribe")
    assert "[engines.chat]" in selection.remedy("free_chat")
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert "pip install 'polymux[ocr]'" in selection.remedy("read_text")
    assert "pip install 'polymux[speech]'" in selection.remedy("transcribe")
    assert "pull whisper-base'" in selection.remedy("transcribe")
    assert "pip install 'polymux[chat]'" in selection.remedy("chat")
    assert "models pull" not in selection.remedy("chat")
    assert selection.available() == {}
    assert importlib.util.find_spec("polymux") is not None


def painter(folder: ModelsFolder, tmp_path: Path, name: str) -> Path:
    """Install a model in diffusers format under `name`."""
    place = write(tmp_path / f"own-{name}", pipeline())
    import_local.add(name, place, folder)
    return place


def test_roles_are_cast_by_name_and_by_settings(folder: ModelsFolder, tmp_path: Path) -> None:
    assert "'polymux models recommend generate-image'" in selection.chosen("diffusion", {}).problem
    base = painter(folder, tmp_path, "sdxl-base-1.0")
    mine = painter(folder, tmp_path, "mine")
    lora = tmp_path / "more.safetensors"
    lora.write_bytes(safetensors(unet__lora_A=(2,)))
    import_local.add("more_details", lora, folder)
    found = selection.chosen("diffusion", {"device": "cpu", "loras": {"own": "/o.safetensors"}})
    assert not found.problem
    assert found.options["device"] == "cpu"
    # A LoRA is not assigned to a role: prompts select it by name.
    assert found.options["loras"] == {"more_details": str(lora), "own": "/o.safetensors"}
    (cast,) = found.options["models"].items()
    assert cast[0] == "picture:B"
    assert (cast[1]["path"], cast[1]["name"]) == (str(base), "sdxl-base-1.0")
    assert "instead_of" not in cast[1]
    named = {"models": {"picture:A": "mine", "music": str(mine), "picture:C": "more_details"}}
    models = selection.chosen("diffusion", named).options["models"]
    assert set(models) == {"picture:A", "picture:B", "music"}
    assert models["picture:A"]["instead_of"] == "sdxl-lightning-4step"
    assert models["music"]["path"] == str(mine)
    with pytest.raises(InvalidRequestError, match="'picture:Z'"):
        selection.chosen("diffusion", {"models": {"picture:Z": "mine"}})


def small_model(folder: ModelsFolder, tmp_path: Path, name: str, *roles: str) -> None:
    """Install a small model for roles."""
    place = write(tmp_path / f"own-{name}", pipeline())
    files = tuple(
        Kept(str(one.relative_to(place)), one.stat().st_size, "")
        for one in place.rglob("*") if one.is_file()
    )  # fmt: skip
    steps = {"guidance_scale": 4.0}
    made = Manifest(
        name, "diffusion", "MIT", "here", {"model": "."}, {}, files, native_size=(64, 64),
        defaults={roles[0]: steps}, fallback_roles=roles,
    )  # fmt: skip
    (place / "polymux-model.json").write_bytes(made.encoded())
    shutil.copytree(place, folder.path / name)


def test_the_order_of_choice(folder: ModelsFolder, tmp_path: Path) -> None:
    """Settings, then `models use`, then the default model, then a small model."""

    def music(**named: str) -> dict[str, Any] | None:
        return assign_models(named, folder).models.get("music")

    assert music() is None
    small_model(folder, tmp_path, "tiny", "music", "video:xl")
    small_model(folder, tmp_path, "tinier", "music")
    small = music()
    assert small is not None
    assert (small["name"], small["is_small"]) == ("tinier", True)
    assert (small["native_size"], small["defaults"]["guidance_scale"]) == ([64, 64], 4.0)
    video = assign_models({}, folder).models["video:xl"]
    assert (video["name"], "defaults" in video) == ("tiny", False)
    painter(folder, tmp_path, "riffusion-model-v1")
    default = music()
    assert default is not None
    assert (default["name"], "is_small" in default) == ("riffusion-model-v1", False)
    painter(folder, tmp_path, "mine")
    folder.use(["music"], "mine")
    used = music()
    assert used is not None
    assert (used["name"], used["instead_of"]) == ("mine", "riffusion-model-v1")
    named = music(music="tiny")
    assert named is not None
    assert (named["name"], "is_small" in named) == ("tiny", False)
    # A choice that cannot be used is an error, and no other model is used instead.
    folder.use(["music"], "gone")
    assert music() is None
    problem = assign_models({}, folder).problems["music"]
    assert "gone" in problem
    assert "'polymux models use --for music'" in problem
    assert "models use" not in assign_models({"music": "gone"}, folder).problems["music"]


def test_a_small_model_does_not_hide_a_damaged_one(folder: ModelsFolder, tmp_path: Path) -> None:
    small_model(folder, tmp_path, "tiny", "music")
    place = painter(folder, tmp_path, "riffusion-model-v1")
    (place / "unet" / "config.json").unlink()
    assert "damaged" in assign_models({}, folder).problems["music"]


def test_a_folder_of_the_settings_describes_itself(folder: ModelsFolder, tmp_path: Path) -> None:
    small_model(folder, tmp_path, "tiny", "music")
    found = assign_models({"music": str(folder.path / "tiny")}, folder).models["music"]
    assert (found["native_size"], "is_small" in found) == ([64, 64], False)


def test_requests_name_the_models_of_roles(folder: ModelsFolder, tmp_path: Path) -> None:
    """A name stands for the variant and the fields of its role, unless they differ."""
    for name in ("riffusion-model-v1", "juggernaut-reborn", "control-v11f1e-sd15-tile", "potat1"):
        painter(folder, tmp_path, name)
    mine = painter(folder, tmp_path, "mine")
    options = {"models": {"picture:C": str(mine), "picture:safety": "mine"}}
    settings = ServerSettings(
        store=StoreSettings(tmp_path / "store"),
        engines={"art": EngineSettings("diffusion", options)},
        download=DownloadSettings(enabled=False),
    )
    routes = Routes(backends_of(settings))

    def asked(operation: str, model: str, **values: str) -> OperationRequest:
        choice = routes.choose_model(operation, model)
        assert choice.selector is not None
        work = OperationRequest(operation, "", choice.selector, values, frozenset(values))
        return choice.applied(work)

    assert asked("generate_image", mine.name).model.startswith("playgroundai/")
    assert asked("generate_music", "riffusion-model-v1").model == "riffusion/riffusion"
    assert asked("generate_video", "potat1").values["video_model"] == "potat1"
    detail = asked("upscale_image", "juggernaut-reborn")
    assert detail.values["sd_model"] == "juggernaut_reborn.safetensors [338b85bc4f]"
    assert asked("generate_video", "potat1", video_model="potat1").engine_model == "potat1"
    for operation, model, values in (
        ("generate_video", "potat1", {"video_model": "xl"}),
        ("upscale_image", "control-v11f1e-sd15-tile", {}),
        ("generate_music", "potat1", {}),
    ):
        with pytest.raises(BadRequestError):
            asked(operation, model, **values)


def request(operation: str, model: str, **values: str) -> OperationRequest:
    shape = next(one for one in contract.operation(operation).variants if one.model == model)
    checked = contract.CheckedRequest(operation, shape.id, model, values, ())
    return OperationRequest.of(checked)


def painters(tmp_path: Path) -> Backend:
    """The backend of the diffusion engine."""
    settings = ServerSettings(
        store=StoreSettings(tmp_path / "store"),
        engines={"art": EngineSettings("diffusion")},
        download=DownloadSettings(enabled=False),
    )
    (made,) = backends_of(settings)
    return made


def test_a_small_model_never_replaces_an_upstream(folder: ModelsFolder, tmp_path: Path) -> None:
    small_model(folder, tmp_path, "tiny", "music")
    work = request("generate_music", "riffusion/riffusion", prompt_a="waves")
    upstream = Scripted("upstream", ("generate_music",))

    def served(work: OperationRequest = work) -> list[str]:
        return [one.name for one in Routes([painters(tmp_path), upstream]).backends_of(work)]

    assert [one.name for one in Routes([painters(tmp_path)]).backends_of(work)] == ["art"]
    assert served() == ["upstream"]
    # The name of the small model selects it.
    assert served(replace(work, engine_model="tiny")) == ["art"]
    for problem, found in ((NoBackendError("no"), ["art"]), (OverloadedError("later"), None)):
        with mock.patch.object(upstream, "refuse", side_effect=problem):
            if found is None:
                # An upstream that is only disabled for a while still counts.
                with pytest.raises(OverloadedError):
                    served()
            else:
                assert served() == found
    folder.use(["music"], "tiny")
    assert served() == ["art", "upstream"]
    folder.use(["music"], None)
    painter(folder, tmp_path, "riffusion-model-v1")
    assert served() == ["art", "upstream"]


def test_an_installed_variant_is_preferred_to_a_small_model(
    folder: ModelsFolder, tmp_path: Path
) -> None:
    """A call of `Local` that names no model may use another variant."""
    work = request("generate_image", "bytedance/sdxl-lightning-4step", prompt="a lighthouse")

    def chosen() -> OperationRequest:
        service: Any = Routes([painters(tmp_path)])
        return with_installed_model(service, work, None)

    small_model(folder, tmp_path, "tiny", "picture:A", "picture:B", "picture:C")
    assert chosen() is work
    painter(folder, tmp_path, "sdxl-base-1.0")
    assert chosen().variant == "B"
    folder.use(["picture:A"], "tiny")
    assert chosen() is work


def test_what_can_be_done_with_what_is_there(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "diffusion" not in selection.available()
    # A refiner needs a base model; a detail model needs its ControlNet.
    painter(folder, tmp_path, "sdxl-refiner-1.0")
    painter(folder, tmp_path, "juggernaut-reborn")
    assert "diffusion" not in selection.available()
    painter(folder, tmp_path, "control-v11f1e-sd15-tile")
    assert [one.name for one in selection.available()["diffusion"]] == [
        "control-v11f1e-sd15-tile", "juggernaut-reborn", "sdxl-refiner-1.0",
    ]  # fmt: skip
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert selection.available() == {}


def test_remedies_of_generation(folder: ModelsFolder, tmp_path: Path) -> None:
    """The remedy depends on the operation, its variant, and the models that a request names."""

    def remedy(operation: str, variant: str = "", **values: object) -> list[str]:
        return re.findall(r"models pull ([^']*)'", selection.remedy(operation, variant, values))

    assert remedy("generate_image", "A") == remedy("generate_image") == ["sdxl-lightning-4step"]
    assert remedy("generate_image", "C") == ["playground-v2.5-1024px-aesthetic"]
    assert remedy("generate_video") == ["zeroscope-v2-xl"]
    assert remedy("generate_video", "", video_model="576w") == ["zeroscope-v2-576w"]
    assert remedy("generate_music") == ["riffusion-model-v1"]
    assert remedy("upscale_image", "A") == ["juggernaut-reborn", "control-v11f1e-sd15-tile"]
    drawn = "flat2DAnimerge_v45Sharp.safetensors"
    assert remedy("upscale_image", "A", sd_model=drawn)[0] == "flat2d-animerge-v4.5-sharp"
    # The other upscaling engine does not need these models.
    assert "[engines.upscale]" in selection.remedy("upscale_image", "B")
    assert "[engines.upscale]" in selection.remedy("upscale_image")
    painter(folder, tmp_path, "riffusion-model-v1")
    assert "[engines.diffusion]" in selection.remedy("generate_music")


def test_remedies_name_the_engine_of_the_model(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = safetensors(x=(2,))
    place = write(tmp_path / "own", {"diffusion_model.safetensors": network})
    import_local.add("quick", place, folder)
    use("quick", ["picture:A"], folder)
    assert "[engines.sdcpp]" in selection.remedy("generate_image", "A")
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert "polymux[sdcpp]" in selection.remedy("generate_image", "A")
    assert "polymux[diffusion]" not in selection.remedy("generate_image", "A")
    assert "polymux[diffusion]" in selection.remedy("generate_image", "B")
