"""Diffusion models with tiny random weights, which test the code and not the image quality."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.lazy_imports import diffusers, torch, transformers

if TYPE_CHECKING:
    from pathlib import Path

_BETAS = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}


def tokenizer(folder: Path) -> transformers.CLIPTokenizer:
    """A tokenizer whose vocabulary consists of bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(one) for one in [*range(33, 127), *range(161, 173), *range(174, 256)]]
    letters += [chr(256 + one) for one in range(256 - len(letters))]
    words = [*letters, *(f"{one}</w>" for one in letters), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {word: number for number, word in enumerate(words)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", "utf-8")
    return transformers.CLIPTokenizer(
        str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77
    )


def text_config() -> transformers.CLIPTextConfig:
    return transformers.CLIPTextConfig(
        vocab_size=514,
        hidden_size=32,
        intermediate_size=37,
        num_attention_heads=4,
        num_hidden_layers=2,
        projection_dim=32,
        bos_token_id=512,
        eos_token_id=513,
        pad_token_id=513,
    )


def decoder() -> diffusers.AutoencoderKL:
    """A VAE between pixels and latents."""
    torch.manual_seed(0)
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 8, 8, 8),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=64,
    )


def stable_diffusion(folder: Path, seed: int = 0, **others: Any) -> Path:
    """Save a model with the architecture of Stable Diffusion 1.5."""
    parts = stable_diffusion_parts(folder, seed) | others
    made = diffusers.StableDiffusionPipeline(
        **parts, safety_checker=None, feature_extractor=None, requires_safety_checker=False
    )
    made.save_pretrained(folder)
    return folder


def stable_diffusion_parts(folder: Path, seed: int = 0) -> dict[str, Any]:
    words = tokenizer(folder / "words")
    torch.manual_seed(seed)
    return {
        "unet": diffusers.UNet2DConditionModel(
            block_out_channels=(8, 16),
            layers_per_block=1,
            sample_size=8,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=32,
            attention_head_dim=4,
            norm_num_groups=4,
        ),
        "text_encoder": transformers.CLIPTextModel(text_config()),
        "vae": decoder(),
        "tokenizer": words,
        "scheduler": diffusers.DDIMScheduler(
            clip_sample=False, set_alpha_to_one=False, steps_offset=1, **_BETAS
        ),
    }


def stable_diffusion_xl(folder: Path, seed: int = 0) -> Path:
    """Save a model with the architecture of SDXL."""
    words = tokenizer(folder / "words")
    torch.manual_seed(seed)
    made = diffusers.StableDiffusionXLPipeline(
        unet=_xl_unet(),
        text_encoder=transformers.CLIPTextModel(text_config()),
        text_encoder_2=transformers.CLIPTextModelWithProjection(text_config()),
        vae=decoder(),
        tokenizer=words,
        tokenizer_2=words,
        scheduler=diffusers.EulerDiscreteScheduler(
            **_BETAS, timestep_spacing="leading", steps_offset=1
        ),
        add_watermarker=False,
    )
    made.save_pretrained(folder)
    return folder


def _xl_unet(cross: int = 64, numbers: int = 6) -> diffusers.UNet2DConditionModel:
    return diffusers.UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        sample_size=32,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        transformer_layers_per_block=(1, 2),
        projection_class_embeddings_input_dim=8 * numbers + 32,
        cross_attention_dim=cross,
        norm_num_groups=4,
    )


def refiner(folder: Path) -> Path:
    """Save a model with the architecture of SDXL's refiner: one text encoder, aesthetic score."""
    words = tokenizer(folder / "words")
    torch.manual_seed(3)
    made = diffusers.StableDiffusionXLImg2ImgPipeline(
        unet=_xl_unet(cross=32, numbers=5),
        text_encoder=None,
        text_encoder_2=transformers.CLIPTextModelWithProjection(text_config()),
        vae=decoder(),
        tokenizer=None,
        tokenizer_2=words,
        scheduler=diffusers.EulerDiscreteScheduler(
            **_BETAS, timestep_spacing="leading", steps_offset=1
        ),
        requires_aesthetics_score=True,
        add_watermarker=False,
    )
    made.save_pretrained(folder)
    return folder


def tiny_vae(folder: Path) -> Path:
    """Save a VAE with the architecture of TAESD."""
    torch.manual_seed(4)
    diffusers.AutoencoderTiny(
        encoder_block_out_channels=(8, 8, 8, 8), decoder_block_out_channels=(8, 8, 8, 8)
    ).save_pretrained(folder)
    return folder


def safety_checker(folder: Path, flags: bool) -> Path:
    """Save a safety checker that rejects every image or none."""
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker

    torch.manual_seed(5)
    config = transformers.CLIPConfig(
        text_config={"hidden_size": 16},
        vision_config={
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_attention_heads": 2,
            "num_hidden_layers": 1,
            "image_size": 32,
            "patch_size": 16,
        },
        projection_dim=8,
    )
    made = StableDiffusionSafetyChecker(config)
    made.concept_embeds_weights.data[:] = -1.0 if flags else 1.0
    made.save_pretrained(folder)
    return folder


def lora(folder: Path, model: Path) -> Path:
    """Save LoRA weights for the attention of an SDXL model in one file."""
    from peft import LoraConfig
    from peft.utils import get_peft_model_state_dict

    kind = diffusers.StableDiffusionXLPipeline
    pipeline = kind.from_pretrained(model, local_files_only=True)
    torch.manual_seed(6)
    pipeline.unet.add_adapter(
        LoraConfig(
            r=2, lora_alpha=2, init_lora_weights=False, target_modules=["to_q", "to_k", "to_v"]
        )
    )
    state = get_peft_model_state_dict(pipeline.unet)
    folder.mkdir(parents=True, exist_ok=True)
    kind.save_lora_weights(folder, unet_lora_layers=state, safe_serialization=True)
    return folder / "pytorch_lora_weights.safetensors"
