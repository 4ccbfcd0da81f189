// Checks the output of the MP3 tests with the ffmpeg, ffprobe and mpg123 programs.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polymux/media/mp3/frame.hpp"
#include "support.hpp"

namespace polymux::testing {

using Bytes = std::vector<std::byte>;

/// Runs a shell command and returns its standard output. The test fails if the command does.
inline std::string output_of(const std::string& command) {
    const auto result = run_program({"sh", "-c", command});
    INFO(command, "\n", result.errors);
    REQUIRE(result.exit_status == 0);
    return result.output;
}

inline std::string ffmpeg(const std::string& arguments) {
    return output_of("ffmpeg -v error -nostdin -y " + arguments);
}

inline std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text;
}

/// One entry of ffprobe's report, for example "format_tags=title".
inline std::string probed(const std::string& path, const std::string& entry) {
    return trimmed(output_of("ffprobe -v error -show_entries " + entry +
                             " -of default=noprint_wrappers=1:nokey=1 '" + path + "'"));
}

/// "Lavf59.27.100" of the installed program.
inline std::string muxer_name() {
    const std::string text = output_of("ffmpeg -version");
    const auto at = text.find("libavformat");
    REQUIRE(at != std::string::npos);
    int major = 0;
    int minor = 0;
    int micro = 0;
    const int got =
        std::sscanf(text.c_str() + at, "libavformat %d. %d. %d", &major, &minor, &micro);
    REQUIRE(got == 3);
    return "Lavf" + std::to_string(major) + '.' + std::to_string(minor) + '.' +
           std::to_string(micro);
}

inline Bytes bytes_of(std::string_view text) {
    const auto bytes = as_bytes(text);
    return {bytes.begin(), bytes.end()};
}

/// Length of the ID3v2 tag at the start of `bytes`, else 0.
inline std::size_t tag_length(std::span<const std::byte> bytes) {
    if (bytes.size() < 10 || as_text(bytes.first(3)) != "ID3") return 0;
    std::size_t length = 0;
    for (std::size_t i = 6; i < 10; ++i) {
        length = length << 7 | std::to_integer<std::size_t>(bytes[i]);
    }
    return length + 10;
}

/// Splits a stream into frames. The test fails at the first byte outside a frame.
inline std::vector<Bytes> split_frames(std::span<const std::byte> bytes) {
    std::vector<Bytes> frames;
    while (!bytes.empty()) {
        const auto header = media::mp3::parse_header(bytes);
        REQUIRE(header.has_value());
        const auto length = static_cast<std::size_t>(header->frame_bytes);
        REQUIRE(length <= bytes.size());
        frames.emplace_back(bytes.begin(), bytes.begin() + header->frame_bytes);
        bytes = bytes.subspan(length);
    }
    return frames;
}

struct Clip {
    int sample_rate_hz = 44'100;
    int channels = 2;
    int samples = 44'100;
    std::string arguments;  ///< For the encoder and the muxer.
};

/// Encodes audio with changing loudness and spectrum, with the ffmpeg program.
inline void encode_clip(const Clip& clip, const std::string& path, const std::string& inputs = {}) {
    const std::string left = "0.4*sin(t*t*900)*abs(sin(t))+0.1*random(0)*lt(mod(t\\,2)\\,1)";
    const std::string right = clip.channels == 2 ? "|0.3*sin(t*3000)" : "";
    ffmpeg("-f lavfi -i 'aevalsrc=" + left + right + ":s=" + std::to_string(clip.sample_rate_hz) +
           "' " + inputs + " -af atrim=end_sample=" + std::to_string(clip.samples) +
           " -c:a libmp3lame " + clip.arguments + " '" + path + "'");
}

}  // namespace polymux::testing
