"""Networks that are told noise as Karras et al. have it, such as Playground's."""

from __future__ import annotations

import io
import json
import shutil
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from polymux.engines.base import Token
from support import diffusing

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine

SMALL = {"prompt": "a house", "width": 64, "height": 64, "num_inference_steps": 3, "seed": 1}
SCHEDULER = {
    "_class_name": "EDMDPMSolverMultistepScheduler", "sigma_min": 0.002, "sigma_max": 80.0,
    "sigma_data": 0.5, "rho": 7.0, "solver_order": 2, "prediction_type": "epsilon",
}  # fmt: skip


@pytest.fixture(scope="module")
def playground(
    models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> DiffusionEngine:
    folder = tmp_path_factory.mktemp("elucidated") / "playground"
    shutil.copytree(models["picture:C"], folder)
    (folder / "scheduler" / "scheduler_config.json").write_text(json.dumps(SCHEDULER), "utf-8")
    index = json.loads((folder / "model_index.json").read_text("utf-8"))
    index["scheduler"] = ["diffusers", SCHEDULER["_class_name"]]
    (folder / "model_index.json").write_text(json.dumps(index), "utf-8")
    return diffusing.engine({"picture:C": folder})


@pytest.mark.parametrize(
    "name",
    ["DPMSolver++", "K_EULER", "DPM++2MKarras", "DPMSolverMultistep", "DDIM", "HeunDiscrete",
     "K_EULER_ANCESTRAL", "PNDM"],
)  # fmt: skip
def test_every_scheduler_paints_and_those_that_do_not_fit_are_told(
    playground: DiffusionEngine, sink: diffusing.HeardSink, name: str
) -> None:
    asked = diffusing.request("generate_image", "C", **SMALL, scheduler=name)
    made = playground.run(asked, sink, Token()).value
    pixels = Image.open(io.BytesIO(made[0].path.read_bytes()))
    assert pixels.size == (64, 64)
    assert len(pixels.getcolors(pixels.width * pixels.height)) > 10
    fits = name in ("DPMSolver++", "K_EULER", "DPM++2MKarras", "DPMSolverMultistep")
    assert any("was made for DPMSolver++" in line for line in sink.lines) is not fits
