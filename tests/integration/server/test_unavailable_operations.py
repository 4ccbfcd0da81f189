"""Operations that a fresh `polymux serve` cannot do, without pulled models and configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract, errors
from polymux.service.model import OperationRequest
from support.polymux_server import PolymuxServer, form
from support.requests import FILE, smallest

if TYPE_CHECKING:
    from collections.abc import Iterator

#: (operation, variant) -> a text in the error's suggestion. Remove an entry when the operation
#: works by default.
REFUSED = {
    ("chat", ""): "polymux models pull",
    ("free_chat", ""): "polymux models pull",
    ("transcribe", ""): "polymux models pull",
    ("upscale_image", "A"): "polymux models pull",
    ("upscale_image", "B"): "polymux models pull",
    ("generate_image", "A"): "polymux models pull",
    ("generate_image", "B"): "polymux models pull",
    ("generate_image", "C"): "polymux models pull",
    ("generate_video", ""): "polymux models pull",
    ("generate_music", ""): "polymux models pull",
    ("search_music", ""): "polymux songs add",
    ("identify_song", ""): "polymux songs add",
    ("summarize_video", ""): "polymux models",
}
#: Operations that need neither a model nor configuration.
DONE = {("convert_to_mp3", ""), ("read_text", ""), ("download_video", ""), ("download_music", "")}
OTHERS = "http://127.0.0.1:9/nobody"


def variants() -> Iterator[tuple[str, contract.Variant]]:
    for operation in contract.operations():
        for variant in operation.variants:
            yield operation.name, variant


def values_of(variant: contract.Variant) -> dict[str, Any]:
    """The smallest valid request. The file is added later."""
    values = smallest(variant)
    return {name: OTHERS if name == "url" else one for name, one in values.items()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with PolymuxServer(tmp_path_factory.mktemp("default") / "s") as running:
        yield running


def is_refused(server: PolymuxServer, operation: str, variant: contract.Variant) -> bool:
    checked = contract.CheckedRequest(
        operation, variant.id, variant.model or "", values_of(variant), ()
    )
    try:
        return not server.state.service.backends_of(OperationRequest.of(checked))
    except errors.NoBackendError:
        return True


def test_what_is_refused_is_on_the_list(server: PolymuxServer) -> None:
    """The list must match exactly in both directions."""
    found = {(name, one.id): is_refused(server, name, one) for name, one in variants()}
    assert {name for name, refused in found.items() if refused} == set(REFUSED)
    assert {name for name, refused in found.items() if not refused} == DONE


@pytest.mark.parametrize(("operation", "variant"), REFUSED)
def test_each_says_what_would_do_it(server: PolymuxServer, operation: str, variant: str) -> None:
    described = contract.operation(operation)
    shape = next(one for one in described.variants if one.id == variant)
    values = values_of(shape)
    path = described.path + (f"?model={shape.model}" if len(described.variants) > 1 else "")
    if FILE in values.values() or "modelhost" in path:
        fields = [
            (name, ("a.bin", b"x") if one is FILE else str(one)) for name, one in values.items()
        ]
        body, headers = form(*fields)
        answer = server.ask("POST", path, body, headers)
    else:
        answer = server.json(path, values)
    assert (answer.status, answer.json()["code"]) == (501, "no_backend"), answer.body
    assert REFUSED[operation, variant] in answer.json()["error"], answer.body
