"""``GET /api/v1/availability``: which operations and models can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux.engines.media.backend import refuse_addresses
from polymux.service.errors import status_error
from support.hosted_server import HostedServer
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.service.model import OperationRequest

PATH = "/api/v1/availability"
REMEDY = "no model is installed. Run 'polymux models pull sdxl-base-1.0'"


class Images(Scripted):
    """Has no model for the variant B, and a small model for C."""

    def __init__(self) -> None:
        super().__init__("images", ("generate_image",))

    def refuse(self, work: OperationRequest) -> None:
        if work.variant == "B":
            raise status_error(errors.NoBackendError, REMEDY)

    def is_fallback(self, work: OperationRequest) -> bool:
        return work.variant == "C"


def test_each_operation_and_model_is_listed_with_its_state(tmp_path: Path) -> None:
    with HostedServer(tmp_path / "s", lambda: [Scripted(), Images()]) as server:
        listed: list[dict[str, Any]] = server.ask("GET", PATH).json()
        assert server.ask("GET", PATH, key=None).status == 401
    found = {(one["operation"], one["variant"]): one for one in listed}
    variants = {(one.name, variant.id) for one in contract.operations() for variant in one.variants}
    assert found.keys() == variants
    images = [found["generate_image", name] for name in "ABC"]
    assert [one["available"] for one in images] == [True, False, True]
    assert [one["small_model"] for one in images] == [False, False, True]
    assert images[1]["reason"] == REMEDY
    assert found["convert_to_mp3", ""]["available"]
    assert found["generate_music", ""]["available"] is False
    assert "generate_music" in found["generate_music", ""]["reason"]


class Files(Scripted):
    """Reads files, and downloads no URL."""

    def __init__(self) -> None:
        super().__init__("files", ("read_text", "transcribe"))

    def refuse(self, work: OperationRequest) -> None:
        field = {"read_text": "file", "transcribe": "audio"}.get(work.operation, "")
        if field:
            refuse_addresses(work, field)


def test_what_only_reads_files_is_available(tmp_path: Path) -> None:
    with HostedServer(tmp_path / "s", lambda: [Files()]) as server:
        found = {one["operation"]: one for one in server.ask("GET", PATH).json()}
    for name in ("read_text", "transcribe"):
        assert (found[name]["available"], found[name]["reason"]) == (True, "")
