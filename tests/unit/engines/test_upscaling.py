from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.engines import estimates
from polymux.engines.media.backend import upscale_backend
from polymux.errors import NoBackendError
from polymux.service.model import OperationRequest, Upload
from support.services import ALICE, Scripted, running
from support.supervised_engine import backend_context, in_loop

if TYPE_CHECKING:
    from pathlib import Path

ESRGAN = "nightmareai/real-esrgan"
SIZE = {"width": 2400, "height": 2400, "pages": 1}
PIXELS = 2400 * 2400


def faces(folder: Path, wanted: str) -> OperationRequest:
    path = folder / "a.png"
    path.write_bytes(b"picture")
    fields = [("image", Upload(path, "a.png", "image/png", 7)), ("face_enhance", wanted)]
    return OperationRequest.of(contract.read_form("upscale_image", fields, model=ESRGAN), ALICE)


@in_loop
async def test_faces_are_for_who_can_do_them(tmp_path: Path) -> None:
    """The next engine is tried, or the request fails before a job is made or a file is opened."""
    media = Scripted("media", ())
    engine = upscale_backend(Scripted("upscaler", ("upscale_image",)), backend_context(media))
    able = Scripted("able", ("upscale_image",))
    async with running(tmp_path / "both", engine, able) as service:
        job, _ = await service.submit(faces(tmp_path, "true"))
        assert (await service.jobs.wait(job)).status == "succeeded"
        assert len(able.began) == 1
    async with running(tmp_path / "one", engine) as service:
        with pytest.raises(NoBackendError) as refused:
            await service.submit(faces(tmp_path, "true"))
        assert (refused.value.status, refused.value.param) == (501, "face_enhance")
        assert service.jobs.count == 0
        engine.refuse(faces(tmp_path, "false"))
    assert media.began == []


def needed(factor: int, channels: int, **values: Any) -> tuple[float, float]:
    """Work units and memory bytes of a network with this factor."""
    names = frozenset(values)
    work = OperationRequest("upscale_image", "B", ESRGAN, values, names, ALICE)
    measure, facts = estimates.enlarged(3.0, factor), {**SIZE, "channels": channels}
    assert measure.memory_bytes is not None
    return measure.units(work, facts), measure.memory_bytes(work, facts)


@pytest.mark.parametrize("scale", [0.5, 4, 10])
def test_a_network_enlarges_by_its_own_factor(scale: float) -> None:
    """Its output (RGB floats) is resized to the requested size afterwards."""
    units, memory_bytes = needed(4, 3, scale=scale)
    assert units == pytest.approx(92.16)
    assert memory_bytes == PIXELS * 16 * 3 * 4 + 3 * PIXELS * scale**2 * 3 * 4


def test_every_pass_counts() -> None:
    """By 4, a network with the factor 2 first has 4 times the pixels, then 16 times."""
    small = {"width": 500, "height": 400, "pages": 1, "channels": 3}
    measure = estimates.enlarged(3.0, 2)
    work = OperationRequest("upscale_image", "B", ESRGAN, {"scale": 4}, frozenset(), ALICE)
    assert measure.units(work, small) == pytest.approx(0.2 * (4 + 16))
    assert measure.memory_bytes is not None
    result = 3 * 200_000 * 16 * 3 * 4
    assert measure.memory_bytes(work, small) == 200_000 * (4 + 16) * 3 * 4 + result


@pytest.mark.parametrize("channels", [2, 4])
def test_transparency_goes_through_it_as_well(channels: int) -> None:
    assert needed(2, channels)[0] == 2 * needed(2, 3)[0]
    made = PIXELS * 4 * (3 + 3 + 4) * 4
    assert needed(2, channels, scale=0.0001)[1] == pytest.approx(made, rel=1e-6)
