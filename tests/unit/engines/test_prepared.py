"""What engines behind the media engine refuse, and who does it then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from polymux import contract
from polymux.engines.media.decoding_backend import upscaling
from polymux.errors import NoBackendError
from polymux.service.model import OperationRequest, Upload
from support.services import ALICE, Scripted, running

if TYPE_CHECKING:
    from pathlib import Path


def faces(folder: Path, wanted: str) -> OperationRequest:
    path = folder / "a.png"
    path.write_bytes(b"picture")
    fields = [("image", Upload(path, "a.png", "image/png", 7)), ("face_enhance", wanted)]
    return OperationRequest.of(
        contract.read_form("upscale_image", fields, model="nightmareai/real-esrgan"), ALICE
    )


def test_faces_are_for_who_can_do_them(tmp_path: Path) -> None:
    """Before a job is made or a file is opened: the next is asked, or it is refused."""

    async def body() -> None:
        media = Scripted("media", ())
        engine = upscaling(Scripted("upscaler", ("upscale_image",)), media)
        able = Scripted("able", ("upscale_image",))
        async with running(tmp_path / "both", engine, able) as service:
            job, _ = await service.submit(faces(tmp_path, "true"))
            assert (await service.jobs.wait(job)).status == "succeeded"
            assert len(able.began) == 1
        async with running(tmp_path / "one", engine) as service:
            with pytest.raises(NoBackendError, match="an upstream") as refused:
                await service.submit(faces(tmp_path, "true"))
            assert (refused.value.status, refused.value.param) == (501, "face_enhance")
            assert service.jobs.count == 0
            engine.refuse(faces(tmp_path, "false"))
        assert media.began == []

    asyncio.run(asyncio.wait_for(body(), 20))
