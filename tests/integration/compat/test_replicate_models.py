"""Models and versions of /replicate/v1: the contract in Replicate's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.server.compat.replicate.models import models
from replicate.exceptions import ReplicateError
from support.polymux_server import PolymuxServer
from support.replicate_compat import ScriptedModels, of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


def schemas_of(server: PolymuxServer, name: str) -> dict[str, Any]:
    version = of(server).models.get(name).latest_version
    assert version is not None
    found: dict[str, Any] = version.openapi_schema["components"]["schemas"]
    return found


def test_every_variant_is_a_model(server: PolymuxServer) -> None:
    names = {f"{one.owner}/{one.name}" for one in of(server).models.list()}
    wanted = {
        variant.model or f"polymux/{operation.name.replace('_', '-')}"
        for operation in contract.operations()
        for variant in operation.variants
    }
    assert names == wanted | {"polymux/small", "maker/large"}


def test_a_model_and_its_versions(server: PolymuxServer) -> None:
    client = of(server)
    for name in models():
        model = client.models.get(name)
        assert model.id == name
        assert model.description
        (version,) = model.versions.list()
        assert version == model.latest_version == model.versions.get(version.id)
        assert len(version.id) == 64
        schemas = version.openapi_schema["components"]["schemas"]
        assert {"Input", "Output"} <= schemas.keys()
        for reference in references(version.openapi_schema):
            assert reference.removeprefix("#/components/schemas/") in schemas


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [one for part in value for one in references(part)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if "$ref" in value else []
    return own + [one for part in value.values() for one in references(part)]


def test_what_a_schema_says(server: PolymuxServer) -> None:
    """Types, bounds, choices, defaults and files match the contract."""
    members = schemas_of(server, "lorenzomarines/astra")["Input"]["properties"]
    (variant,) = (
        one for one in contract.operation("generate_image").variants
        if one.model == "lorenzomarines/astra"
    )  # fmt: skip
    assert list(members) == [one.name for one in variant.fields]
    assert sorted(one["x-order"] for one in members.values()) == list(range(len(members)))
    steps = variant.field("num_inference_steps")
    schema = members["num_inference_steps"]
    assert (schema["type"], schema["minimum"], schema["maximum"], schema["default"]) == (
        "integer", steps.minimum, steps.maximum, steps.default
    )  # fmt: skip
    assert tuple(members["scheduler"]["enum"]) == variant.field("scheduler").choices
    for name in ("image", "mask"):
        assert (members[name]["type"], members[name]["format"]) == ("string", "uri")
    assert schemas_of(server, "lorenzomarines/astra")["Input"]["required"] == ["prompt"]


def test_what_there_is_none_of(server: PolymuxServer) -> None:
    client = of(server)
    for name in ("polymux/no-such", "meta/llama", "polymux/chat:x"):
        with pytest.raises(ReplicateError) as refused:
            client.models.get(name)
        assert (refused.value.status, refused.value.title) == (404, "Not found")
    versions = client.models.get("polymux/chat").versions
    for wrong in ("0" * 64, "latest", "x" * 64):
        with pytest.raises(ReplicateError) as refused:
            versions.get(wrong)
        assert refused.value.status == 404


def test_only_what_can_be_done_is_listed(tmp_path: Path) -> None:
    """Every model can be read individually. A key with scopes lists only its own."""
    able = ScriptedModels("convert_to_mp3", "transcribe")
    with PolymuxServer(tmp_path / "s", lambda: [able]) as running:
        named = [one.id for one in of(running).models.list()]
        assert named == ["turian/insanely-fast-whisper-with-video", "polymux/convert-to-mp3"]
        assert of(running).models.get("riffusion/riffusion").name == "riffusion"
        with pytest.raises(ReplicateError) as refused:
            of(running).run("riffusion/riffusion", input={"prompt_a": "waves"})
        assert refused.value.status == 501
        key, _ = running.keys.add("narrow", scopes=("transcribe",))
        narrow = of(running, key=key)
        assert [one.name for one in narrow.models.list()] == ["insanely-fast-whisper-with-video"]
        with pytest.raises(ReplicateError) as forbidden:
            narrow.models.get("polymux/convert-to-mp3")
        assert (forbidden.value.status, forbidden.value.title) == (403, "Forbidden")
