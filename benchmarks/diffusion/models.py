"""Models with random weights in the size of real ones."""

import json
from pathlib import Path
from typing import Any

SHAPES = ("tiny", "sd15", "sdxl")
_BETAS = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
_UNETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "block_out_channels": (32, 64),
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": 768,
        "attention_head_dim": 8,
    },
    "sd15": {"cross_attention_dim": 768, "attention_head_dim": 8},
    "sdxl": {
        "block_out_channels": (320, 640, 1280),
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": 2048,
        "attention_head_dim": (5, 10, 20),
        "transformer_layers_per_block": (1, 2, 10),
        "use_linear_projection": True,
        "addition_embed_type": "text_time",
        "addition_time_embed_dim": 256,
        "projection_class_embeddings_input_dim": 2816,
    },
}


def build(shape: str, folder: Path) -> Path:
    """Write a model of the given shape and return its folder."""
    import torch
    from diffusers import (
        AutoencoderKL,
        EulerDiscreteScheduler,
        StableDiffusionPipeline,
        StableDiffusionXLPipeline,
        UNet2DConditionModel,
    )
    from transformers import CLIPTextModel, CLIPTextModelWithProjection

    torch.manual_seed(0)
    words = tokenizer(folder / "words")
    shared: dict[str, Any] = {
        "unet": UNet2DConditionModel(sample_size=64, **_UNETS[shape]),
        "vae": AutoencoderKL(
            block_out_channels=(128, 256, 512, 512) if shape != "tiny" else (32, 32, 32, 32),
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            layers_per_block=2,
            latent_channels=4,
        ),
        "text_encoder": CLIPTextModel(_text_config(768, 12)),
        "tokenizer": words,
        "scheduler": EulerDiscreteScheduler(**_BETAS),
    }
    if shape == "sdxl":
        second = CLIPTextModelWithProjection(_text_config(1280, 32))
        made: Any = StableDiffusionXLPipeline(
            **shared, text_encoder_2=second, tokenizer_2=words, add_watermarker=False
        )
    else:
        made = StableDiffusionPipeline(
            **shared, safety_checker=None, feature_extractor=None, requires_safety_checker=False
        )
    made.save_pretrained(folder)
    return folder


def _text_config(width: int, layers: int) -> Any:
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        vocab_size=514,
        hidden_size=width,
        intermediate_size=4 * width,
        num_attention_heads=width // 64,
        num_hidden_layers=layers,
        projection_dim=width,
        bos_token_id=512,
        eos_token_id=513,
        pad_token_id=513,
    )


def tokenizer(folder: Path) -> Any:
    """Return a byte-level tokenizer. Speed does not depend on the vocabulary."""
    from transformers import CLIPTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(one) for one in [*range(33, 127), *range(161, 173), *range(174, 256)]]
    letters += [chr(256 + one) for one in range(256 - len(letters))]
    words = [*letters, *(f"{one}</w>" for one in letters), "<|startoftext|>", "<|endoftext|>"]
    numbered = {word: number for number, word in enumerate(words)}
    (folder / "vocab.json").write_text(json.dumps(numbered), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", "utf-8")
    return CLIPTokenizer(
        str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77
    )
