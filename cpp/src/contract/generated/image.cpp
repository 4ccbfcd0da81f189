// Made by scripts/generate from contract/; change it there.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view generate_image_A_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "KarrasDPM", "K_EULER_ANCESTRAL", "K_EULER", "PNDM", "DPM++2MSDE"};
constexpr std::string_view generate_image_A_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr Field generate_image_A_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .documentation = "What the picture shows."},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 1280, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Width of the picture; 1024 or 1280 suit the model."},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 1280, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Height of the picture; 1024 or 1280 suit the model."},
    {.name = "scheduler", .types = type_string, .choices = generate_image_A_scheduler_choices, .default_json = "\"K_EULER\"", .documentation = "How the noise is taken away."},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .documentation = "How many pictures to make."},
    {.name = "guidance_scale", .types = type_number, .minimum = 0, .maximum = 50, .default_json = "0.0", .documentation = "How closely to follow the description; the model is made for 0."},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "worst quality, low quality", .documentation = "What the picture must not show."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 10, .aliases = generate_image_A_num_inference_steps_aliases, .default_json = "4", .documentation = "Steps of denoising; the model is made for 4."},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Makes the picture repeatable; random when absent."},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Keep pictures that the safety checker would drop."},
};

constexpr std::string_view generate_image_B_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view generate_image_B_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "KarrasDPM", "K_EULER_ANCESTRAL", "K_EULER", "PNDM"};
constexpr std::string_view generate_image_B_refine_choices[] = {"no_refiner", "expert_ensemble_refiner", "base_image_refiner"};
constexpr std::string_view generate_image_B_replicate_weights_aliases[] = {"lora_weights"};
constexpr std::string_view generate_image_B_replicate_weights_schemes[] = {"http", "https"};
constexpr Field generate_image_B_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .documentation = "What the picture shows."},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Width of the picture; taken from `image` when there is one and no `mask`."},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Height of the picture; taken from `image` when there is one and no `mask`."},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .documentation = "How many pictures to make."},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "", .documentation = "What the picture must not show."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 500, .aliases = generate_image_B_num_inference_steps_aliases, .default_json = "50", .documentation = "Steps of denoising."},
    {.name = "scheduler", .types = type_string, .choices = generate_image_B_scheduler_choices, .default_json = "\"K_EULER\"", .documentation = "How the noise is taken away."},
    {.name = "guidance_scale", .types = type_number, .minimum = 1, .maximum = 50, .default_json = "7.0", .documentation = "How closely to follow the description."},
    {.name = "prompt_strength", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.8", .documentation = "How much of `image` is given up for the description; 1.0 keeps nothing."},
    {.name = "lora_scale", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.6", .documentation = "Weight of the LoRA; acts only where LoRA weights are loaded."},
    {.name = "apply_watermark", .types = type_boolean, .default_json = "false", .documentation = "Hide a mark in the picture that tells it was made by a machine."},
    {.name = "image", .types = type_file, .media = "image", .documentation = "Picture to start from."},
    {.name = "mask", .types = type_file, .media = "image", .documentation = "Where to repaint: white is repainted, black is kept."},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Makes the picture repeatable; random when absent."},
    {.name = "refine", .types = type_string, .extension = true, .choices = generate_image_B_refine_choices, .default_json = "\"no_refiner\"", .documentation = "Which refiner goes over the picture."},
    {.name = "high_noise_frac", .types = type_number, .extension = true, .minimum = 0, .maximum = 1, .default_json = "0.8", .documentation = "Share of the steps before the ensemble's refiner takes over."},
    {.name = "refine_steps", .types = type_integer, .extension = true, .minimum = 1, .maximum = 500, .documentation = "Steps of the base image refiner."},
    {.name = "replicate_weights", .types = type_string, .extension = true, .url = true, .aliases = generate_image_B_replicate_weights_aliases, .schemes = generate_image_B_replicate_weights_schemes, .documentation = "Address of LoRA weights to load."},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Keep pictures that the safety checker would drop."},
};

constexpr std::string_view generate_image_B_rule_0[] = {"mask", "image"};
constexpr Rule generate_image_B_rules[] = {
    {.kind = Rule::Kind::needs, .fields = generate_image_B_rule_0},
};

constexpr std::string_view generate_image_B_chosen_by[] = {"image", "mask"};
constexpr std::string_view generate_image_C_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view generate_image_C_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "K_EULER_ANCESTRAL", "K_EULER", "PNDM", "DPM++2MKarras", "DPMSolver++"};
constexpr Field generate_image_C_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .documentation = "What the picture shows."},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Width of the picture; taken from `image` when there is one and no `mask`."},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Height of the picture; taken from `image` when there is one and no `mask`."},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .documentation = "How many pictures to make."},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "ugly, deformed, noisy, blurry, distorted", .documentation = "What the picture must not show."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 100, .aliases = generate_image_C_num_inference_steps_aliases, .default_json = "25", .documentation = "Steps of denoising."},
    {.name = "scheduler", .types = type_string, .choices = generate_image_C_scheduler_choices, .default_json = "\"DPMSolver++\"", .documentation = "How the noise is taken away; DPMSolver++ and DPM++2MKarras suit most pictures."},
    {.name = "guidance_scale", .types = type_number, .minimum = 0, .maximum = 20, .default_json = "3.0", .documentation = "How closely to follow the description."},
    {.name = "prompt_strength", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.8", .documentation = "How much of `image` is given up for the description; 1.0 keeps nothing."},
    {.name = "lora_scale", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.6", .documentation = "Weight of a LoRA; the model loads none and ignores it."},
    {.name = "image", .types = type_file, .media = "image", .documentation = "Picture to start from."},
    {.name = "mask", .types = type_file, .media = "image", .documentation = "Where to repaint: white is repainted, black is kept."},
    {.name = "apply_watermark", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Hide a mark in the picture that tells it was made by a machine."},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Makes the picture repeatable; random when absent."},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Keep pictures that the safety checker would drop."},
};

constexpr std::string_view generate_image_C_rule_0[] = {"mask", "image"};
constexpr Rule generate_image_C_rules[] = {
    {.kind = Rule::Kind::needs, .fields = generate_image_C_rule_0},
};

constexpr Variant generate_image_variants[] = {
    {.id = "A",
     .model = "bytedance/sdxl-lightning-4step",
     .summary = "SDXL-Lightning, distilled to four steps.",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = true,
     .body = {.name = "generate_image", .documentation = "Makes pictures from a description, or from a picture and a description.",
              .fields = generate_image_A_fields,
              .unknown_fields = UnknownFields::warn}},
    {.id = "B",
     .model = "lorenzomarines/astra",
     .summary = "SDXL with LoRA weights: text to image, image to image, repainting.",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .chosen_by = generate_image_B_chosen_by,
     .body = {.name = "generate_image", .documentation = "Makes pictures from a description, or from a picture and a description.",
              .fields = generate_image_B_fields, .rules = generate_image_B_rules,
              .unknown_fields = UnknownFields::warn}},
    {.id = "C",
     .model = "playgroundai/playground-v2.5-1024px-aesthetic",
     .summary = "Playground 2.5, made for pleasing pictures of 1024 pixels.",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "generate_image", .documentation = "Makes pictures from a description, or from a picture and a description.",
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
    {.name = "image", .types = type_file, .required = true, .media = "image", .documentation = "Picture to enlarge."},
    {.name = "prompt", .types = type_string, .default_json = "\"masterpiece, best quality, highres, <lora:more_details:0.5> <lora:SDXLrender_v2.0:1>\"", .documentation = "What the detail should be like; LoRA tags included."},
    {.name = "negative_prompt", .types = type_string, .default_json = "\"(worst quality, low quality, normal quality:2) JuggernautNegative-neg\"", .documentation = "What the detail must not be like."},
    {.name = "scale_factor", .types = type_number, .minimum = 0, .maximum = 10, .above_minimum = true, .default_json = "2", .documentation = "How many times wider and higher."},
    {.name = "dynamic", .types = type_number, .minimum = 1, .maximum = 50, .default_json = "6", .documentation = "Contrast and depth (guidance scale)."},
    {.name = "creativity", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.35", .documentation = "How freely detail is invented."},
    {.name = "resemblance", .types = type_number, .minimum = 0, .maximum = 3, .default_json = "0.6", .documentation = "How closely the picture is kept to."},
    {.name = "tiling_width", .types = type_integer, .minimum = 16, .maximum = 256, .multiple_of = 16, .default_json = "112", .documentation = "Width of a tile; small tiles are sharper and stray further."},
    {.name = "tiling_height", .types = type_integer, .minimum = 16, .maximum = 256, .multiple_of = 16, .default_json = "144", .documentation = "Height of a tile."},
    {.name = "sd_model", .types = type_string, .choices = upscale_image_A_sd_model_choices, .default_json = "\"juggernaut_reborn.safetensors [338b85bc4f]\"", .documentation = "Stable Diffusion model that paints the detail."},
    {.name = "scheduler", .types = type_string, .choices = upscale_image_A_scheduler_choices, .default_json = "\"DPM++ 3M SDE Karras\"", .documentation = "How the noise is taken away."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 100, .aliases = upscale_image_A_num_inference_steps_aliases, .default_json = "18", .documentation = "Steps of denoising."},
    {.name = "downscaling", .types = type_boolean, .default_json = "false", .documentation = "Shrink the picture first, which leaves more to invent."},
    {.name = "downscaling_resolution", .types = type_integer, .minimum = 64, .maximum = 4096, .default_json = "768", .unit = "px", .documentation = "Longest side after shrinking."},
    {.name = "sharpen", .types = type_number, .minimum = 0, .maximum = 10, .default_json = "0", .documentation = "Sharpening at the end."},
    {.name = "output_format", .types = type_string, .choices = upscale_image_A_output_format_choices, .default_json = "\"png\"", .documentation = "Format of the result."},
    {.name = "seed", .types = type_integer, .extension = true, .default_json = "1337", .documentation = "Makes the detail repeatable."},
    {.name = "multistep_factor", .types = type_number, .extension = true, .minimum = 0, .maximum = 2, .default_json = "0.8", .documentation = "What `creativity` is multiplied by from pass to pass, above a factor of 2."},
    {.name = "lora_links", .types = type_string, .extension = true, .url = true, .schemes = upscale_image_A_lora_links_schemes, .documentation = "Address of LoRA weights to load."},
    {.name = "custom_sd_model", .types = type_string, .extension = true, .url = true, .schemes = upscale_image_A_custom_sd_model_schemes, .documentation = "Address of a Stable Diffusion model to use."},
    {.name = "mask", .types = type_file, .extension = true, .media = "image", .documentation = "Area to keep as it is."},
    {.name = "handfix", .types = type_string, .extension = true, .choices = upscale_image_A_handfix_choices, .default_json = "\"disabled\"", .documentation = "Repair hands."},
    {.name = "pattern", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Make the edges fit each other, for patterns that repeat."},
};

constexpr Field upscale_image_B_fields[] = {
    {.name = "image", .types = type_file, .required = true, .media = "image", .documentation = "Picture to enlarge."},
    {.name = "scale", .types = type_number, .minimum = 0, .maximum = 10, .above_minimum = true, .default_json = "4", .documentation = "How many times wider and higher."},
    {.name = "face_enhance", .types = type_boolean, .default_json = "false", .documentation = "Go over faces with a network of their own; needs an upstream that has one."},
};

constexpr std::string_view upscale_image_B_chosen_by[] = {"scale", "face_enhance"};
constexpr Variant upscale_image_variants[] = {
    {.id = "A",
     .model = "philz1337x/clarity-upscaler",
     .summary = "Invents fitting detail while it enlarges.",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "upscale_image", .documentation = "Enlarges a picture.",
              .fields = upscale_image_A_fields,
              .unknown_fields = UnknownFields::warn}},
    {.id = "B",
     .model = "nightmareai/real-esrgan",
     .summary = "Real-ESRGAN: enlarges what is there.",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .chosen_by = upscale_image_B_chosen_by,
     .body = {.name = "upscale_image", .documentation = "Enlarges a picture.",
              .fields = upscale_image_B_fields,
              .unknown_fields = UnknownFields::warn}},
};

}  // namespace

constinit const Operation generate_image = {
    .name = "generate_image",
    .path = "/api/v1/modelhost/imagegeneration",
    .family = "image",
    .title = "Image generation",
    .summary = "Makes pictures from a description, or from a picture and a description.",
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
    .summary = "Enlarges a picture.",
    .first = "image",
    .result = "Prediction",
    .job = true,
    .variants = upscale_image_variants,
};

}  // namespace polymux::contract::generated
