// Made by scripts/generate from contract/; do not edit.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view generate_image_A_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "KarrasDPM", "K_EULER_ANCESTRAL", "K_EULER", "PNDM", "DPM++2MSDE"};
constexpr std::string_view generate_image_A_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr Field generate_image_A_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .documentation = "Description of the image.", .title = "Prompt"},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 1280, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Width of the image. The model works best at 1024 or 1280.", .title = "Width"},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 1280, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Height of the image. The model works best at 1024 or 1280.", .title = "Height"},
    {.name = "scheduler", .types = type_string, .choices = generate_image_A_scheduler_choices, .default_json = "\"K_EULER\"", .documentation = "Sampling algorithm for the denoising steps.", .title = "Scheduler"},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .documentation = "Number of images to generate. Each image increments the seed.", .title = "Number of images"},
    {.name = "guidance_scale", .types = type_number, .minimum = 0, .maximum = 50, .default_json = "0.0", .documentation = "Guidance scale: how closely to follow the prompt. The model is trained for 0.", .title = "Guidance scale"},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "worst quality, low quality", .documentation = "Description of content to avoid.", .title = "Negative prompt"},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 10, .aliases = generate_image_A_num_inference_steps_aliases, .default_json = "4", .documentation = "Number of denoising steps. The model is trained for 4.", .title = "Inference steps"},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Random seed. The same seed and inputs give the same image. Default: random.", .title = "Seed"},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Keep images that the safety checker would remove.", .title = "Disable safety checker"},
};

constexpr std::string_view generate_image_B_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view generate_image_B_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "KarrasDPM", "K_EULER_ANCESTRAL", "K_EULER", "PNDM"};
constexpr std::string_view generate_image_B_refine_choices[] = {"no_refiner", "expert_ensemble_refiner", "base_image_refiner"};
constexpr std::string_view generate_image_B_replicate_weights_aliases[] = {"lora_weights"};
constexpr std::string_view generate_image_B_replicate_weights_schemes[] = {"http", "https"};
constexpr Field generate_image_B_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .documentation = "Description of the image.", .title = "Prompt"},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Width of the image. Ignored for an input image without a mask: the output has the width of the input.", .title = "Width"},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Height of the image. Ignored for an input image without a mask: the output has the height of the input.", .title = "Height"},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .documentation = "Number of images to generate. Each image increments the seed.", .title = "Number of images"},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "", .documentation = "Description of content to avoid.", .title = "Negative prompt"},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 500, .aliases = generate_image_B_num_inference_steps_aliases, .default_json = "50", .documentation = "Number of denoising steps.", .title = "Inference steps"},
    {.name = "scheduler", .types = type_string, .choices = generate_image_B_scheduler_choices, .default_json = "\"K_EULER\"", .documentation = "Sampling algorithm for the denoising steps.", .title = "Scheduler"},
    {.name = "guidance_scale", .types = type_number, .minimum = 1, .maximum = 50, .default_json = "7.0", .documentation = "Guidance scale: how closely to follow the prompt.", .title = "Guidance scale"},
    {.name = "prompt_strength", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.8", .documentation = "How strongly the prompt changes the input image; 1.0 replaces the image completely.", .title = "Prompt strength"},
    {.name = "lora_scale", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.6", .documentation = "Strength of the LoRA weights. Ignored if no LoRA weights are loaded.", .title = "LoRA scale"},
    {.name = "apply_watermark", .types = type_boolean, .default_json = "false", .documentation = "Add an invisible watermark that marks the image as AI-generated.", .title = "Add watermark"},
    {.name = "image", .types = type_file, .media = "image", .documentation = "Input image for image-to-image and inpainting.", .title = "Input image"},
    {.name = "mask", .types = type_file, .media = "image", .documentation = "Inpainting mask: white areas are repainted, black areas are kept.", .title = "Inpainting mask"},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Random seed. The same seed and inputs give the same image. Default: random.", .title = "Seed"},
    {.name = "refine", .types = type_string, .extension = true, .choices = generate_image_B_refine_choices, .default_json = "\"no_refiner\"", .documentation = "Refiner model that improves the image.", .title = "Refiner"},
    {.name = "high_noise_frac", .types = type_number, .extension = true, .minimum = 0, .maximum = 1, .default_json = "0.8", .documentation = "Fraction of the denoising steps after which `expert_ensemble_refiner` takes over.", .title = "High-noise fraction"},
    {.name = "refine_steps", .types = type_integer, .extension = true, .minimum = 1, .maximum = 299, .documentation = "Number of denoising steps of `base_image_refiner`.", .title = "Refiner steps"},
    {.name = "replicate_weights", .types = type_string, .extension = true, .url = true, .aliases = generate_image_B_replicate_weights_aliases, .schemes = generate_image_B_replicate_weights_schemes, .documentation = "URL of LoRA weights to load.", .title = "LoRA weights URL"},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Keep images that the safety checker would remove.", .title = "Disable safety checker"},
};

constexpr std::string_view generate_image_B_rule_0[] = {"mask", "image"};
constexpr Rule generate_image_B_rules[] = {
    {.kind = Rule::Kind::needs, .fields = generate_image_B_rule_0},
};

constexpr std::string_view generate_image_B_chosen_by[] = {"image", "mask"};
constexpr std::string_view generate_image_C_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view generate_image_C_scheduler_choices[] = {"DDIM", "DPMSolverMultistep", "HeunDiscrete", "K_EULER_ANCESTRAL", "K_EULER", "PNDM", "DPM++2MKarras", "DPMSolver++"};
constexpr Field generate_image_C_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .documentation = "Description of the image.", .title = "Prompt"},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Width of the image. Ignored for an input image without a mask: the output has the width of the input.", .title = "Width"},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Height of the image. Ignored for an input image without a mask: the output has the height of the input.", .title = "Height"},
    {.name = "num_outputs", .types = type_integer, .minimum = 1, .maximum = 4, .default_json = "1", .documentation = "Number of images to generate. Each image increments the seed.", .title = "Number of images"},
    {.name = "negative_prompt", .types = type_string, .upstream_default = "ugly, deformed, noisy, blurry, distorted", .documentation = "Description of content to avoid.", .title = "Negative prompt"},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 100, .aliases = generate_image_C_num_inference_steps_aliases, .default_json = "25", .documentation = "Number of denoising steps.", .title = "Inference steps"},
    {.name = "scheduler", .types = type_string, .choices = generate_image_C_scheduler_choices, .default_json = "\"DPMSolver++\"", .documentation = "Sampling algorithm for the denoising steps. DPMSolver++ and DPM++2MKarras suit most images.", .title = "Scheduler"},
    {.name = "guidance_scale", .types = type_number, .minimum = 0, .maximum = 20, .default_json = "3.0", .documentation = "Guidance scale: how closely to follow the prompt.", .title = "Guidance scale"},
    {.name = "prompt_strength", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.8", .documentation = "How strongly the prompt changes the input image; 1.0 replaces the image completely.", .title = "Prompt strength"},
    {.name = "lora_scale", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.6", .documentation = "Strength of the LoRA weights. Ignored, because the model does not load LoRA weights.", .title = "LoRA scale"},
    {.name = "image", .types = type_file, .media = "image", .documentation = "Input image for image-to-image and inpainting.", .title = "Input image"},
    {.name = "mask", .types = type_file, .media = "image", .documentation = "Inpainting mask: white areas are repainted, black areas are kept.", .title = "Inpainting mask"},
    {.name = "apply_watermark", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Add an invisible watermark that marks the image as AI-generated.", .title = "Add watermark"},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Random seed. The same seed and inputs give the same image. Default: random.", .title = "Seed"},
    {.name = "disable_safety_checker", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Keep images that the safety checker would remove.", .title = "Disable safety checker"},
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
     .summary = "Playground v2.5, tuned for aesthetic images of 1024 x 1024 pixels.",
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
    {.name = "image", .types = type_file, .required = true, .media = "image", .documentation = "Image to upscale.", .title = "Image"},
    {.name = "prompt", .types = type_string, .default_json = "\"masterpiece, best quality, highres, <lora:more_details:0.5> <lora:SDXLrender_v2.0:1>\"", .documentation = "Description of the detail to add. It may contain LoRA tags, such as `<lora:more_details:0.5>`.", .title = "Prompt"},
    {.name = "negative_prompt", .types = type_string, .default_json = "\"(worst quality, low quality, normal quality:2) JuggernautNegative-neg\"", .documentation = "Description of detail to avoid.", .title = "Negative prompt"},
    {.name = "scale_factor", .types = type_number, .minimum = 0, .maximum = 10, .above_minimum = true, .default_json = "2", .documentation = "Factor by which width and height are multiplied.", .title = "Scale factor"},
    {.name = "dynamic", .types = type_number, .minimum = 1, .maximum = 50, .default_json = "6", .documentation = "HDR effect: strength of contrast and depth (the guidance scale of the model).", .title = "HDR"},
    {.name = "creativity", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.35", .documentation = "How much new detail to generate.", .title = "Creativity"},
    {.name = "resemblance", .types = type_number, .minimum = 0, .maximum = 3, .default_json = "0.6", .documentation = "How closely the output resembles the input image.", .title = "Resemblance"},
    {.name = "tiling_width", .types = type_integer, .minimum = 16, .maximum = 256, .multiple_of = 16, .default_json = "112", .documentation = "Width of the tiles in which the image is processed. Smaller tiles give sharper images that differ more from the input.", .title = "Tiling width"},
    {.name = "tiling_height", .types = type_integer, .minimum = 16, .maximum = 256, .multiple_of = 16, .default_json = "144", .documentation = "Height of the tiles in which the image is processed.", .title = "Tiling height"},
    {.name = "sd_model", .types = type_string, .choices = upscale_image_A_sd_model_choices, .default_json = "\"juggernaut_reborn.safetensors [338b85bc4f]\"", .documentation = "Stable Diffusion model that generates the detail.", .title = "Stable Diffusion model"},
    {.name = "scheduler", .types = type_string, .choices = upscale_image_A_scheduler_choices, .default_json = "\"DPM++ 3M SDE Karras\"", .documentation = "Sampling algorithm for the denoising steps.", .title = "Scheduler"},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 100, .aliases = upscale_image_A_num_inference_steps_aliases, .default_json = "18", .documentation = "Number of denoising steps.", .title = "Inference steps"},
    {.name = "downscaling", .types = type_boolean, .default_json = "false", .documentation = "Shrink the image first. The model then generates more detail.", .title = "Downscale first"},
    {.name = "downscaling_resolution", .types = type_integer, .minimum = 64, .maximum = 4096, .default_json = "768", .unit = "px", .documentation = "Length of the longer side after `downscaling`.", .title = "Downscaled size"},
    {.name = "sharpen", .types = type_number, .minimum = 0, .maximum = 10, .default_json = "0", .documentation = "Strength of the final sharpening.", .title = "Sharpening"},
    {.name = "output_format", .types = type_string, .choices = upscale_image_A_output_format_choices, .default_json = "\"png\"", .documentation = "File format of the output.", .title = "Output format"},
    {.name = "seed", .types = type_integer, .extension = true, .default_json = "1337", .documentation = "Random seed. The same seed and inputs give the same image.", .title = "Seed"},
    {.name = "multistep_factor", .types = type_number, .extension = true, .minimum = 0, .maximum = 2, .default_json = "0.8", .documentation = "Factor that multiplies `creativity` after each pass. A `scale_factor` above 2 needs several passes.", .title = "Creativity per pass"},
    {.name = "lora_links", .types = type_string, .extension = true, .url = true, .schemes = upscale_image_A_lora_links_schemes, .documentation = "URL of LoRA weights to load.", .title = "LoRA weights URL"},
    {.name = "custom_sd_model", .types = type_string, .extension = true, .url = true, .schemes = upscale_image_A_custom_sd_model_schemes, .documentation = "URL of a custom Stable Diffusion model to use instead of `sd_model`.", .title = "Custom model URL"},
    {.name = "mask", .types = type_file, .extension = true, .media = "image", .documentation = "Mask of the protected area: white areas stay unchanged.", .title = "Protected area"},
    {.name = "handfix", .types = type_string, .extension = true, .choices = upscale_image_A_handfix_choices, .default_json = "\"disabled\"", .documentation = "Hand repair: repair hands in the image.", .title = "Hand repair"},
    {.name = "pattern", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Make a seamless pattern: the opposite sides of the image fit together.", .title = "Seamless pattern"},
};

constexpr Field upscale_image_B_fields[] = {
    {.name = "image", .types = type_file, .required = true, .media = "image", .documentation = "Image to upscale.", .title = "Image"},
    {.name = "scale", .types = type_number, .minimum = 0, .maximum = 10, .above_minimum = true, .default_json = "4", .documentation = "Factor by which width and height are multiplied.", .title = "Scale factor"},
    {.name = "face_enhance", .types = type_boolean, .default_json = "false", .documentation = "Enhance faces with a separate model; requires an upstream that supports it.", .title = "Enhance faces"},
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
