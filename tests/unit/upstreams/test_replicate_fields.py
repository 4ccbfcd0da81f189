from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract, errors
from polymux.service.model import OperationRequest, ProgressSink, Upload
from polymux.upstreams.files import media_type
from polymux.upstreams.replicate.backend import ReplicateUpstream
from polymux.upstreams.replicate.client import ReplicateServer
from polymux.upstreams.replicate.models import (
    MODELS,
    Target,
    addresses_in,
    input_of,
    operations_of,
    targets_of,
)
from servers import media
from support.replicate_service import MUSIC, PINNED, PLAYGROUND, SPEECH, VIDEO, whole

if TYPE_CHECKING:
    from polymux.contract import Variant

VARIANTS = [
    (operation.name, variant)
    for operation in contract.operations()
    for variant in operation.variants
    if variant.model
]
FILE = Upload(Path("/nowhere/a.png"), "a.png", "image/png", 3)


def a_value(field: contract.Field) -> Any:
    """A value that the field allows."""
    if field.type == "file":
        return FILE
    if field.choices:
        return field.choices[-1]
    if field.type == "string":
        return "https://files.example/x" if field.kind == "url" else "word"
    if field.type == "boolean":
        return not field.default
    return field.default if field.default is not None else field.minimum or 1


def a_work(operation: str, variant: Variant, **given: Any) -> OperationRequest:
    defaults = {one.name: one.default for one in variant.fields if one.default is not None}
    return OperationRequest(
        operation, variant.id, variant.model or "", defaults | given, frozenset(given)
    )


def sink() -> ProgressSink:
    def none(size_bytes: int) -> Any:
        raise AssertionError(size_bytes)

    return ProgressSink(lambda: None, none)


@pytest.mark.parametrize(("operation", "variant"), VARIANTS, ids=lambda one: str(one)[:40])
def test_no_field_is_forgotten(operation: str, variant: Variant) -> None:
    """Each field is sent under the model's name, listed as unknown, or fetched before."""
    model = MODELS[variant.model or ""]
    ours = [*model.fields, *model.unknown, *model.brought]
    assert sorted(ours) == sorted(one.name for one in variant.fields)
    assert len(set(model.fields.values())) == len(model.fields)
    assert all(variant.field(name).extension for name in model.always_sent)


@pytest.mark.parametrize(("operation", "variant"), VARIANTS, ids=lambda one: str(one)[:40])
def test_what_is_given_arrives(operation: str, variant: Variant) -> None:
    """Every supported field is sent with its value; the log names the others."""
    model = MODELS[variant.model or ""]
    given = {one.name: a_value(one) for one in variant.fields}
    log = sink()
    sent = input_of(a_work(operation, variant, **given), log)
    assert sent == {theirs: given[ours] for ours, theirs in model.fields.items()}
    assert [line.partition(":")[0] for line in log.lines] == list(model.unknown)


@pytest.mark.parametrize(("operation", "variant"), VARIANTS, ids=lambda one: str(one)[:40])
def test_what_the_interface_says_when_nobody_does(operation: str, variant: Variant) -> None:
    """polymux's defaults are sent, because the model's differ; those of extensions are not."""
    model = MODELS[variant.model or ""]
    log = sink()
    sent = input_of(a_work(operation, variant), log)
    assert sent == {
        model.fields[one.name]: one.default
        for one in variant.fields
        if one.default is not None
        and one.name in model.fields
        and (not one.extension or one.name in model.always_sent)
    }
    assert log.lines == []


def test_names_that_differ() -> None:
    assert MODELS[VIDEO].fields["num_inferences_steps"] == "num_inference_steps"
    assert MODELS[VIDEO].fields["video_model"] == "model"
    assert MODELS[PLAYGROUND].unknown == ("lora_scale",)
    assert MODELS[PLAYGROUND].always_sent == ("apply_watermark",)
    assert MODELS[MUSIC].unknown == ("seed", "duration_s", "output_format")
    assert {name: one.version for name, one in MODELS.items()} == PINNED
    assert set(MODELS) == {variant.model for _, variant in VARIANTS}


@pytest.mark.parametrize(
    ("language", "sent"), [("de", "german"), ("German", "german"), ("None", None), ("auto", None)]
)
def test_languages_go_by_their_names(language: str, sent: str | None) -> None:
    variant = contract.operation("transcribe").variants[0]
    work = a_work("transcribe", variant, audio=FILE, language=language)
    assert input_of(work, sink()).get("language") == sent


def test_addresses_that_the_model_would_fetch_from() -> None:
    """All fields of the kind `url`, except those that polymux fetches itself."""
    for operation, variant in VARIANTS:
        given = {one.name: a_value(one) for one in variant.fields}
        wanted = {one.name for one in variant.fields if one.kind == "url"}
        if variant.model == SPEECH:
            wanted.remove("url")
        found = addresses_in(a_work(operation, variant, **given))
        assert {name for name, _ in found} == wanted


def test_which_models_are_run() -> None:
    assert targets_of({}) == {name: Target(name, version) for name, version in PINNED.items()}
    mapped = {PLAYGROUND: "me/my.model-2", MUSIC: MUSIC, VIDEO: f"me/v:{whole('ab12cd34')}"}
    assert targets_of(mapped) == {
        PLAYGROUND: Target("me/my.model-2"),
        MUSIC: Target(MUSIC, PINNED[MUSIC]),
        VIDEO: Target("me/v", whole("ab12cd34")),
    }
    assert operations_of(mapped) == ("generate_image", "generate_video", "generate_music")


@pytest.mark.parametrize(
    "text",
    ["", "name", "a/b/c", "a/../b", "../b", "a/b:latest", "a/b:1234567", "a/b:ABCDEF012345",
     "a/b?x=1", "a b/c", "a/b:" + "0" * 65, "ä/b", "a/b\n"],
)  # fmt: skip
def test_what_is_no_model(text: str) -> None:
    with pytest.raises(errors.InvalidRequestError, match="owner/name"):
        Target.of(text)


@pytest.mark.parametrize(
    ("operations", "models", "pattern"),
    [
        (["chat"], {}, "chat"),
        (["transcribe"], {MUSIC: MUSIC}, "transcribe"),
        ([], {"me/mine": "a/b"}, "'me/mine'"),
        ([], {MUSIC: "nothing"}, "'nothing'"),
    ],
)
def test_what_cannot_be_an_upstream(
    operations: list[str], models: dict[str, str], pattern: str
) -> None:
    server = ReplicateServer("replicate", "https://api.replicate.example/v1")
    with pytest.raises(errors.InvalidRequestError, match=pattern):
        ReplicateUpstream(server, operations, models)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (media.png(2, 2), "image/png"), (media.mp4(), "video/mp4"), (media.wav(), "audio/wav"),
        (media.mp3(), "audio/mpeg"), (b"ID3\x04", "audio/mpeg"),
        (b"\x1a\x45\xdf\xa3\x9fB\x82\x84webm", "video/webm"),
        (b"\x1a\x45\xdf\xa3\x9fB\x82\x88matroska", "video/matroska"),
        (b"\x00\x00\x00\x1cftypM4A \x00\x00\x02\x00", "audio/mp4"),
        (b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00", ""),
        (b"\x00\x00\x00\x1cftypheic\x00\x00\x00\x00", ""),
        (b"<html>", ""), (b"", ""), (b"\xff", ""), (b"RIFF1234AVI ", ""),
    ],
)  # fmt: skip
def test_files_by_their_first_bytes(start: bytes, expected: str) -> None:
    assert media_type(start[:64]) == expected
