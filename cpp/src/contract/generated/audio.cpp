// Made by scripts/generate from contract/; do not edit.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view search_music_proxy_schemes[] = {"http", "https", "socks5", "socks5h"};
constexpr Field search_music_fields[] = {
    {.name = "song", .types = type_string, .required = true, .min_length = 1, .documentation = "Title, artist, or both.", .title = "Song"},
    {.name = "limit", .types = type_integer, .written_as_text = true, .minimum = 1, .maximum = 50, .default_json = "5", .documentation = "Maximum number of songs to return.", .title = "Maximum results"},
    {.name = "proxy", .types = type_string, .url = true, .schemes = search_music_proxy_schemes, .documentation = "URL of a proxy that the server uses for the search. It must be one of the `allowed_proxies` of the server.", .title = "Proxy URL"},
};

constexpr Variant search_music_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "search_music", .documentation = "Search for songs by title or artist.",
              .fields = search_music_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view transcribe_url_schemes[] = {"http", "https"};
constexpr std::string_view transcribe_task_choices[] = {"transcribe", "translate"};
constexpr std::string_view transcribe_timestamp_choices[] = {"chunk", "word"};
constexpr Field transcribe_fields[] = {
    {.name = "audio", .python_name = "source", .types = type_file, .media = "audio", .documentation = "Recording to transcribe: any audio or video file.", .title = "Recording"},
    {.name = "url", .types = type_string, .url = true, .schemes = transcribe_url_schemes, .documentation = "URL of an audio or video file, or of an online video's page, instead of a file.", .title = "Media or page URL"},
    {.name = "task", .types = type_string, .choices = transcribe_task_choices, .default_json = "\"transcribe\"", .documentation = "Task: `transcribe` keeps the spoken language, `translate` translates to English.", .title = "Task"},
    {.name = "batch_size", .types = type_integer, .minimum = 1, .maximum = 256, .default_json = "64", .documentation = "Number of segments that are processed in parallel. Smaller values need less memory.", .title = "Batch size"},
    {.name = "timestamp", .types = type_string, .choices = transcribe_timestamp_choices, .default_json = "\"chunk\"", .documentation = "Unit of the timestamps: `chunk` for segments of speech, `word` for single words.", .title = "Timestamps"},
    {.name = "language", .types = type_string, .extension = true, .min_length = 2, .documentation = "Spoken language, as a code or English name that Whisper supports, such as `de` or `german`. Default: detected automatically.", .title = "Language"},
};

constexpr std::string_view transcribe_rule_0[] = {"audio", "url"};
constexpr Rule transcribe_rules[] = {
    {.kind = Rule::Kind::exactly_one, .fields = transcribe_rule_0},
};

constexpr Variant transcribe_variants[] = {
    {.id = "",
     .model = "turian/insanely-fast-whisper-with-video",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "transcribe", .documentation = "Transcribe speech, or translate it to English.",
              .fields = transcribe_fields, .rules = transcribe_rules,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view generate_music_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view generate_music_seed_image_id_choices[] = {"agile", "marim", "mask_beat_lines_80", "mask_gradient_dark", "mask_gradient_top_70", "mask_gradient_top_fifth_75", "mask_top_third_75", "mask_top_third_95", "motorway", "og_beat", "vibes"};
constexpr std::string_view generate_music_output_format_choices[] = {"wav", "mp3", "flac"};
constexpr Field generate_music_fields[] = {
    {.name = "prompt_a", .types = type_string, .required = true, .min_length = 1, .documentation = "Description of the music.", .title = "Prompt"},
    {.name = "denoising", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.75", .documentation = "How strongly the seed spectrogram is changed; 0 keeps it unchanged.", .title = "Denoising strength"},
    {.name = "prompt_b", .types = type_string, .documentation = "Second prompt, which is mixed with the first.", .title = "Second prompt"},
    {.name = "alpha", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.5", .documentation = "Weight of the second prompt, `prompt_b`: 0 uses only `prompt_a`, 1 uses only `prompt_b`.", .title = "Weight of the second prompt"},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 500, .aliases = generate_music_num_inference_steps_aliases, .default_json = "50", .documentation = "Number of denoising steps.", .title = "Inference steps"},
    {.name = "seed_image_id", .types = type_string, .choices = generate_music_seed_image_id_choices, .default_json = "\"vibes\"", .documentation = "Seed spectrogram, from which the generation starts.", .title = "Seed spectrogram"},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Random seed. The same seed and inputs give the same music. Default: random.", .title = "Seed"},
    {.name = "duration_s", .types = type_number, .extension = true, .minimum = 5.12, .maximum = 60, .unit = "s", .documentation = "Duration of the music. Default: that of the seed spectrogram, usually 5.12 s.", .title = "Duration"},
    {.name = "output_format", .types = type_string, .extension = true, .choices = generate_music_output_format_choices, .default_json = "\"wav\"", .documentation = "File format of the audio.", .title = "Output format"},
};

constexpr Variant generate_music_variants[] = {
    {.id = "",
     .model = "riffusion/riffusion",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = true,
     .accepts_multipart = true,
     .body = {.name = "generate_music", .documentation = "Generate a few seconds of music from a prompt, or from a mix of two prompts.",
              .fields = generate_music_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr Field identify_song_fields[] = {
    {.name = "file", .python_name = "source", .types = type_file, .required = true, .media = "audio", .documentation = "Recording with a few seconds of the song: any audio or video file.", .title = "Recording"},
};

constexpr Variant identify_song_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "identify_song", .documentation = "Identify the song in an audio or video file.",
              .fields = identify_song_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view download_music_query_aliases[] = {"song"};
constexpr Field download_music_fields[] = {
    {.name = "query", .types = type_string, .required = true, .min_length = 1, .aliases = download_music_query_aliases, .documentation = "Title, artist, or both.", .title = "Query"},
};

constexpr Variant download_music_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "download_music", .documentation = "Download the best match for a song title or artist as MP3.",
              .fields = download_music_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view convert_to_mp3_url_schemes[] = {"http", "https"};
constexpr std::int64_t convert_to_mp3_sample_rate_choices[] = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};
constexpr Field convert_to_mp3_fields[] = {
    {.name = "url", .types = type_string, .url = true, .schemes = convert_to_mp3_url_schemes, .documentation = "URL of an audio or video file, or of an online video's page, instead of a file.", .title = "Media or page URL"},
    {.name = "file", .python_name = "source", .types = type_file, .media = "audio", .documentation = "Audio or video file to convert.", .title = "Media file"},
    {.name = "bitrate", .types = type_integer | type_string, .extension = true, .format = Format::bitrate, .minimum = 8000, .maximum = 320000, .unit = "bit/s", .documentation = "Constant bitrate: a number such as 128000, or a string such as `128k`.", .title = "Bitrate"},
    {.name = "vbr_quality", .types = type_number, .extension = true, .minimum = 0, .maximum = 10, .below_maximum = true, .documentation = "Quality of a variable bitrate; 0 is the best. Default: 0 if no `bitrate` is set.", .title = "Variable bitrate quality"},
    {.name = "sample_rate", .types = type_integer, .extension = true, .integer_choices = convert_to_mp3_sample_rate_choices, .unit = "Hz", .documentation = "Sample rate of the MP3 in Hz. Default: the supported rate nearest to the input's.", .title = "Sample rate"},
    {.name = "channels", .types = type_integer, .extension = true, .minimum = 1, .maximum = 2, .documentation = "Number of channels: mono or stereo. Default: mono for mono input, else stereo.", .title = "Channels"},
    {.name = "start", .types = type_number | type_string, .extension = true, .format = Format::time, .minimum = 0, .unit = "s", .documentation = "Start time: seconds, or `[HH:]MM:SS[.mmm]`. Default: the start of the input.", .title = "Start time"},
    {.name = "end", .types = type_number | type_string, .extension = true, .format = Format::time, .minimum = 0, .above_minimum = true, .unit = "s", .documentation = "End time: seconds, or `[HH:]MM:SS[.mmm]`. Default: the end of the input.", .title = "End time"},
    {.name = "stream", .python_name = "audio_stream", .types = type_integer, .extension = true, .minimum = 0, .documentation = "Index of the audio stream to convert, counted over all streams of the file. Default: the best audio stream.", .title = "Audio stream"},
};

constexpr std::string_view convert_to_mp3_rule_0[] = {"file", "url"};
constexpr std::string_view convert_to_mp3_rule_1[] = {"bitrate", "vbr_quality"};
constexpr std::string_view convert_to_mp3_rule_2[] = {"start", "end"};
constexpr Rule convert_to_mp3_rules[] = {
    {.kind = Rule::Kind::exactly_one, .fields = convert_to_mp3_rule_0},
    {.kind = Rule::Kind::at_most_one, .fields = convert_to_mp3_rule_1},
    {.kind = Rule::Kind::ascending, .fields = convert_to_mp3_rule_2},
};

constexpr Variant convert_to_mp3_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "convert_to_mp3", .documentation = "Convert an audio or video file to MP3.",
              .fields = convert_to_mp3_fields, .rules = convert_to_mp3_rules,
              .unknown_fields = UnknownFields::warn}},
};

}  // namespace

constinit const Operation search_music = {
    .name = "search_music",
    .path = "/api/v1/musicsearch",
    .family = "audio",
    .title = "Music search",
    .summary = "Search for songs by title or artist.",
    .first = "song",
    .result = "SongList",
    .variants = search_music_variants,
};

constinit const Operation transcribe = {
    .name = "transcribe",
    .path = "/api/v1/modelhost/stt",
    .family = "audio",
    .title = "Speech to text",
    .summary = "Transcribe speech, or translate it to English.",
    .first = "audio",
    .result = "Prediction",
    .job = true,
    .variants = transcribe_variants,
};

constinit const Operation generate_music = {
    .name = "generate_music",
    .path = "/api/v1/modelhost/musicgeneration",
    .family = "audio",
    .title = "Music generation",
    .summary = "Generate a few seconds of music from a prompt, or from a mix of two prompts.",
    .first = "prompt_a",
    .result = "Prediction",
    .job = true,
    .variants = generate_music_variants,
};

constinit const Operation identify_song = {
    .name = "identify_song",
    .path = "/api/v1/songid",
    .family = "audio",
    .title = "Song recognition",
    .summary = "Identify the song in an audio or video file.",
    .first = "file",
    .result = "Song",
    .variants = identify_song_variants,
};

constinit const Operation download_music = {
    .name = "download_music",
    .path = "/api/v1/downloadmusic",
    .family = "audio",
    .title = "Music download",
    .summary = "Download the best match for a song title or artist as MP3.",
    .first = "query",
    .result = "MediaFile",
    .job = true,
    .variants = download_music_variants,
};

constinit const Operation convert_to_mp3 = {
    .name = "convert_to_mp3",
    .path = "/api/v1/convert2mp3",
    .family = "audio",
    .title = "Conversion to MP3",
    .summary = "Convert an audio or video file to MP3.",
    .first = "file",
    .result = "MediaFile",
    .job = true,
    .variants = convert_to_mp3_variants,
};

}  // namespace polymux::contract::generated
