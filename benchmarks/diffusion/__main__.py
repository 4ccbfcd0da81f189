"""`scripts/bench diffusion`: steps per second of polymux's engine and of plain diffusers.

The weights are random, in the size of a real model. Their values do not affect the speed.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.diffusion.models import SHAPES, build
from benchmarks.measure import BUILD, load_average, machine

RESULTS = BUILD / "diffusion.json"
GOAL = 0.98


def main() -> int:
    """Build the model, run both in turn and print the ratio.

    Returns:
        Exit status: 1 if the goal was missed.
    """
    parser = argparse.ArgumentParser(prog="scripts/bench diffusion", description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="sd15")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--side", type=int, default=256, help="image size in pixels")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.environ.setdefault("POLYMUX_THREADS", str(os.cpu_count() or 1))
    with tempfile.TemporaryDirectory() as folder:
        found = compare(build(given.shape, Path(folder) / "model"), given)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1))
    tell(found)
    return 0 if is_reached(found) else 1


def is_reached(found: dict[str, Any]) -> bool:
    """Whether the median speed of polymux is about that of diffusers."""
    return bool(found["ratio"] >= GOAL)


def compare(model: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds per image of both, measured in turn.

    The first image of each is not counted.
    """
    paint: dict[str, Callable[[], None]] = {}
    engine = _engine(model, given.device)
    paint["polymux"] = lambda: _ours(engine, given)
    plain = _plain(model, engine, given)
    paint["diffusers"] = plain
    seconds: dict[str, list[float]] = {name: [] for name in paint}
    before = load_average()
    for number in range(given.rounds + 1):
        names = sorted(paint, reverse=number % 2 == 1)
        for name in names:
            began = time.perf_counter()
            paint[name]()
            if number > 0:
                seconds[name].append(time.perf_counter() - began)
    return {
        "machine": machine(),
        "load": [before, load_average()],
        "device": str(engine.manager.device),
        "dtype": str(engine.manager.dtype),
        "shape": given.shape,
        "side_px": given.side,
        "steps": given.steps,
        "versions": {name: version(name) for name in ("torch", "diffusers", "transformers")},
        "seconds": seconds,
        "ratio": statistics.median(seconds["diffusers"]) / statistics.median(seconds["polymux"]),
    }


def _engine(model: Path, device: str) -> Any:
    from polymux.engines.diffusion.engine import DiffusionEngine

    made = DiffusionEngine()
    one = {"path": str(model), "name": "random", "version": "0" * 64}
    made.load({"models": {"picture:B": one}, "device": device})
    return made


def _ours(engine: Any, given: argparse.Namespace) -> None:
    from polymux.engines.base import Request, Token

    from benchmarks.diffusion.drafts import Drafts

    values = {
        "prompt": "a lighthouse at dusk",
        "width": given.side,
        "height": given.side,
        "num_outputs": 1,
        "scheduler": "K_EULER",
        "num_inference_steps": given.steps,
        "guidance_scale": 7.0,
        "seed": 1,
    }
    engine.run(Request("generate_image", "B", "", values, frozenset()), Drafts(), Token())


def _plain(model: Path, engine: Any, given: argparse.Namespace) -> Callable[[], None]:
    """Return a function that makes the same image with diffusers' pipeline and a copy of the
    weights."""
    import torch
    from diffusers import DiffusionPipeline, EulerDiscreteScheduler

    studio = engine.manager
    pipeline = DiffusionPipeline.from_pretrained(
        model, dtype=studio.dtype, local_files_only=True, safety_checker=None
    ).to(studio.device)
    pipeline.scheduler = EulerDiscreteScheduler.from_config(pipeline.scheduler.config)
    pipeline.set_progress_bar_config(disable=True)

    def paint() -> None:
        picture = pipeline(
            "a lighthouse at dusk",
            width=given.side,
            height=given.side,
            num_inference_steps=given.steps,
            guidance_scale=7.0,
            generator=torch.Generator("cpu").manual_seed(1),
        ).images[0]
        picture.save(Path(tempfile.mkdtemp()) / "picture.png")

    return paint


def tell(found: dict[str, Any]) -> None:
    """Print the figures as Markdown."""
    print(
        f"{found['shape']}, {found['side_px']} px, {found['steps']} steps on {found['device']} "
        f"({found['dtype']}); {found['machine']['processor']}, {found['machine']['cores']} cores, "
        f"torch {found['versions']['torch']}, diffusers {found['versions']['diffusers']}\n"
    )
    print("| | picture, s | steps/s |\n|---|---|---|")
    for name, seconds in found["seconds"].items():
        median = statistics.median(seconds)
        print(f"| {name} | {median:.3f} | {found['steps'] / median:.2f} |")
    reached = "reached" if is_reached(found) else "missed"
    print(f"\nratio {found['ratio']:.3f}, goal {GOAL}: {reached}")


if __name__ == "__main__":
    sys.exit(main())
