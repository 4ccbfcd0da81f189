// Made by scripts/generate from contract/; do not edit.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view generate_video_num_inferences_steps_aliases[] = {"num_inference_steps"};
constexpr std::string_view generate_video_video_model_choices[] = {"xl", "576w", "potat1", "animov-512x"};
constexpr Field generate_video_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .documentation = "Description of the video.", .title = "Prompt"},
    {.name = "negative_prompt", .types = type_string, .default_json = "\"blurred, noisy, washed out, distorted, broken\"", .documentation = "Description of content to avoid.", .title = "Negative prompt"},
    {.name = "init_weight", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.5", .documentation = "How closely the output resembles the input video: 1 keeps the video unchanged, 0 ignores it.", .title = "Input video strength"},
    {.name = "num_frames", .types = type_integer, .minimum = 1, .maximum = 100, .default_json = "24", .documentation = "Number of frames in the video.", .title = "Number of frames"},
    {.name = "num_inferences_steps", .python_name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 500, .aliases = generate_video_num_inferences_steps_aliases, .default_json = "50", .documentation = "Number of denoising steps.", .title = "Inference steps"},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Width of the video.", .title = "Width"},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Height of the video.", .title = "Height"},
    {.name = "guidance_scale", .types = type_number, .minimum = 1, .maximum = 100, .default_json = "17.5", .documentation = "Guidance scale: how closely to follow the prompt.", .title = "Guidance scale"},
    {.name = "fps", .types = type_integer, .minimum = 1, .maximum = 60, .default_json = "10", .unit = "frames/s", .documentation = "Frame rate of the video.", .title = "Frames per second"},
    {.name = "video_model", .types = type_string, .choices = generate_video_video_model_choices, .default_json = "\"xl\"", .documentation = "Video model. `xl` and `potat1` were trained at 1024 x 576, `576w` at 576 x 320; `animov-512x` generates anime.", .title = "Video model"},
    {.name = "batch_size", .types = type_integer, .minimum = 1, .maximum = 8, .default_json = "1", .documentation = "Number of videos to generate.", .title = "Number of videos"},
    {.name = "remove_watermark", .types = type_boolean, .default_json = "false", .documentation = "Remove the watermark that the model learned from its training videos; requires an upstream that supports this.", .title = "Remove watermark"},
    {.name = "init_video", .types = type_file, .extension = true, .media = "video", .documentation = "Input video to transform.", .title = "Input video"},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Random seed. The same seed and inputs give the same video. Default: random.", .title = "Seed"},
};

constexpr Variant generate_video_variants[] = {
    {.id = "",
     .model = "anotherjesse/zeroscope-v2-xl",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "generate_video", .documentation = "Generate a short video from a text prompt.",
              .fields = generate_video_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view download_video_url_schemes[] = {"http", "https"};
constexpr Field download_video_fields[] = {
    {.name = "url", .types = type_string, .required = true, .url = true, .schemes = download_video_url_schemes, .documentation = "URL of the video's page, or of the video file.", .title = "Video URL"},
    {.name = "resolution", .types = type_string, .format = Format::resolution, .default_json = "\"best\"", .documentation = "Maximum length of the shorter side in pixels, 144 to 4320, such as `720p` or `720`; `best` sets no maximum. If all available resolutions are larger, the smallest one is downloaded.", .title = "Resolution"},
};

constexpr Variant download_video_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "download_video", .documentation = "Download an online video.",
              .fields = download_video_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view summarize_video_url_schemes[] = {"http", "https"};
constexpr Field summarize_video_fields[] = {
    {.name = "url", .types = type_string, .required = true, .url = true, .schemes = summarize_video_url_schemes, .documentation = "URL of the video's page.", .title = "Video page URL"},
};

constexpr Variant summarize_video_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "summarize_video", .documentation = "Summarize the content of an online video.",
              .fields = summarize_video_fields,
              .unknown_fields = UnknownFields::warn}},
};

}  // namespace

constinit const Operation generate_video = {
    .name = "generate_video",
    .path = "/api/v1/modelhost/videogeneration",
    .family = "video",
    .title = "Video generation",
    .summary = "Generate a short video from a text prompt.",
    .first = "prompt",
    .result = "Prediction",
    .job = true,
    .variants = generate_video_variants,
};

constinit const Operation download_video = {
    .name = "download_video",
    .path = "/api/v1/downloadvideo",
    .family = "video",
    .title = "Video download",
    .summary = "Download an online video.",
    .first = "url",
    .result = "MediaFile",
    .job = true,
    .variants = download_video_variants,
};

constinit const Operation summarize_video = {
    .name = "summarize_video",
    .path = "/api/v1/videosummarization",
    .family = "video",
    .title = "Video summary",
    .summary = "Summarize the content of an online video.",
    .first = "url",
    .result = "TextResponse",
    .job = true,
    .variants = summarize_video_variants,
};

}  // namespace polymux::contract::generated
