"""Trains music-mini in three stages: the VAE, then text encoder and UNet together, then guidance.

    train.py SOUNDS TOKENIZER OUT [--vae-seconds 80] [--unet-seconds 230] [--soften-seconds 25]

It composes loops, draws them, and writes OUT/model, a folder for diffusers'
StableDiffusionPipeline. SOUNDS is the file of `sounds.py`, TOKENIZER the folder of `tokenizer.py`.
SIGINT (Ctrl+C) or SIGTERM ends the current stage. The model
that exists then is written.

Requests use guidance 7, which is strong for a small model. The last stage teaches the UNet to give
at guidance 7 what it gave at guidance 3.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import signal
import time
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from torch import Tensor, nn
from torch.nn import functional
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from compose import compose
from sounds import Bank, played, read_bank
from spectrogram import SIDE_PX, Spectrogram

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOKENS = 77
GUIDANCE, SOFT_GUIDANCE = 7.0, 3.0
#: Share of captions that are replaced by the empty one.
EMPTY_SHARE = 0.1
VAE_RATE, UNET_RATE, SOFTEN_RATE = 1.5e-3, 8e-4, 2e-4
KL_WEIGHT = 5e-4
CROP_PX = 128
#: Weight of steps with little noise: min-SNR with this maximum.
MAX_SNR = 5.0

_bank: Bank = {}


def _start(sounds: Path) -> None:
    global _bank
    _bank = read_bank(sounds)


def _composed(job: tuple[int, int]) -> tuple[np.ndarray, str]:
    loop = compose(np.random.default_rng(job))
    return np.rint(played(loop.notes, _bank) * 32_000).astype(np.int16), loop.caption


def dataset(sounds: Path, count: int, seed: int) -> tuple[Tensor, list[str]]:
    """Return images [count, 512, 512] as bytes on the device, and their captions."""
    images = torch.empty(count, SIDE_PX, SIDE_PX, dtype=torch.uint8, device=DEVICE)
    captions: list[str] = []
    spectrogram = Spectrogram(DEVICE)
    workers = len(os.sched_getaffinity(0))
    with get_context("spawn").Pool(workers, _start, (sounds,)) as pool:
        jobs = [(seed, index) for index in range(count)]
        for index, (sound, caption) in enumerate(pool.imap(_composed, jobs, chunksize=20)):
            samples = torch.from_numpy(sound).to(DEVICE).float() / 32_768
            images[index] = spectrogram.images(samples[None])[0]
            captions.append(caption)
    return images, captions


class Stage:
    """The steps of a stage: their time, their learning rate, and the average of the weights."""

    def __init__(
        self, name: str, modules: list[nn.Module], seconds: float, rate: float, decay: float
    ) -> None:
        self._name, self._seconds, self._rate, self._decay = name, seconds, rate, decay
        self.weights = [one for module in modules for one in module.parameters()]
        self._averages = [one.detach().clone() for one in self.weights]
        self._optimizer = torch.optim.AdamW(
            self.weights, rate, betas=(0.9, 0.99), weight_decay=0.01, fused=DEVICE == "cuda"
        )
        self._is_stopped = False
        self.steps = 0

    def __iter__(self) -> Iterator[float]:
        """Yield the share of the time that has passed, until it is over or a signal arrives."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        began = reported = time.monotonic()
        while not self._is_stopped:
            now = time.monotonic()
            share = (now - began) / self._seconds
            if share >= 1:
                break
            for group in self._optimizer.param_groups:
                group["lr"] = self._rate * _factor(share)
            yield share
            if now - reported > 10:
                reported = now
                print(f"{self._name}: {share:.0%}, step {self.steps}, loss {self._loss:.4f}")
        with torch.no_grad():
            for weight, average in zip(self.weights, self._averages, strict=True):
                weight.copy_(average)

    def _stop(self, *_: object) -> None:
        self._is_stopped = True

    def learn(self, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.weights, 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        self._loss = loss.item()
        decay = min(self._decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self._averages, [one.detach() for one in self.weights], 1 - decay)


def _factor(share: float) -> float:
    falling = 0.5 + 0.5 * math.cos(math.pi * min(1.0, max(0.0, share - 0.25) / 0.75))
    return min(1.0, share / 0.03 + 0.02) * falling


def autocast() -> Any:
    return torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda")


def scaled(images: Tensor) -> Tensor:
    """Return images as the VAE gets them: three equal channels from -1 to 1."""
    gray = images.float()[:, None] / 127.5 - 1
    return gray.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)


def train_vae(vae: Any, images: Tensor, seconds: float, batch: int) -> None:
    """Train on crops, and in the last quarter on whole images, for the group norms' statistics."""
    stage = Stage("vae", [vae], seconds, VAE_RATE, 0.998)
    for share in stage:
        is_whole = share > 0.75
        width = SIDE_PX if is_whole else CROP_PX
        left = int(torch.randint(0, SIDE_PX - width + 1, ()))
        count = max(1, batch // 4) if is_whole else batch
        pick = torch.randint(0, len(images), (count,), device=DEVICE)
        wanted = scaled(images[pick, :, left : left + width])
        with autocast():
            coded = vae.encode(wanted).latent_dist
            made = vae.decode(coded.sample()).sample
        made, mean, logvar = made.float(), coded.mean.float(), coded.logvar.float()
        # Loud cells count up to three times as much as silence.
        loss = ((2 - wanted) * (made - wanted).abs()).mean()
        for axis in (2, 3):
            loss = loss + 0.5 * (made.diff(dim=axis) - wanted.diff(dim=axis)).abs().mean()
        coarse = functional.avg_pool2d(made, 8) - functional.avg_pool2d(wanted, 8)
        divergence = 0.5 * (mean**2 + logvar.exp() - 1 - logvar).mean()
        stage.learn(loss + 0.5 * coarse.abs().mean() + KL_WEIGHT * divergence)


class Latents:
    """Encoded images and their captions."""

    @torch.no_grad()
    def __init__(self, vae: Any, images: Tensor, captions: Tensor) -> None:
        means, deviations = [], []
        for part in images.split(32):
            with autocast():
                coded = vae.encode(scaled(part)).latent_dist
            means.append(coded.mean.half())
            deviations.append(coded.std.half())
        self._means, self._deviations = torch.cat(means), torch.cat(deviations)
        self._captions = captions
        self._factor = 1.0
        some = self._sampled(torch.arange(min(2000, len(images)), device=DEVICE))
        self._factor = 1 / some.std().item()
        vae.register_to_config(scaling_factor=self._factor)

    def _sampled(self, pick: Tensor) -> Tensor:
        mean = self._means[pick].float()
        return (mean + self._deviations[pick].float() * torch.randn_like(mean)) * self._factor

    def noised(self, count: int, alphas: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return noisy latents, their time steps, the velocities to predict, and captions."""
        pick = torch.randint(0, len(self._means), (count,), device=DEVICE)
        clean = self._sampled(pick)
        # The time steps of a batch are spread evenly.
        order = torch.randperm(count, device=DEVICE) + torch.rand(count, device=DEVICE)
        steps = (order / count * len(alphas)).long().clamp_max(len(alphas) - 1)
        noise = torch.randn_like(clean)
        alpha = alphas[steps].view(-1, 1, 1, 1)
        noisy = alpha.sqrt() * clean + (1 - alpha).sqrt() * noise
        velocity = alpha.sqrt() * noise - (1 - alpha).sqrt() * clean
        noisy = noisy.contiguous(memory_format=torch.channels_last)
        return noisy, steps, velocity, self._captions[pick]


def train_unet(
    unet: Any,
    text: Any,
    latents: Latents,
    alphas: Tensor,
    empty: Tensor,
    seconds: float,
    batch: int,
) -> None:
    stage = Stage("unet", [unet, text], seconds, UNET_RATE, 0.9985)
    for _ in stage:
        noisy, steps, velocity, captions = latents.noised(batch, alphas)
        is_empty = torch.rand(batch, 1, device=DEVICE) < EMPTY_SHARE
        captions = torch.where(is_empty, empty, captions)
        with autocast():
            made = unet(noisy, steps, text(captions).last_hidden_state).sample
        errors = functional.mse_loss(made.float(), velocity, reduction="none").mean((1, 2, 3))
        ratio = alphas[steps] / (1 - alphas[steps]).clamp_min(1e-6)
        # The added 1 keeps the last step, which has no signal.
        stage.learn((errors * (ratio + 1).clamp_max(MAX_SNR + 1) / (ratio + 1)).mean())


def soften(
    unet: Any,
    text: Any,
    latents: Latents,
    alphas: Tensor,
    empty: Tensor,
    seconds: float,
    batch: int,
) -> None:
    teacher = copy.deepcopy(unet).requires_grad_(requires_grad=False)
    stage = Stage("soften", [unet], seconds, SOFTEN_RATE, 0.99)
    for _ in stage:
        noisy, steps, _, captions = latents.noised(max(1, batch // 2), alphas)
        noisy = torch.cat([noisy, noisy]).contiguous(memory_format=torch.channels_last)
        steps = steps.repeat(2)
        with autocast():
            with torch.no_grad():
                words = text(torch.cat([empty.expand_as(captions), captions])).last_hidden_state
                plain, guided = teacher(noisy, steps, words).sample.float().chunk(2)
            own_plain, own_guided = unet(noisy, steps, words).sample.float().chunk(2)
        wanted = plain + SOFT_GUIDANCE * (guided - plain)
        made = own_plain + GUIDANCE * (own_guided - own_plain)
        loss = functional.mse_loss(own_plain, plain) + 0.2 * functional.mse_loss(made, wanted)
        stage.learn(loss)


def new_models(tokenizer: Any) -> tuple[Any, Any, Any, Any]:
    vae = AutoencoderKL(
        in_channels=3, out_channels=3, down_block_types=["DownEncoderBlock2D"] * 5,
        up_block_types=["UpDecoderBlock2D"] * 5, block_out_channels=(16, 32, 64, 96, 96),
        layers_per_block=1, latent_channels=8, norm_num_groups=8, sample_size=SIDE_PX,
        mid_block_add_attention=False, force_upcast=False,
    )  # fmt: skip
    config = CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=192, intermediate_size=384, num_hidden_layers=4,
        num_attention_heads=6, max_position_embeddings=TOKENS, projection_dim=192,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    unet = UNet2DConditionModel(
        sample_size=32, in_channels=8, out_channels=8,
        down_block_types=["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"],
        up_block_types=["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"],
        block_out_channels=(128, 128, 128), layers_per_block=1, cross_attention_dim=192,
        attention_head_dim=4, norm_num_groups=32,
    )  # fmt: skip
    scheduler = DDIMScheduler(
        num_train_timesteps=1000, beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear",
        clip_sample=False, set_alpha_to_one=True, steps_offset=1, prediction_type="v_prediction",
        timestep_spacing="trailing", rescale_betas_zero_snr=True,
    )  # fmt: skip
    return vae, CLIPTextModel(config), unet, scheduler


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sounds", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--loops", type=int, default=30_000, help="loops to compose")
    parser.add_argument("--vae-seconds", type=float, default=80)
    parser.add_argument("--unet-seconds", type=float, default=230)
    parser.add_argument("--soften-seconds", type=float, default=25)
    parser.add_argument("--vae-batch", type=int, default=48)
    parser.add_argument("--unet-batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    images, captions = dataset(options.sounds, options.loops, options.seed)
    tokenizer = CLIPTokenizer.from_pretrained(options.tokenizer)

    def tokens(texts: list[str]) -> Tensor:
        padded = {"padding": "max_length", "max_length": TOKENS, "truncation": True}
        found: Tensor = tokenizer(texts, return_tensors="pt", **padded).input_ids.to(DEVICE)
        return found

    vae, text, unet, scheduler = new_models(tokenizer)
    for module in (vae, text, unet):
        module.to(DEVICE)
    for module in (vae, unet):
        module.to(memory_format=torch.channels_last)
    alphas, empty = scheduler.alphas_cumprod.to(DEVICE), tokens([""])
    train_vae(vae, images, options.vae_seconds, options.vae_batch)
    latents = Latents(vae, images, tokens(captions))
    train_unet(unet, text, latents, alphas, empty, options.unet_seconds, options.unet_batch)
    if options.soften_seconds > 0:
        soften(unet, text, latents, alphas, empty, options.soften_seconds, options.unet_batch)
    vae, text, unet = (module.half().eval() for module in (vae, text, unet))
    pipeline = StableDiffusionPipeline(
        vae=vae, text_encoder=text, tokenizer=tokenizer, unet=unet, scheduler=scheduler,
        safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    pipeline.save_pretrained(options.out / "model")


if __name__ == "__main__":
    main()
