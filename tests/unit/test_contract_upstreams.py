"""Bounds and choices are those of the services that the operations stand for.

Written down a second time, from what those services publish: a slip of the pen in ``contract/``
shows here. Types and defaults are in `test_contract_interface.py`.
"""

from __future__ import annotations

from polymux import contract

#: Bounds (``>`` and ``<`` leave the bound itself out), multiples (``/8``) and aliases (``=``).
BOUNDS = {
    ("chat", ""): (
        "temperature 0..2, top_p 0..1, max_completion_tokens 1.. =max_tokens, n 1..8, "
        "frequency_penalty -2..2, presence_penalty -2..2, top_logprobs 0..20"
    ),
    ("free_chat", ""): "timeout 1..300",
    ("search_music", ""): "limit 1..50",
    ("generate_image", "A"): (
        "width 256..1280 /8, height 256..1280 /8, num_outputs 1..4, num_inference_steps 1..10 "
        "=num_inferences_steps, guidance_scale 0..50"
    ),
    ("generate_image", "B"): (
        "width 256..2048 /8, height 256..2048 /8, num_outputs 1..4, num_inference_steps "
        "1..500 =num_inferences_steps, guidance_scale 1..50, prompt_strength 0..1, lora_scale "
        "0..1, high_noise_frac 0..1, refine_steps 1..500, replicate_weights =lora_weights"
    ),
    ("generate_image", "C"): (
        "width 256..2048 /8, height 256..2048 /8, num_outputs 1..4, num_inference_steps "
        "1..100 =num_inferences_steps, guidance_scale 0..20, prompt_strength 0..1, lora_scale "
        "0..1"
    ),
    ("upscale_image", "A"): (
        "scale_factor >0..10, dynamic 1..50, creativity 0..1, resemblance 0..3, tiling_width "
        "16..256 /16, tiling_height 16..256 /16, num_inference_steps 1..100 "
        "=num_inferences_steps, downscaling_resolution 64..4096, sharpen 0..10, "
        "multistep_factor 0..2"
    ),
    ("upscale_image", "B"): "scale >0..10",
    ("transcribe", ""): "batch_size 1..256",
    ("generate_video", ""): (
        "init_weight 0..1, num_frames 1..100, num_inferences_steps 1..500 "
        "=num_inference_steps, width 256..2048 /8, height 256..2048 /8, guidance_scale "
        "1..100, fps 1..60, batch_size 1..8"
    ),
    ("generate_music", ""): (
        "denoising 0..1, alpha 0..1, num_inference_steps 1..500 =num_inferences_steps"
    ),
    ("download_music", ""): "query =song",
    ("convert_to_mp3", ""): (
        "bitrate 8000..320000, vbr_quality 0..<10, channels 1..2, start 0.., end >0.., stream 0.."
    ),
}

CHOICES = {
    ("chat", "", "reasoning_effort"): "none default low medium high",
    ("chat", "", "reasoning_format"): "hidden raw parsed",
    ("chat", "", "service_tier"): "auto on_demand flex performance",
    ("chat", "", "citation_options"): "enabled disabled",
    ("chat", "", "tool_choice"): "none auto required",
    ("chat", "", "function_call"): "none auto",
    ("free_chat", "", "model"): "gpt-4o gpt-4 gpt-3.5-turbo",
    ("generate_image", "A", "scheduler"): "DDIM DPMSolverMultistep HeunDiscrete KarrasDPM "
    "K_EULER_ANCESTRAL K_EULER PNDM DPM++2MSDE",
    ("generate_image", "B", "scheduler"): "DDIM DPMSolverMultistep HeunDiscrete KarrasDPM "
    "K_EULER_ANCESTRAL K_EULER PNDM",
    ("generate_image", "B", "refine"): "no_refiner expert_ensemble_refiner base_image_refiner",
    ("generate_image", "C", "scheduler"): "DDIM DPMSolverMultistep HeunDiscrete K_EULER_ANCESTRAL "
    "K_EULER PNDM DPM++2MKarras DPMSolver++",
    ("upscale_image", "A", "output_format"): "webp jpg png",
    ("upscale_image", "A", "handfix"): "disabled hands_only image_and_hands",
    ("transcribe", "", "task"): "transcribe translate",
    ("transcribe", "", "timestamp"): "chunk word",
    ("generate_video", "", "video_model"): "xl 576w potat1 animov-512x",
    ("generate_music", "", "seed_image_id"): "agile marim mask_beat_lines_80 mask_gradient_dark "
    "mask_gradient_top_70 mask_gradient_top_fifth_75 mask_top_third_75 mask_top_third_95 motorway "
    "og_beat vibes",
    ("convert_to_mp3", "", "sample_rate"): "8000 11025 12000 16000 22050 24000 32000 44100 48000",
}

SPACED_CHOICES = {
    ("upscale_image", "A", "sd_model"): "epicrealism_naturalSinRC1VAE.safetensors [84d76a0328]; "
    "juggernaut_reborn.safetensors [338b85bc4f]; flat2DAnimerge_v45Sharp.safetensors",
    ("upscale_image", "A", "scheduler"): "DPM++ 2M; DPM++ 2M Karras; DPM++ SDE; DPM++ SDE Karras; "
    "DPM++ 2M SDE; DPM++ 2M SDE Karras; DPM++ 2M SDE Exponential; DPM++ 2M SDE Heun; "
    "DPM++ 2M SDE Heun Karras; DPM++ 2M SDE Heun Exponential; DPM++ 3M SDE; DPM++ 3M SDE Karras; "
    "DPM++ 3M SDE Exponential; DPM++ 2S a; DPM++ 2S a Karras; DPM2; DPM2 Karras; DPM2 a; "
    "DPM2 a Karras; DPM fast; DPM adaptive; Euler; Euler a; Heun; LMS; LMS Karras; Restart; DDIM; "
    "PLMS; UniPC",
}

MODELS = {
    ("generate_image", "A"): "bytedance/sdxl-lightning-4step",
    ("generate_image", "B"): "lorenzomarines/astra",
    ("generate_image", "C"): "playgroundai/playground-v2.5-1024px-aesthetic",
    ("upscale_image", "A"): "philz1337x/clarity-upscaler",
    ("upscale_image", "B"): "nightmareai/real-esrgan",
    ("transcribe", ""): "turian/insanely-fast-whisper-with-video",
    ("generate_video", ""): "anotherjesse/zeroscope-v2-xl",
    ("generate_music", ""): "riffusion/riffusion",
}

RULES = {
    ("chat", ""): {("at_most_one", ("reasoning_format", "include_reasoning"))},
    ("generate_image", "B"): {("needs", ("mask", "image"))},
    ("generate_image", "C"): {("needs", ("mask", "image"))},
    ("transcribe", ""): {("exactly_one", ("audio", "url"))},
    ("convert_to_mp3", ""): {
        ("exactly_one", ("file", "url")),
        ("at_most_one", ("bitrate", "vbr_quality")),
        ("ascending", ("start", "end")),
    },
}

BOTH_ENCODINGS = {("generate_image", "A"), ("generate_music", "")}

VARIANTS = {
    (operation.name, variant.id): variant
    for operation in contract.operations()
    for variant in operation.variants
}


def bounds_of(field: contract.Field) -> str:
    """As it is written above; nothing for a field without any."""
    low = "" if field.minimum is None else f"{field.minimum:.16g}"
    high = "" if field.maximum is None else f"{field.maximum:.16g}"
    bounds = f"{'>' * field.exclusive_minimum}{low}..{'<' * field.exclusive_maximum}{high}"
    words = [bounds] if bounds != ".." else []
    words += [f"/{field.multiple_of}"] if field.multiple_of else []
    return " ".join([field.name, *words, *(f"={alias}" for alias in field.aliases)])


def test_bounds_and_aliases_are_those_written_down() -> None:
    found = {
        key: {text for one in variant.fields if (text := bounds_of(one)) != one.name}
        for key, variant in VARIANTS.items()
    }
    wanted = {key: set(text.split(", ")) for key, text in BOUNDS.items()}
    assert {key: texts for key, texts in found.items() if texts} == wanted


def test_models_rules_and_encodings_are_those_written_down() -> None:
    assert {key: one.model for key, one in VARIANTS.items() if one.model} == MODELS
    for key, variant in VARIANTS.items():
        assert {(one.rule, one.fields) for one in variant.rules} == RULES.get(key, set())
        wanted = {"json", "multipart"} if key in BOTH_ENCODINGS else {variant.encoding}
        assert set(variant.accepts) == wanted


def test_choices_are_those_written_down() -> None:
    wanted = {key: set(text.split()) for key, text in CHOICES.items()}
    wanted |= {key: set(text.split("; ")) for key, text in SPACED_CHOICES.items()}
    found = {
        (*key, field.name): {str(choice) for choice in field.choices}
        for key, variant in VARIANTS.items()
        for field in variant.fields
        if field.choices
    }
    assert found == wanted
