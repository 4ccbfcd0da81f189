// Made by scripts/generate from contract/; change it there.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view generate_video_num_inferences_steps_aliases[] = {"num_inference_steps"};
constexpr std::string_view generate_video_video_model_choices[] = {"xl", "576w", "potat1", "animov-512x"};
constexpr Field generate_video_fields[] = {
    {.name = "prompt", .types = type_string, .required = true, .min_length = 1, .documentation = "What the video shows."},
    {.name = "negative_prompt", .types = type_string, .default_json = "\"blurred, noisy, washed out, distorted, broken\"", .documentation = "What it must not show."},
    {.name = "init_weight", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.5", .documentation = "How much of `init_video` is kept: 1 keeps all of it, 0 nothing."},
    {.name = "num_frames", .types = type_integer, .minimum = 1, .maximum = 100, .default_json = "24", .unit = "frames", .documentation = "Length of the video."},
    {.name = "num_inferences_steps", .python_name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 500, .aliases = generate_video_num_inferences_steps_aliases, .default_json = "50", .documentation = "Steps of denoising."},
    {.name = "width", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Width of the video."},
    {.name = "height", .types = type_integer, .minimum = 256, .maximum = 2048, .multiple_of = 8, .default_json = "1024", .unit = "px", .documentation = "Height of the video; the models were trained on 576 beside a width of 1024."},
    {.name = "guidance_scale", .types = type_number, .minimum = 1, .maximum = 100, .default_json = "17.5", .documentation = "How closely to follow the description."},
    {.name = "fps", .types = type_integer, .minimum = 1, .maximum = 60, .default_json = "10", .unit = "frames/s", .documentation = "Frame rate."},
    {.name = "video_model", .types = type_string, .choices = generate_video_video_model_choices, .default_json = "\"xl\"", .documentation = "Which model paints."},
    {.name = "batch_size", .types = type_integer, .minimum = 1, .maximum = 8, .default_json = "1", .documentation = "How many videos to make."},
    {.name = "remove_watermark", .types = type_boolean, .default_json = "false", .documentation = "Paint over the mark that the training videos left; needs an upstream that can."},
    {.name = "init_video", .types = type_file, .extension = true, .media = "video", .documentation = "Video to start from."},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Makes the video repeatable; random when absent."},
};

constexpr Variant generate_video_variants[] = {
    {.id = "",
     .model = "anotherjesse/zeroscope-v2-xl",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "generate_video", .documentation = "Makes a short video from a description.",
              .fields = generate_video_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view download_video_url_schemes[] = {"http", "https"};
constexpr Field download_video_fields[] = {
    {.name = "url", .types = type_string, .required = true, .url = true, .schemes = download_video_url_schemes, .documentation = "Page of the video, or the file itself."},
    {.name = "resolution", .types = type_string, .format = Format::resolution, .default_json = "\"best\"", .documentation = "`720p`, `720` (144 to 4320: the smaller side), or `best`; the best at or below it is taken, else the smallest above."},
};

constexpr Variant download_video_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "download_video", .documentation = "Fetches an online video.",
              .fields = download_video_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view summarize_video_url_schemes[] = {"http", "https"};
constexpr Field summarize_video_fields[] = {
    {.name = "url", .types = type_string, .required = true, .url = true, .schemes = summarize_video_url_schemes, .documentation = "Page of the video."},
};

constexpr Variant summarize_video_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "summarize_video", .documentation = "Says in short what an online video is about.",
              .fields = summarize_video_fields,
              .unknown_fields = UnknownFields::warn}},
};

}  // namespace

constinit const Operation generate_video = {
    .name = "generate_video",
    .path = "/api/v1/modelhost/videogeneration",
    .family = "video",
    .title = "Video generation",
    .summary = "Makes a short video from a description.",
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
    .summary = "Fetches an online video.",
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
    .summary = "Says in short what an online video is about.",
    .first = "url",
    .result = "TextResponse",
    .job = true,
    .variants = summarize_video_variants,
};

}  // namespace polymux::contract::generated
