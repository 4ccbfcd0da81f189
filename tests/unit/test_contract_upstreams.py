"""Types, defaults, bounds and choices are those of the services that the operations stand for.

Written down a second time, from what those services publish: a slip of the pen in ``contract/``
shows here. A line is a field: name, type, default (``-`` without, ``*`` for those of
`LONG_DEFAULTS`), bounds (``>`` and ``<`` leave the bound itself out), ``/8`` for a multiple, ``+``
for what the interface's own text does not have, and aliases behind ``=``.
"""

from __future__ import annotations

from typing import Any

import pytest
from polymux import contract

FIELDS = """
chat
messages array - required
model string - required
stream boolean false
temperature number 1 0..2 +
top_p number 1 0..1 +
max_completion_tokens integer - 1.. + =max_tokens
stop array|string - +
seed integer - +
n integer 1 1..8 +
response_format object - +
tools array - +
tool_choice object|string - +
parallel_tool_calls boolean true +
disable_tool_validation boolean false +
reasoning_effort string - +
reasoning_format string - +
include_reasoning boolean - +
service_tier string on_demand +
stream_options object - +
user string - +
frequency_penalty number 0 -2..2 +
presence_penalty number 0 -2..2 +
logprobs boolean - +
top_logprobs integer - 0..20 +
logit_bias object - +
functions array - +
function_call object|string - +
documents array - +
citation_options string - +
search_settings object - +
compound_custom object - +
include_domains array - +
exclude_domains array - +
metadata object - +
store boolean - +

free_chat
messages array - required
model string gpt-4o
stream boolean false
timeout integer - 1..300
shuffle boolean false
image_url string -

search_music
song string - required
limit integer 5 1..50
proxy string -

generate_image A
prompt string - required
negative_prompt string -
width integer 1024 256..1280 /8
height integer 1024 256..1280 /8
num_outputs integer 1 1..4
scheduler string K_EULER
num_inference_steps integer 4 1..10 =num_inferences_steps
guidance_scale number 0 0..50
seed integer - +
disable_safety_checker boolean false +

generate_image B
prompt string - required
negative_prompt string -
image file -
mask file -
width integer 1024 256..2048 /8
height integer 1024 256..2048 /8
num_outputs integer 1 1..4
scheduler string K_EULER
num_inference_steps integer 50 1..500 =num_inferences_steps
guidance_scale number 7 1..50
prompt_strength number 0.8 0..1
lora_scale number 0.6 0..1
apply_watermark boolean false
seed integer - +
refine string no_refiner +
high_noise_frac number 0.8 0..1 +
refine_steps integer - 1..500 +
replicate_weights string - + =lora_weights
disable_safety_checker boolean false +

generate_image C
prompt string - required
negative_prompt string -
width integer 1024 256..2048 /8
height integer 1024 256..2048 /8
num_outputs integer 1 1..4
scheduler string DPMSolver++
num_inference_steps integer 25 1..100 =num_inferences_steps
guidance_scale number 3 0..20
prompt_strength number 0.8 0..1
lora_scale number 0.6 0..1
image file -
mask file -
apply_watermark boolean false +
seed integer - +
disable_safety_checker boolean false +

upscale_image A
image file - required
prompt string *
negative_prompt string *
scale_factor number 2 >0..10
dynamic number 6 1..50
creativity number 0.35 0..1
resemblance number 0.6 0..3
tiling_width integer 112 16..256 /16
tiling_height integer 144 16..256 /16
sd_model string *
scheduler string *
num_inference_steps integer 18 1..100 =num_inferences_steps
downscaling boolean false
downscaling_resolution integer 768 64..4096
sharpen number 0 0..10
output_format string png
seed integer 1337 +
multistep_factor number 0.8 0..2 +
lora_links string - +
custom_sd_model string - +
mask file - +
handfix string disabled +
pattern boolean false +

upscale_image B
image file - required
scale number 4 >0..10
face_enhance boolean false

transcribe
audio file -
url string -
task string transcribe
batch_size integer 64 1..256
timestamp string chunk
language string - +

generate_video
prompt string - required
negative_prompt string *
init_video file - +
init_weight number 0.5 0..1
num_frames integer 24 1..100
num_inferences_steps integer 50 1..500 =num_inference_steps
width integer 1024 256..2048 /8
height integer 1024 256..2048 /8
guidance_scale number 17.5 1..100
fps integer 10 1..60
video_model string xl
batch_size integer 1 1..8
remove_watermark boolean false
seed integer - +

generate_music
prompt_a string - required
denoising number 0.75 0..1
prompt_b string -
alpha number 0.5 0..1
num_inference_steps integer 50 1..500 =num_inferences_steps
seed_image_id string vibes
seed integer - +

identify_song
file file - required

download_video
url string - required
resolution string best

summarize_video
url string - required

download_music
query string - required =song

convert_to_mp3
url string -
file file -
bitrate integer|string - 8000..320000 +
vbr_quality number - 0..<10 +
sample_rate integer - +
channels integer - 1..2 +
start number|string - 0.. +
end number|string - >0.. +
stream integer - 0.. +

read_text
file file - required
lang string - +
"""

LONG_DEFAULTS = {
    ("upscale_image", "prompt"): "masterpiece, best quality, highres, <lora:more_details:0.5> "
    "<lora:SDXLrender_v2.0:1>",
    ("upscale_image", "negative_prompt"): "(worst quality, low quality, normal quality:2) "
    "JuggernautNegative-neg",
    ("upscale_image", "sd_model"): "juggernaut_reborn.safetensors [338b85bc4f]",
    ("upscale_image", "scheduler"): "DPM++ 3M SDE Karras",
    ("generate_video", "negative_prompt"): "blurred, noisy, washed out, distorted, broken",
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


def written() -> dict[tuple[str, str], list[str]]:
    """Operation and variant to the lines of their fields."""
    found = {}
    for block in FIELDS.strip().split("\n\n"):
        head, *lines = block.splitlines()
        name, _, variant = head.partition(" ")
        found[name, variant] = lines
    return found


WRITTEN = written()
VARIANTS = {
    (operation.name, variant.id): variant
    for operation in contract.operations()
    for variant in operation.variants
}


def text_of(name: str, field: contract.Field) -> str:
    """The field as it is written above."""
    types = "|".join(sorted(field.type.split(" or ")))
    words = [field.name, types, default_of(name, field)]
    if field.required:
        words.append("required")
    bounds = bounds_of(field)
    words += [bounds] if bounds != ".." else []
    words += [f"/{field.multiple_of}"] if field.multiple_of else []
    words += ["+"] if field.extension else []
    return " ".join(words + [f"={alias}" for alias in field.aliases])


def default_of(name: str, field: contract.Field) -> str:
    default: Any = field.default
    if default is None:
        return "-"
    if LONG_DEFAULTS.get((name, field.name)) == default:
        return "*"
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, (int, float)) else str(default)


def bounds_of(field: contract.Field) -> str:
    low = "" if field.minimum is None else f"{field.minimum:.16g}"
    high = "" if field.maximum is None else f"{field.maximum:.16g}"
    return f"{'>' * field.exclusive_minimum}{low}..{'<' * field.exclusive_maximum}{high}"


def test_operations_and_variants_are_those_written_down() -> None:
    assert VARIANTS.keys() == WRITTEN.keys()
    assert {key: one.model for key, one in VARIANTS.items() if one.model} == MODELS


@pytest.mark.parametrize("key", WRITTEN, ids=lambda key: " ".join(key).strip())
def test_fields_are_those_written_down(key: tuple[str, str]) -> None:
    variant = VARIANTS[key]
    assert sorted(text_of(key[0], one) for one in variant.fields) == sorted(WRITTEN[key])
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
