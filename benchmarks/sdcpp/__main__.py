"""`scripts/bench sdcpp`: seconds and memory of an image, with quantized weights and with torch.

The model has the shape of SD-Turbo and random weights, which do not affect the speed. It makes one
step at 512 x 512 pixels; TAESD decodes. Each run is a process that makes two images. Its files are
in the page cache.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import BUILD, load_average, machine

FOLDER = BUILD / "sdcpp"
RESULTS = BUILD / "sdcpp.json"
FORMATS = ("q8_0", "q4_0")
VARIANTS = (*FORMATS, "torch")


def main() -> None:
    """Make the models if they are missing, run each variant in turn and print the table."""
    parser = argparse.ArgumentParser(prog="scripts/bench sdcpp", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", choices=VARIANTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(given.run)))
        return
    if not (FOLDER / "complete").exists():
        make()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
    before = load_average()
    for number in range(given.rounds + 1):
        for name in sorted(VARIANTS, reverse=number % 2 == 1):
            words = [sys.executable, "-m", "benchmarks.sdcpp", "--run", name]
            began = time.perf_counter()
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            one = json.loads(done.stdout.splitlines()[-1])
            one["process_s"] = time.perf_counter() - began - one["second_s"]
            if number > 0:  # The first round fills the page cache.
                found[name].append(one)
    results = {
        "machine": machine(),
        "load": [before, load_average()],
        "versions": {name: version(name) for name in ("cyllama", "torch", "diffusers")},
        "runs": found,
    }
    RESULTS.write_text(json.dumps(results, indent=1))
    tell(found)


def make() -> None:
    """Write the model as a folder of diffusers, and in one file of each format."""
    import torch
    from diffusers import (
        AutoencoderKL,
        AutoencoderTiny,
        EulerDiscreteScheduler,
        StableDiffusionPipeline,
        UNet2DConditionModel,
    )
    from safetensors.torch import save_file
    from transformers import CLIPTextConfig, CLIPTextModel

    from benchmarks.diffusion.models import tokenizer

    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        sample_size=64, cross_attention_dim=1024, attention_head_dim=(5, 10, 20, 20),
        use_linear_projection=True,
    ).half()  # fmt: skip
    words = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=49408, hidden_size=1024, intermediate_size=4096, num_hidden_layers=23,
            num_attention_heads=16, hidden_act="gelu",
        )
    ).half()  # fmt: skip
    decoder = AutoencoderTiny().half()
    vae = AutoencoderKL(
        block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
    ).half()  # fmt: skip
    parts = {"unet": unet, "te.text_model": words, "vae": vae}
    StableDiffusionPipeline(
        unet=unet, text_encoder=words, vae=decoder, tokenizer=tokenizer(FOLDER / "words"),
        scheduler=EulerDiscreteScheduler(timestep_spacing="trailing"), safety_checker=None,
        feature_extractor=None, requires_safety_checker=False,
    ).save_pretrained(FOLDER / "torch")  # fmt: skip
    for name in FORMATS:
        (FOLDER / name).mkdir()
        write_gguf(FOLDER / name / "model.gguf", parts, name)
        save_file(decoder.state_dict(), FOLDER / name / "taesd.safetensors")
    (FOLDER / "complete").touch()


def write_gguf(path: Path, parts: dict[str, Any], name: str) -> None:
    """Write the parts in one file. As in stable-diffusion.cpp, convolutions keep 16 bits."""
    import gguf

    kind = gguf.GGMLQuantizationType[name.upper()]
    writer = gguf.GGUFWriter(path, "sd1")
    for part, network in parts.items():
        for key, one in network.state_dict().items():
            values = one.float().numpy()
            if values.ndim == 2 and values.shape[1] % 32 == 0 and "embedding" not in key:
                packed = gguf.quants.quantize(values, kind)
                writer.add_tensor(f"{part}.{key}", packed, raw_dtype=kind)
            else:
                plain = "float32" if values.ndim == 1 else "float16"
                writer.add_tensor(f"{part}.{key}", values.astype(plain))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run(name: str) -> dict[str, float]:
    """Make two images in this process. Return their seconds, and the peak of memory in bytes."""
    from polymux.engines.base import Request, Token
    from polymux.models.roles import assign_models

    from benchmarks.diffusion.drafts import Drafts

    os.environ.setdefault("POLYMUX_THREADS", str(os.cpu_count() or 1))
    family = "diffusion" if name == "torch" else "sdcpp"
    began = time.perf_counter()
    if family == "diffusion":
        from polymux.engines.diffusion.engine import DiffusionEngine

        engine: Any = DiffusionEngine()
    else:
        from polymux.engines.sdcpp.engine import SdcppEngine

        engine = SdcppEngine()
    wanted = {"picture:B": str(FOLDER / name)}
    engine.load({"models": assign_models(wanted, family=family).models, "previews": False})
    values = {
        "prompt": "a lighthouse at dusk", "width": 512, "height": 512, "num_outputs": 1,
        "scheduler": "K_EULER", "num_inference_steps": 1, "guidance_scale": 1.0, "seed": 1,
        "disable_safety_checker": True,
    }  # fmt: skip
    request = Request("generate_image", "B", "", values, frozenset({"scheduler"}))
    engine.run(request, Drafts(), Token())
    first_s = time.perf_counter() - began
    began = time.perf_counter()
    engine.run(request, Drafts(), Token())
    second_s = time.perf_counter() - began
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"first_s": first_s, "second_s": second_s, "peak_bytes": peak_bytes}


def tell(found: dict[str, list[dict[str, float]]]) -> None:
    """Print the medians as Markdown, and the ratios to torch."""

    def median(name: str, key: str) -> float:
        return statistics.median(one[key] for one in found[name])

    print("| weights | process start to the first image, s | next image, s | memory, GB |")
    print("|---|---:|---:|---:|")
    for name in VARIANTS:
        cells = [median(name, "process_s"), median(name, "second_s")]
        ratios = [median("torch", key) / median(name, key) for key in ("process_s", "second_s")]
        shown = " | ".join(
            f"{one:.1f} ({ratio:.2f}x)" for one, ratio in zip(cells, ratios, strict=True)
        )
        gigabytes = median(name, "peak_bytes") / 1e9
        share = gigabytes / (median("torch", "peak_bytes") / 1e9)
        print(f"| {name} | {shown} | {gigabytes:.2f} ({share:.2f}) |")


if __name__ == "__main__":
    main()
