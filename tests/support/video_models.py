"""Video models with tiny random weights, which test the code and not the image quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.diffusion_models import stable_diffusion_parts
from support.lazy_imports import diffusers, torch, transformers

if TYPE_CHECKING:
    from pathlib import Path

#: The maximum number of frames for the tiny motion layers.
MAX_ANIMATED_FRAMES = 8


def text_to_video(folder: Path) -> Path:
    """Save a model with the architecture of zeroscope."""
    parts = stable_diffusion_parts(folder)
    torch.manual_seed(1)
    parts["unet"] = diffusers.UNet3DConditionModel(
        block_out_channels=(8, 8),
        layers_per_block=1,
        sample_size=8,
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
        cross_attention_dim=32,
        attention_head_dim=4,
        norm_num_groups=2,
    )
    diffusers.TextToVideoSDPipeline(**parts).save_pretrained(folder)
    return folder


def animate_diff(folder: Path) -> Path:
    """Save an image model with motion layers."""
    parts = stable_diffusion_parts(folder)
    torch.manual_seed(2)
    adapter = diffusers.MotionAdapter(
        block_out_channels=(8, 16),
        motion_layers_per_block=1,
        motion_norm_num_groups=2,
        motion_num_attention_heads=4,
        motion_max_seq_length=MAX_ANIMATED_FRAMES,
    )
    parts["scheduler"] = diffusers.DDIMScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="linear", clip_sample=False
    )
    diffusers.AnimateDiffPipeline(**parts, motion_adapter=adapter).save_pretrained(folder)
    return folder


def wan(folder: Path) -> Path:
    """Save a model with the architecture of Wan 2.1."""
    torch.manual_seed(3)
    made = diffusers.WanPipeline(
        tokenizer=_byte_tokenizer(folder / "words"),
        text_encoder=transformers.UMT5EncoderModel(
            transformers.UMT5Config(
                vocab_size=300, d_model=32, d_kv=8, d_ff=37, num_layers=1, num_heads=4
            )
        ),
        transformer=diffusers.WanTransformer3DModel(
            patch_size=(1, 2, 2),
            num_attention_heads=2,
            attention_head_dim=12,
            in_channels=16,
            out_channels=16,
            text_dim=32,
            freq_dim=32,
            ffn_dim=32,
            num_layers=1,
            cross_attn_norm=True,
            qk_norm="rms_norm_across_heads",
            rope_max_seq_len=32,
        ),
        vae=diffusers.AutoencoderKLWan(
            base_dim=4,
            z_dim=16,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, True, True],
        ),
        scheduler=diffusers.UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
        ),
    )
    made.save_pretrained(folder)
    return folder


def _byte_tokenizer(folder: Path) -> transformers.T5TokenizerFast:
    """A tokenizer for single letters, with T5's special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    letters = [(chr(number), -5.0) for number in range(32, 127)]
    words = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -9.0), ("▁", -2.0), *letters]
    made = Tokenizer(models.Unigram(words, 2, False))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    made.save(str(folder / "tokenizer.json"))
    return transformers.T5TokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), extra_ids=0, model_max_length=512
    )
