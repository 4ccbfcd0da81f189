"""Trains pictures-mini and clips-mini: first the VAE, then text encoder and UNet, then all but the
VAE with the motion layers.

    train.py vae   SPRITES WORDS PREPARED OUT --seconds 100
    train.py unet  SPRITES WORDS PREPARED OUT --seconds 480
    train.py clips SPRITES WORDS PREPARED OUT --seconds 400 --resume OUT/model

The first stage writes OUT/vae.pt, the second OUT/model, a folder for diffusers'
StableDiffusionPipeline. The third trains with images and clips; it writes OUT/model again, and
OUT/motion_adapter. `--seconds` is the time of the steps alone: loading, painting and compiling are
not included. `--resume MODEL` starts the second stage from the weights of an earlier model.

Every minute, and on SIGINT or SIGTERM, a stage writes its state to OUT/state.pt: weights, averages,
optimizers, number of steps and seconds. The same command with `--continue` continues from there.
`--seconds` counts all runs together. The random seed is new.

On a GPU, launching the UNet's kernels took longer than running them, so a CUDA graph replays the
whole step. `--no-graph` launches each kernel instead.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from diffusers import (
    AnimateDiffPipeline,
    AutoencoderKL,
    DDIMScheduler,
    StableDiffusionPipeline,
    UNet2DConditionModel,
)
from PIL import Image
from torch import Tensor, nn
from torch._dynamo import config as dynamo_config
from torch.nn import functional
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from clips import FRAMES
from compose import Composer, read_bank
from loop import BEGIN, DEVICE, Loop, say
from motion import MotionNet, painted_clips
from paint import Painter

if TYPE_CHECKING:
    from collections.abc import Callable

SIDE = 64
PROMPTS = [
    "a red circle",
    "a green star on a blue background",
    "two purple hearts",
    "three orange triangles on a black background",
    "four blue squares",
    "five pink diamonds on a gray background",
    "a small yellow ring in the top left corner",
    "a large brown hexagon",
    "a red square left of a blue circle",
    "a black cross above a green oval on white",
    "a turquoise arrow at the bottom",
    "a white crescent moon on a purple background",
    "a red arrow",
    "a gray star",
    "a cat",
    "a dog",
    "a red apple",
    "a strawberry",
    "a pizza",
    "a guitar",
    "a rocket",
    "a robot",
    "an owl",
    "a penguin",
    "an octopus",
    "a house",
    "a castle",
    "a bicycle",
    "a bus",
    "an airplane",
    "a smiling face",
    "a snowman",
    "a sunflower",
    "a cactus",
    "a burger",
    "a birthday cake",
    "a telephone",
    "a book",
    "a clock",
    "a key",
    "two apples",
    "three cats on a yellow background",
    "a dog and a cat",
    "a guitar left of a rocket",
    "a small fish in the bottom right corner",
    "a silhouette of a horse in purple",
    "a butterfly on pink",
    "an emoji of a unicorn",
]
CLIP_PROMPTS = [
    "a red star moving left",
    "a blue square moving right",
    "a green heart moving up",
    "an orange circle moving down on a black background",
    "a purple diamond growing",
    "a brown hexagon shrinking on a yellow background",
    "a pink arrow spinning",
    "a cat standing still",
    "a rocket rising",
    "a balloon moving to the left on a pink background",
]


def low_precision() -> torch.autocast:
    return torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda")


def compiled(function: Callable[..., object]) -> Callable[..., object]:
    if DEVICE == "cpu":
        return function
    dynamo_config.suppress_errors = True
    return torch.compile(function)


def signed(pixels: Tensor) -> Tensor:
    return pixels.float() / 127.5 - 1


def train(
    name: str,
    modules: list[nn.Module],
    loss_of: Callable[[], Tensor],
    rate: float,
    decay: float,
    options: argparse.Namespace,
) -> list[nn.Module]:
    """Train according to the options, and return averages of the modules."""
    loop = Loop(
        name,
        modules,
        loss_of,
        rate=options.rate or rate,
        decay=decay,
        state_file=options.out / "state.pt",
        graph=not options.no_graph,
    )
    if options.go_on:
        loop.load_state()
    return loop.run(options.seconds)


def train_vae(vae: AutoencoderKL, pictures: Tensor, options: argparse.Namespace) -> AutoencoderKL:
    batch = options.batch or 192
    encode, decode = compiled(vae.encode), compiled(vae.decode)

    def edges(x: Tensor) -> tuple[Tensor, Tensor]:
        return x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]

    def loss() -> Tensor:
        true = signed(pictures[torch.randint(len(pictures), (batch,), device=DEVICE)])
        with low_precision():
            latents = encode(true).latent_dist
            made = decode(latents.sample()).sample
        made, mean, log_variance = made.float(), latents.mean.float(), latents.logvar.float()
        kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).mean()
        sharp = sum((a - b).abs().mean() for a, b in zip(edges(made), edges(true), strict=True))
        return (made - true).abs().mean() + 0.5 * sharp + ((made - true) ** 2).mean() + 2e-4 * kl

    return train("vae", [vae], loss, 1.5e-3, 0.995, options)[0]


@torch.no_grad()
def encoded(vae: AutoencoderKL, pictures: Tensor) -> Tensor:
    with low_precision():
        return torch.cat(
            [vae.encode(signed(part)).latent_dist.mean.half() for part in pictures.split(1024)]
        )


@torch.no_grad()
def signal_to_noise_db(vae: AutoencoderKL, pictures: Tensor) -> float:
    with low_precision():
        made = vae.decode(vae.encode(signed(pictures)).latent_dist.mean).sample.float().clamp(-1, 1)
    return 10 * math.log10(4 / functional.mse_loss(made, signed(pictures)).item())


def tokens(tokenizer: CLIPTokenizer, texts: list[str]) -> Tensor:
    length = tokenizer.model_max_length
    made = tokenizer(texts, padding="max_length", max_length=length, truncation=True)
    return torch.tensor(made.input_ids)


def new_models(tokenizer: CLIPTokenizer) -> tuple[CLIPTextModel, UNet2DConditionModel]:
    ends = tokenizer.eos_token_id
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(tokenizer.get_vocab()), hidden_size=256, intermediate_size=1024,
            num_attention_heads=4, num_hidden_layers=4, projection_dim=256,
            max_position_embeddings=tokenizer.model_max_length,
            bos_token_id=tokenizer.bos_token_id, eos_token_id=ends, pad_token_id=ends,
        )
    )  # fmt: skip
    unet = UNet2DConditionModel(
        sample_size=SIDE // 4, in_channels=4, out_channels=4, block_out_channels=(128, 160, 192),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D",) * 3, up_block_types=("CrossAttnUpBlock2D",) * 3,
        attention_head_dim=4, cross_attention_dim=256, use_linear_projection=True,
    )  # fmt: skip
    return text, unet


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=("vae", "unet", "clips"))
    for name in ("sprites", "words", "prepared", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument(
        "--seconds",
        type=float,
        required=True,
        help="time of all steps of the stage, with those of runs before --continue",
    )
    parser.add_argument("--pictures", type=int, default=300_000)
    parser.add_argument("--batch", type=int, help="images per step")
    parser.add_argument("--clips", type=int, default=16384, help="clips to train on")
    parser.add_argument("--clip-batch", type=int, default=12, help="clips per step")
    parser.add_argument("--rate", type=float)
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="MODEL",
        help="start from this model; needed for clips, unless there is OUT/model",
    )
    parser.add_argument(
        "--continue", dest="go_on", action="store_true", help="continue from OUT/state.pt"
    )
    parser.add_argument(
        "--no-graph", action="store_true", help="do not capture the step in a CUDA graph"
    )
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(int(BEGIN))
    options.out.mkdir(parents=True, exist_ok=True)

    bank, sprites = read_bank(options.sprites, options.words)
    painter = Painter(bank, DEVICE, SIDE)
    plans = dict(np.load(options.prepared / "plans.npz"))
    ids = plans.pop("ids")[: options.pictures]
    empty = torch.from_numpy(plans.pop("empty")).to(DEVICE).long()
    say(len(bank), "sprites,", len(ids), "plans, on", DEVICE, torch.__version__)
    pictures = torch.cat(
        [
            painter.paint({k: v[i : i + 1024] for k, v in plans.items()})
            for i in range(0, len(ids), 1024)
        ]
    )
    pictures = pictures[: options.pictures]
    say("painted", tuple(pictures.shape))

    vae = AutoencoderKL(
        3, 3, ("DownEncoderBlock2D",) * 3, ("UpDecoderBlock2D",) * 3, (48, 96, 128),
        layers_per_block=1, latent_channels=4, norm_num_groups=16, sample_size=SIDE,
    )  # fmt: skip
    if options.stage == "vae":
        vae = train_vae(vae.to(DEVICE), pictures, options)
        say(f"PSNR {signal_to_noise_db(vae, pictures[:512]):.2f} dB")
        vae.register_to_config(
            scaling_factor=1 / encoded(vae, pictures[:8192]).float().std().item()
        )
        torch.save(
            {"vae": vae.state_dict(), "scale": vae.config.scaling_factor}, options.out / "vae.pt"
        )
        say("scale", vae.config.scaling_factor)
        return

    if options.stage == "clips" and not options.resume:
        options.resume = options.out / "model"
    if options.resume:
        vae = AutoencoderKL.from_pretrained(options.resume, subfolder="vae").float().to(DEVICE)
        tokenizer = CLIPTokenizer.from_pretrained(options.resume, subfolder="tokenizer")
        text = CLIPTextModel.from_pretrained(options.resume, subfolder="text_encoder").float()
        unet = UNet2DConditionModel.from_pretrained(options.resume, subfolder="unet").float()
        text.train(), unet.train()
    else:
        saved = torch.load(options.out / "vae.pt", map_location="cpu")
        vae.load_state_dict(saved["vae"])
        vae.register_to_config(scaling_factor=saved["scale"])
        vae.to(DEVICE)
        tokenizer = CLIPTokenizer.from_pretrained(options.prepared / "tokenizer")
        text, unet = new_models(tokenizer)
    text, unet, vae = text.to(DEVICE), unet.to(DEVICE), vae.eval()
    latents = encoded(vae, pictures) * vae.config.scaling_factor
    say(
        f"PSNR {signal_to_noise_db(vae, pictures[:512]):.2f} dB, latents",
        tuple(latents.shape),
        f"std {latents[:8192].float().std().item():.3f}",
    )
    del pictures
    ids_there = torch.from_numpy(ids).to(DEVICE)
    scheduler = DDIMScheduler(
        beta_start=0.0001, beta_end=0.02, beta_schedule="linear", clip_sample=False,
        set_alpha_to_one=False,
        steps_offset=1, prediction_type="v_prediction",
    )  # fmt: skip
    alphas = scheduler.alphas_cumprod.to(DEVICE)

    def noised(true: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
        """Return noisy latents and the velocity, for one time per row."""
        noise = torch.randn_like(true)
        kept = alphas[times].view(-1, *[1] * (true.ndim - 1))
        signal, rest = kept.sqrt(), (1 - kept).sqrt()
        return signal * true + rest * noise, signal * noise - rest * true

    def times_of(count: int) -> Tensor:
        """Return times that are spread evenly, in random order of the intervals' ends."""
        strata = torch.arange(count, device=DEVICE) + torch.rand(count, device=DEVICE)
        return (strata * (1000 / count)).long().clamp(max=999)

    def some_unnamed(prompts: Tensor) -> Tensor:
        unnamed = torch.rand(len(prompts), 1, device=DEVICE) < 0.1
        return torch.where(unnamed, empty, prompts.long())

    # Compiling both networks for the third stage took more than two minutes on an H200.
    net = unet if options.stage == "clips" else compiled(unet)
    batch = options.batch or 320

    def loss() -> Tensor:
        rows = torch.randint(len(latents), (batch,), device=DEVICE)
        times = times_of(batch)
        noisy, velocity = noised(latents[rows].float(), times)
        prompts = some_unnamed(ids_there[rows])
        with low_precision():
            made = net(noisy, times, encoder_hidden_states=text(prompts).last_hidden_state).sample
        return functional.mse_loss(made.float(), velocity)

    motion = None
    if options.stage == "unet":
        unet, text = train("unet", [unet, text], loss, 1e-3, 0.999, options)
    else:
        motion = MotionNet(unet)
        if (options.resume / "motion_adapter").exists():
            motion.load(options.resume / "motion_adapter")
        frames, captions = painted_clips(Composer(sprites), painter, options.clips, int(BEGIN))
        clips = torch.cat([encoded(vae, part) for part in frames]).unflatten(0, (-1, FRAMES))
        clips *= vae.config.scaling_factor
        del frames
        clip_ids = tokens(tokenizer, captions).to(DEVICE)
        say("clips", tuple(clips.shape), json.dumps(captions[:4]))

        def loss_with_clips() -> Tensor:
            rows = torch.randint(len(clips), (options.clip_batch,), device=DEVICE)
            times = times_of(options.clip_batch)
            noisy, velocity = noised(clips[rows].float(), times)
            prompts = some_unnamed(clip_ids[rows])
            with low_precision():
                made = motion(noisy, times, text(prompts).last_hidden_state)
            return loss() + functional.mse_loss(made.float(), velocity)

        unet, text, layers = train(
            "clips", [unet, text, motion.layers], loss_with_clips, 1e-3, 0.998, options
        )
        adapter = motion.save(layers, options.out / "motion_adapter")
    parts = {"vae": vae, "text_encoder": text, "unet": unet}
    halves = {
        name: copy.deepcopy(part).to("cpu", torch.float16).eval() for name, part in parts.items()
    }
    nothing = {"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
    pipeline = StableDiffusionPipeline(
        **halves, tokenizer=tokenizer, scheduler=scheduler, **nothing
    )
    pipeline.save_pretrained(options.out / "model", safe_serialization=True)
    say(
        "saved",
        sum(p.stat().st_size for p in (options.out / "model").rglob("*.safetensors")),
        "bytes of weights",
    )
    prompts = PROMPTS if DEVICE == "cuda" else PROMPTS[:4]
    pipeline = copy.deepcopy(pipeline).to(DEVICE, torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    seeds = [torch.Generator().manual_seed(7 + row) for row in range(len(prompts))]
    with low_precision():
        made = pipeline(
            prompts,
            height=SIDE,
            width=SIDE,
            num_inference_steps=25,
            guidance_scale=4.0,
            generator=seeds,
        ).images
    sheet = Image.new("RGB", (8 * SIDE, -(-len(made) // 8) * SIDE))
    for row, picture in enumerate(made):
        sheet.paste(picture, (row % 8 * SIDE, row // 8 * SIDE))
    sheet.save(options.out / "sheet.png")
    say("sheet", json.dumps(prompts[:8]))
    if motion is None:
        return

    components = {**pipeline.components, "motion_adapter": adapter.float().to(DEVICE)}
    components.pop("safety_checker")
    animate = AnimateDiffPipeline(**components)
    animate.set_progress_bar_config(disable=True)
    shown = range(0, FRAMES, 3)
    prompts = CLIP_PROMPTS if DEVICE == "cuda" else CLIP_PROMPTS[:1]
    sheet = Image.new("RGB", (len(shown) * SIDE, len(prompts) * SIDE))
    for row, prompt in enumerate(prompts):
        with low_precision():
            (made,) = animate(
                prompt,
                num_frames=FRAMES,
                height=SIDE,
                width=SIDE,
                num_inference_steps=25,
                guidance_scale=4.0,
                generator=torch.Generator().manual_seed(7),
            ).frames
        for column, frame in enumerate(shown):
            sheet.paste(made[frame], (column * SIDE, row * SIDE))
    sheet.save(options.out / "clips.png")
    say("clips sheet")


if __name__ == "__main__":
    main()
