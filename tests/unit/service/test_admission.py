from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from polymux import contract
from polymux.errors import UnprocessableEntityError
from polymux.service.admission import Bounds
from polymux.service.model import LOCAL, Caller, Estimate, OperationRequest, Upload
from support.services import ALICE, Scripted, on_a_loop, running, work_of

if TYPE_CHECKING:
    from pathlib import Path

GENERATIONS = {
    "generate_image": {"prompt": "a house"},
    "generate_video": {"prompt": "waves"},
    "generate_music": {"prompt_a": "jazz"},
}
BOUNDS = Bounds(max_generation_s=300.0)


def generation(operation: str = "generate_image", caller: Caller = ALICE) -> OperationRequest:
    if operation == "generate_image":
        body = json.dumps(GENERATIONS[operation]).encode()
        return OperationRequest.of(contract.read_json(operation, body), caller)
    return OperationRequest.of(
        contract.read_form(operation, list(GENERATIONS[operation].items())), caller
    )


def upscaling(model: str, tmp_path: Path) -> OperationRequest:
    path = tmp_path / "a.png"
    path.write_bytes(b"picture")
    upload = Upload(path, "a.png", "image/png", 7)
    fields = [("image", upload)]
    return OperationRequest.of(contract.read_form("upscale_image", fields, model=model), ALICE)


def backend(seconds: float | None, doubt: float = 1.0) -> Scripted:
    made = Scripted(operations=(*GENERATIONS, "upscale_image", "convert_to_mp3", "chat"))
    made.expected = Estimate(seconds=seconds, why="50 steps", remedies="fewer steps", doubt=doubt)
    return made


@pytest.mark.parametrize("operation", GENERATIONS)
@on_a_loop
async def test_long_generations_are_refused_before_they_begin(
    tmp_path: Path, operation: str
) -> None:
    slow = backend(301.0)
    async with running(tmp_path / "s", slow, bounds=BOUNDS) as service:
        with pytest.raises(UnprocessableEntityError) as refused:
            await service.submit(generation(operation))
        assert refused.value.code == "estimate_over_limit"
        for words in ("301 s", "300 s", "50 steps", "Fewer steps"):
            assert words in str(refused.value)
        with pytest.raises(UnprocessableEntityError, match="--max-generation"):
            await service.submit(generation(operation, LOCAL))
        assert slow.began == []
        slow.expected = Estimate(seconds=299.0)
        await service.submit(generation(operation))


@on_a_loop
async def test_of_upscaling_only_detail_is_bound(tmp_path: Path) -> None:
    slow = backend(9999.0)
    async with running(tmp_path / "s", slow, bounds=BOUNDS) as service:
        with pytest.raises(UnprocessableEntityError):
            await service.submit(upscaling("philz1337x/clarity-upscaler", tmp_path))
        await service.submit(upscaling("nightmareai/real-esrgan", tmp_path))
        await service.submit(work_of())  # a conversion: never limited


@on_a_loop
async def test_a_key_s_own_limit_counts_instead_of_that_of_all(tmp_path: Path) -> None:
    slow = backend(3000.0)
    async with running(tmp_path / "s", slow, bounds=BOUNDS) as service:
        await service.submit(generation(caller=Caller("p", "p", max_estimate_s=3600.0)))
        slow.expected = Estimate(seconds=90.0)
        with pytest.raises(UnprocessableEntityError, match=r"\b90 s\b.*\b60 s\b"):
            await service.submit(generation(caller=Caller("h", "h", max_estimate_s=60.0)))
    slow.expected = Estimate(seconds=1e9)
    for lifted in (None, float("inf")):
        bounds = Bounds(max_generation_s=lifted)
        async with running(tmp_path / f"s{lifted}", slow, bounds=bounds) as service:
            await service.submit(generation())
