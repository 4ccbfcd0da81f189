// Made by scripts/generate from contract/; do not edit.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view generate_image_A_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "KarrasDPM", "K_EULER_ANCESTRAL", "K_EULER", "PNDM", "DPM++2MSDE"};
constexpr std::string_view generate_image_A_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr Field generate_image_A_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .title = "Prompt", .documentation = "Description of the image."},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 1280, .multiple_of = 8, .default_json = "1024", .unit = "px", .title = "Width", .documentation = "Width of the image; the model works best at 1024 or 1280."},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 1280, .multiple_of = 8, .default_json = "1024", .unit = "px", .title = "Height", .documentation = "Height of the image; the model works best at 1024 or 1280."},
    {.name = "scheduler", .types = type_string, .choices = generate_image_A_scheduler_choices, .default_json = "\"K_EULER\"", .title = "Scheduler", .documentation = "Sampling algorithm for the denoising steps."},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .title = "Number of images", .documentation = "Number of images to generate. Each image increments the seed."},
    {.name = "guidance_scale", .types = type_number, .minimum = 0, .maximum = 50, .default_json = "0.0", .title = "Guidance scale", .documentation = "Guidance scale: how closely to follow the prompt. The model is trained for 0."},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "worst quality, low quality", .title = "Negative prompt", .documentation = "Description of content to avoid."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 10, .aliases = generate_image_A_num_inference_steps_aliases, .default_json = "4", .title = "Inference steps", .documentation = "Number of denoising steps; the model is trained for 4."},
    {.name = "seed", .types = type_integer, .extension = true, .title = "Seed", .documentation = "Random seed; the same seed and inputs give the same image. Default: random."},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .title = "Disable safety checker", .documentation = "Keep images that the safety checker would remove."},
};

constexpr std::string_view generate_image_B_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view generate_image_B_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "KarrasDPM", "K_EULER_ANCESTRAL", "K_EULER", "PNDM"};
constexpr std::string_view generate_image_B_refine_choices[] = {"no_refiner", "expert_ensemble_refiner", "base_image_refiner"};
constexpr std::string_view generate_image_B_replicate_weights_aliases[] = {"lora_weights"};
constexpr std::string_view generate_image_B_replicate_weights_schemes[] = {"http", "https"};
constexpr Field generate_image_B_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .title = "Prompt", .documentation = "Description of the image."},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .title = "Width", .documentation = "Width of the image; ignored if there is an `image` without a `mask`, whose size is used instead."},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .title = "Height", .documentation = "Height of the image; ignored if there is an `image` without a `mask`, whose size is used instead."},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .title = "Number of images", .documentation = "Number of images to generate. Each image increments the seed."},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "", .title = "Negative prompt", .documentation = "Description of content to avoid."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 500, .aliases = generate_image_B_num_inference_steps_aliases, .default_json = "50", .title = "Inference steps", .documentation = "Number of denoising steps."},
    {.name = "scheduler", .types = type_string, .choices = generate_image_B_scheduler_choices, .default_json = "\"K_EULER\"", .title = "Scheduler", .documentation = "Sampling algorithm for the denoising steps."},
    {.name = "guidance_scale", .types = type_number, .minimum = 1, .maximum = 50, .default_json = "7.0", .title = "Guidance scale", .documentation = "Guidance scale: how closely to follow the prompt."},
    {.name = "prompt_strength", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.8", .title = "Prompt strength", .documentation = "How strongly the prompt changes `image`; 1.0 replaces it completely."},
    {.name = "lora_scale", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.6", .title = "LoRA scale", .documentation = "Strength of the LoRA; has an effect only if LoRA weights are loaded."},
    {.name = "apply_watermark", .types = type_boolean, .default_json = "false", .title = "Add watermark", .documentation = "Add an invisible watermark that marks the image as AI-generated."},
    {.name = "image", .types = type_file, .media = "image", .title = "Input image", .documentation = "Input image for image-to-image and inpainting."},
    {.name = "mask", .types = type_file, .media = "image", .title = "Inpainting mask", .documentation = "Inpainting mask: white areas are repainted, black areas are kept."},
    {.name = "seed", .types = type_integer, .extension = true, .title = "Seed", .documentation = "Random seed; the same seed and inputs give the same image. Default: random."},
    {.name = "refine", .types = type_string, .extension = true, .choices = generate_image_B_refine_choices, .default_json = "\"no_refiner\"", .title = "Refiner", .documentation = "Refiner to apply to the image."},
    {.name = "high_noise_frac", .types = type_number, .extension = true, .minimum = 0, .maximum = 1, .default_json = "0.8", .title = "High-noise fraction", .documentation = "Fraction of the steps after which `expert_ensemble_refiner` takes over."},
    {.name = "refine_steps", .types = type_integer, .extension = true, .minimum = 1, .maximum = 500, .title = "Refiner steps", .documentation = "Number of steps of `base_image_refiner`."},
    {.name = "replicate_weights", .types = type_string, .extension = true, .url = true, .aliases = generate_image_B_replicate_weights_aliases, .schemes = generate_image_B_replicate_weights_schemes, .title = "LoRA weights URL", .documentation = "URL of LoRA weights to load."},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .title = "Disable safety checker", .documentation = "Keep images that the safety checker would remove."},
};

constexpr std::string_view generate_image_B_rule_0[] = {"mask", "image"};
constexpr Rule generate_image_B_rules[] = {
    {.kind = Rule::Kind::needs, .fields = generate_image_B_rule_0},
};

constexpr std::string_view generate_image_B_chosen_by[] = {"image", "mask"};
constexpr std::string_view generate_image_C_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view generate_image_C_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "K_EULER_ANCESTRAL", "K_EULER", "PNDM", "DPM++2MKarras", "DPMSolver++"};
constexpr Field generate_image_C_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .title = "Prompt", .documentation = "Description of the image."},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .title = "Width", .documentation = "Width of the image; ignored if there is an `image` without a `mask`, whose size is used instead."},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .title = "Height", .documentation = "Height of the image; ignored if there is an `image` without a `mask`, whose size is used instead."},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .title = "Number of images", .documentation = "Number of images to generate. Each image increments the seed."},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "ugly, deformed, noisy, blurry, distorted", .title = "Negative prompt", .documentation = "Description of content to avoid."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 100, .aliases = generate_image_C_num_inference_steps_aliases, .default_json = "25", .title = "Inference steps", .documentation = "Number of denoising steps."},
    {.name = "scheduler", .types = type_string, .choices = generate_image_C_scheduler_choices, .default_json = "\"DPMSolver++\"", .title = "Scheduler", .documentation = "Sampling algorithm for the denoising steps; DPMSolver++ and DPM++2MKarras suit most images."},
    {.name = "guidance_scale", .types = type_number, .minimum = 0, .maximum = 20, .default_json = "3.0", .title = "Guidance scale", .documentation = "Guidance scale: how closely to follow the prompt."},
    {.name = "prompt_strength", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.8", .title = "Prompt strength", .documentation = "How strongly the prompt changes `image`; 1.0 replaces it completely."},
    {.name = "lora_scale", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.6", .title = "LoRA scale", .documentation = "Strength of a LoRA; ignored, because this model does not load LoRA weights."},
    {.name = "image", .types = type_file, .media = "image", .title = "Input image", .documentation = "Input image for image-to-image and inpainting."},
    {.name = "mask", .types = type_file, .media = "image", .title = "Inpainting mask", .documentation = "Inpainting mask: white areas are repainted, black areas are kept."},
    {.name = "apply_watermark", .types = type_boolean, .extension = true, .default_json = "false", .title = "Add watermark", .documentation = "Add an invisible watermark that marks the image as AI-generated."},
    {.name = "seed", .types = type_integer, .extension = true, .title = "Seed", .documentation = "Random seed; the same seed and inputs give the same image. Default: random."},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .title = "Disable safety checker", .documentation = "Keep images that the safety checker would remove."},
};

constexpr std::string_view generate_image_C_rule_0[] = {"mask", "image"};
constexpr Rule generate_image_C_rules[] = {
    {.kind = Rule::Kind::needs, .fields = generate_image_C_rule_0},
};

constexpr Variant generate_image_variants[] = {
    {.id = "A",
     .model = "bytedance/sdxl-lightning-4step",
     .summary = "SDXL-Lightning, distilled to four inference steps.",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = true,
     .body = {.name = "generate_image", .documentation = "Generate images from a text prompt, or from an image and a text prompt.",
              .fields = generate_image_A_fields,
              .unknown_fields = UnknownFields::warn}},
    {.id = "B",
     .model = "lorenzomarines/astra",
     .summary = "SDXL with LoRA weights: text-to-image, image-to-image and inpainting.",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .chosen_by = generate_image_B_chosen_by,
     .body = {.name = "generate_image", .documentation = "Generate images from a text prompt, or from an image and a text prompt.",
              .fields = generate_image_B_fields, .rules = generate_image_B_rules,
              .unknown_fields = UnknownFields::warn}},
    {.id = "C",
     .model = "playgroundai/playground-v2.5-1024px-aesthetic",
     .summary = "Playground 2.5, tuned for aesthetic images of 1024 pixels.",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "generate_image", .documentation = "Generate images from a text prompt, or from an image and a text prompt.",
              .fields = generate_image_C_fields, .rules = generate_image_C_rules,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view upscale_image_A_sd_model_choices[] = {"epicrealism_naturalSinRC1VAE.safetensors [84d76a0328]", "juggernaut_reborn.safetensors [338b85bc4f]", "flat2DAnimerge_v45Sharp.safetensors"};
constexpr std::string_view upscale_image_A_scheduler_choices[] = {"DPM++ 2M", "DPM++ 2M Karras", "DPM++ SDE", "DPM++ SDE Karras", "DPM++ 2M SDE", "DPM++ 2M SDE Karras", "DPM++ 2M SDE Exponential", "DPM++ 2M SDE Heun", "DPM++ 2M SDE Heun Karras", "DPM++ 2M SDE Heun Exponential", "DPM++ 3M SDE", "DPM++ 3M SDE Karras", "DPM++ 3M SDE Exponential", "DPM++ 2S a", "DPM++ 2S a Karras", "DPM2", "DPM2 Karras", "DPM2 a", "DPM2 a Karras", "DPM fast", "DPM adaptive", "Euler", "Euler a", "Heun", "LMS", "LMS Karras", "Restart", "DDIM", "PLMS", "UniPC"};
constexpr std::string_view upscale_image_A_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view upscale_image_A_output_format_choices[] = {"webp", "jpg", "png"};
constexpr std::string_view upscale_image_A_lora_links_schemes[] = {"http", "https"};
constexpr std::string_view upscale_image_A_custom_sd_model_schemes[] = {"http", "https"};
constexpr std::string_view upscale_image_A_handfix_choices[] = {"disabled", "hands_only", "image_and_hands"};
constexpr Field upscale_image_A_fields[] = {
    {.name = "image", .types = type_file, .required = true, .media = "image", .title = "Image", .documentation = "Image to upscale."},
    {.name = "prompt", .types = type_string, .default_json = "\"masterpiece, best quality, highres, <lora:more_details:0.5> <lora:SDXLrender_v2.0:1>\"", .title = "Prompt", .documentation = "Description of the detail to add; may contain LoRA tags."},
    {.name = "negative_prompt", .types = type_string, .default_json = "\"(worst quality, low quality, normal quality:2) JuggernautNegative-neg\"", .title = "Negative prompt", .documentation = "Description of detail to avoid."},
    {.name = "scale_factor", .types = type_number, .minimum = 0, .maximum = 10, .above_minimum = true, .default_json = "2", .title = "Scale factor", .documentation = "Factor by which width and height increase."},
    {.name = "dynamic", .types = type_number, .minimum = 1, .maximum = 50, .default_json = "6", .title = "HDR", .documentation = "HDR effect: contrast and depth (the guidance scale)."},
    {.name = "creativity", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.35", .title = "Creativity", .documentation = "How much new detail to generate."},
    {.name = "resemblance", .types = type_number, .minimum = 0, .maximum = 3, .default_json = "0.6", .title = "Resemblance", .documentation = "How closely to keep to the input image."},
    {.name = "tiling_width", .types = type_integer, .minimum = 16, .maximum = 256, .multiple_of = 16, .default_json = "112", .title = "Tiling width", .documentation = "Width of a tile; smaller tiles give sharper images that differ more from the input."},
    {.name = "tiling_height", .types = type_integer, .minimum = 16, .maximum = 256, .multiple_of = 16, .default_json = "144", .title = "Tiling height", .documentation = "Height of a tile."},
    {.name = "sd_model", .types = type_string, .choices = upscale_image_A_sd_model_choices, .default_json = "\"juggernaut_reborn.safetensors [338b85bc4f]\"", .title = "Stable Diffusion model", .documentation = "Stable Diffusion model that generates the detail."},
    {.name = "scheduler", .types = type_string, .choices = upscale_image_A_scheduler_choices, .default_json = "\"DPM++ 3M SDE Karras\"", .title = "Scheduler", .documentation = "Sampling algorithm for the denoising steps."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 100, .aliases = upscale_image_A_num_inference_steps_aliases, .default_json = "18", .title = "Inference steps", .documentation = "Number of denoising steps."},
    {.name = "downscaling", .types = type_boolean, .default_json = "false", .title = "Downscale first", .documentation = "Shrink the image first, which leaves more detail to generate."},
    {.name = "downscaling_resolution", .types = type_integer, .minimum = 64, .maximum = 4096, .default_json = "768", .unit = "px", .title = "Downscaled size", .documentation = "Length of the longer side after shrinking."},
    {.name = "sharpen", .types = type_number, .minimum = 0, .maximum = 10, .default_json = "0", .title = "Sharpening", .documentation = "Strength of the final sharpening."},
    {.name = "output_format", .types = type_string, .choices = upscale_image_A_output_format_choices, .default_json = "\"png\"", .title = "Output format", .documentation = "File format of the output."},
    {.name = "seed", .types = type_integer, .extension = true, .default_json = "1337", .title = "Seed", .documentation = "Random seed; the same seed and inputs give the same image."},
    {.name = "multistep_factor", .types = type_number, .extension = true, .minimum = 0, .maximum = 2, .default_json = "0.8", .title = "Creativity per pass", .documentation = "Factor that multiplies `creativity` after each pass, if `scale_factor` is above 2."},
    {.name = "lora_links", .types = type_string, .extension = true, .url = true, .schemes = upscale_image_A_lora_links_schemes, .title = "LoRA weights URL", .documentation = "URL of LoRA weights to load."},
    {.name = "custom_sd_model", .types = type_string, .extension = true, .url = true, .schemes = upscale_image_A_custom_sd_model_schemes, .title = "Custom model URL", .documentation = "URL of a Stable Diffusion model to use instead of `sd_model`."},
    {.name = "mask", .types = type_file, .extension = true, .media = "image", .title = "Protected area", .documentation = "Mask of the area to leave unchanged."},
    {.name = "handfix", .types = type_string, .extension = true, .choices = upscale_image_A_handfix_choices, .default_json = "\"disabled\"", .title = "Hand repair", .documentation = "Repair hands in the image."},
    {.name = "pattern", .types = type_boolean, .extension = true, .default_json = "false", .title = "Seamless pattern", .documentation = "Make a seamless tile for repeating patterns."},
};

constexpr Field upscale_image_B_fields[] = {
    {.name = "image", .types = type_file, .required = true, .media = "image", .title = "Image", .documentation = "Image to upscale."},
    {.name = "scale", .types = type_number, .minimum = 0, .maximum = 10, .above_minimum = true, .default_json = "4", .title = "Scale factor", .documentation = "Factor by which width and height increase."},
    {.name = "face_enhance", .types = type_boolean, .default_json = "false", .title = "Enhance faces", .documentation = "Enhance faces with a separate model; requires an upstream that supports it."},
};

constexpr std::string_view upscale_image_B_chosen_by[] = {"scale", "face_enhance"};
constexpr Variant upscale_image_variants[] = {
    {.id = "A",
     .model = "philz1337x/clarity-upscaler",
     .summary = "Clarity upscaler: adds generated detail to the image.",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "upscale_image", .documentation = "Increase the resolution of an image.",
              .fields = upscale_image_A_fields,
              .unknown_fields = UnknownFields::warn}},
    {.id = "B",
     .model = "nightmareai/real-esrgan",
     .summary = "Real-ESRGAN: upscales without generating new detail.",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .chosen_by = upscale_image_B_chosen_by,
     .body = {.name = "upscale_image", .documentation = "Increase the resolution of an image.",
              .fields = upscale_image_B_fields,
              .unknown_fields = UnknownFields::warn}},
};

}  // namespace

constinit const Operation generate_image = {
    .name = "generate_image",
    .path = "/api/v1/modelhost/imagegeneration",
    .family = "image",
    .title = "Image generation",
    .summary = "Generate images from a text prompt, or from an image and a text prompt.",
    .first = "prompt",
    .result = "Prediction",
    .job = true,
    .variants = generate_image_variants,
};

constinit const Operation upscale_image = {
    .name = "upscale_image",
    .path = "/api/v1/modelhost/imageupscale",
    .family = "image",
    .title = "Image upscaling",
    .summary = "Increase the resolution of an image.",
    .first = "image",
    .result = "Prediction",
    .job = true,
    .variants = upscale_image_variants,
};

}  // namespace polymux::contract::generated
