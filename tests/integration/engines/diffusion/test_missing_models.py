"""Every operation and option without a model: the error names the model to pull."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux.models import registry
from polymux.runtime.settings import EngineSettings
from servers import media
from support.polymux_server import PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINES = {
    "media": EngineSettings("media", threads=1),
    "diffusion": EngineSettings("diffusion", {"models": {}}, threads=1),
}
PNG = media.png(80, 64)
#: (operation, field and value, model to pull).
CASES = [
    ("generate_image", "model", "bytedance/sdxl-lightning-4step", "sdxl-lightning-4step"),
    ("generate_image", "model", "lorenzomarines/astra", "sdxl-base-1.0"),
    ("generate_image", "model", "playgroundai/playground-v2.5-1024px-aesthetic",
     "playground-v2.5-1024px-aesthetic"),
    ("upscale_image", "sd_model", "epicrealism_naturalSinRC1VAE.safetensors [84d76a0328]",
     "epicrealism-natural-sin-rc1"),
    ("upscale_image", "sd_model", "juggernaut_reborn.safetensors [338b85bc4f]",
     "juggernaut-reborn"),
    ("upscale_image", "sd_model", "flat2DAnimerge_v45Sharp.safetensors",
     "flat2d-animerge-v4.5-sharp"),
    ("generate_video", "video_model", "xl", "zeroscope-v2-xl"),
    ("generate_video", "video_model", "576w", "zeroscope-v2-576w"),
    ("generate_video", "video_model", "potat1", "potat1"),
    ("generate_video", "video_model", "animov-512x", "animov-512x"),
    ("generate_music", "model", None, "riffusion-model-v1"),
]  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[polymux.Client]:
    folder = tmp_path_factory.mktemp("nothing") / "s"
    with (
        PolymuxServer(folder, engines=ENGINES) as server,
        polymux.Client(server.url, server.key) as made,
    ):
        yield made


@pytest.mark.parametrize(("operation", "field", "choice", "model"), CASES)
def test_it_says_what_to_pull(
    client: polymux.Client, operation: str, field: str, choice: str | None, model: str
) -> None:
    known = registry.find(model)
    assert known is not None
    assert known.license
    first: Any = PNG if operation == "upscale_image" else "x"
    with pytest.raises(errors.NoBackendError, match=rf"models pull {model}\b") as caught:
        getattr(client, operation)(first, **({field: choice} if choice else {}))
    assert caught.value.status == 501
