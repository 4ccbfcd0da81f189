// Made by scripts/generate from contract/; change it there.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view search_music_proxy_schemes[] = {"http", "https", "socks5", "socks5h"};
constexpr Field search_music_fields[] = {
    {.name = "song", .types = type_string, .required = true, .min_length = 1, .documentation = "What to look for: title, artist, or both."},
    {.name = "limit", .types = type_integer, .written_as_text = true, .minimum = 1, .maximum = 50, .default_json = "5", .documentation = "How many songs at most."},
    {.name = "proxy", .types = type_string, .url = true, .schemes = search_music_proxy_schemes, .documentation = "Proxy that the server should go through, where it allows one."},
};

constexpr Variant search_music_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "search_music", .documentation = "Finds songs by name.",
              .fields = search_music_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view transcribe_url_schemes[] = {"http", "https"};
constexpr std::string_view transcribe_task_choices[] = {"transcribe", "translate"};
constexpr std::string_view transcribe_timestamp_choices[] = {"chunk", "word"};
constexpr Field transcribe_fields[] = {
    {.name = "audio", .python_name = "source", .types = type_file, .media = "audio", .documentation = "Recording: any audio or video file."},
    {.name = "url", .types = type_string, .url = true, .schemes = transcribe_url_schemes, .documentation = "Page of an online video to take the sound from, instead of `audio`."},
    {.name = "task", .types = type_string, .choices = transcribe_task_choices, .default_json = "\"transcribe\"", .documentation = "Write down, or translate into English."},
    {.name = "batch_size", .types = type_integer, .minimum = 1, .maximum = 256, .default_json = "64", .documentation = "Stretches worked on at once; fewer need less memory."},
    {.name = "timestamp", .types = type_string, .choices = transcribe_timestamp_choices, .default_json = "\"chunk\"", .documentation = "Times of stretches of speech, or of each word."},
    {.name = "language", .types = type_string, .extension = true, .min_length = 2, .documentation = "Language spoken, as a Whisper code or name; found out when absent."},
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
     .body = {.name = "transcribe", .documentation = "Writes down what is said in a recording, or translates it into English.",
              .fields = transcribe_fields, .rules = transcribe_rules,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view generate_music_num_inference_steps_aliases[] = {"num_inferences_steps"};
constexpr std::string_view generate_music_seed_image_id_choices[] = {"agile", "marim", "mask_beat_lines_80", "mask_gradient_dark", "mask_gradient_top_70", "mask_gradient_top_fifth_75", "mask_top_third_75", "mask_top_third_95", "motorway", "og_beat", "vibes"};
constexpr Field generate_music_fields[] = {
    {.name = "prompt_a", .types = type_string, .required = true, .min_length = 1, .documentation = "What the music is like."},
    {.name = "denoising", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.75", .documentation = "How much of the seed spectrogram is changed."},
    {.name = "prompt_b", .types = type_string, .documentation = "A second description to go towards; none when blank."},
    {.name = "alpha", .types = type_number, .minimum = 0, .maximum = 1, .default_json = "0.5", .documentation = "How far towards `prompt_b`: 0 is all `prompt_a`, 1 all `prompt_b`."},
    {.name = "num_inference_steps", .types = type_integer, .minimum = 1, .maximum = 500, .aliases = generate_music_num_inference_steps_aliases, .default_json = "50", .documentation = "Steps of diffusion."},
    {.name = "seed_image_id", .types = type_string, .choices = generate_music_seed_image_id_choices, .default_json = "\"vibes\"", .documentation = "Spectrogram to start from."},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Makes the music repeatable; random when absent."},
};

constexpr Variant generate_music_variants[] = {
    {.id = "",
     .model = "riffusion/riffusion",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = true,
     .accepts_multipart = true,
     .body = {.name = "generate_music", .documentation = "Makes a few seconds of music from a description, or from the way between two.",
              .fields = generate_music_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr Field identify_song_fields[] = {
    {.name = "file", .python_name = "source", .types = type_file, .required = true, .media = "audio", .documentation = "A few seconds of the song: any audio or video file."},
};

constexpr Variant identify_song_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::multipart,
     .accepts_json = false,
     .accepts_multipart = true,
     .body = {.name = "identify_song", .documentation = "Names the song in a piece of sound.",
              .fields = identify_song_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view download_music_query_aliases[] = {"song"};
constexpr Field download_music_fields[] = {
    {.name = "query", .types = type_string, .required = true, .min_length = 1, .aliases = download_music_query_aliases, .documentation = "What to look for."},
};

constexpr Variant download_music_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "download_music", .documentation = "Fetches the music that fits a query best, as MP3.",
              .fields = download_music_fields,
              .unknown_fields = UnknownFields::warn}},
};

constexpr std::string_view convert_to_mp3_url_schemes[] = {"http", "https"};
constexpr std::int64_t convert_to_mp3_sample_rate_choices[] = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};
constexpr Field convert_to_mp3_fields[] = {
    {.name = "url", .types = type_string, .url = true, .schemes = convert_to_mp3_url_schemes, .documentation = "Address of a media file, instead of `file`."},
    {.name = "file", .python_name = "source", .types = type_file, .media = "audio", .documentation = "The media: any audio or video file."},
    {.name = "bitrate", .types = type_integer | type_string, .extension = true, .format = Format::bitrate, .minimum = 8000, .maximum = 320000, .unit = "bit/s", .documentation = "Constant bitrate: 128000, or a text such as `128k`."},
    {.name = "vbr_quality", .types = type_number, .extension = true, .minimum = 0, .maximum = 10, .below_maximum = true, .documentation = "Variable bitrate from 0, the best; the default is 0 when there is no `bitrate`."},
    {.name = "sample_rate", .types = type_integer, .extension = true, .integer_choices = convert_to_mp3_sample_rate_choices, .unit = "Hz", .documentation = "Sample rate of the MP3; the one nearest to the input's when absent."},
    {.name = "channels", .types = type_integer, .extension = true, .minimum = 1, .maximum = 2, .documentation = "Mono or stereo; as the input when absent, stereo when it has more."},
    {.name = "start", .types = type_number | type_string, .extension = true, .format = Format::time, .minimum = 0, .unit = "s", .documentation = "Leave out what comes before: seconds, or `[HH:]MM:SS[.mmm]`."},
    {.name = "end", .types = type_number | type_string, .extension = true, .format = Format::time, .minimum = 0, .above_minimum = true, .unit = "s", .documentation = "Leave out what comes after, in the same forms."},
    {.name = "stream", .python_name = "audio_stream", .types = type_integer, .extension = true, .minimum = 0, .documentation = "Number of the stream to convert, among all streams; the best sound when absent."},
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
     .body = {.name = "convert_to_mp3", .documentation = "Makes an MP3 of any audio or video file.",
              .fields = convert_to_mp3_fields, .rules = convert_to_mp3_rules,
              .unknown_fields = UnknownFields::warn}},
};

}  // namespace

constinit const Operation search_music = {
    .name = "search_music",
    .path = "/api/v1/musicsearch",
    .family = "audio",
    .title = "Music search",
    .summary = "Finds songs by name.",
    .first = "song",
    .result = "SongList",
    .variants = search_music_variants,
};

constinit const Operation transcribe = {
    .name = "transcribe",
    .path = "/api/v1/modelhost/stt",
    .family = "audio",
    .title = "Speech to text",
    .summary = "Writes down what is said in a recording, or translates it into English.",
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
    .summary = "Makes a few seconds of music from a description, or from the way between two.",
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
    .summary = "Names the song in a piece of sound.",
    .first = "file",
    .result = "Song",
    .variants = identify_song_variants,
};

constinit const Operation download_music = {
    .name = "download_music",
    .path = "/api/v1/downloadmusic",
    .family = "audio",
    .title = "Music download",
    .summary = "Fetches the music that fits a query best, as MP3.",
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
    .summary = "Makes an MP3 of any audio or video file.",
    .first = "file",
    .result = "MediaFile",
    .job = true,
    .variants = convert_to_mp3_variants,
};

}  // namespace polymux::contract::generated
