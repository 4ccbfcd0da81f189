// Converts an open container's description to MediaInfo.
#pragma once

#include "media/opened_input.hpp"
#include "polymux/media/info.hpp"

namespace polymux::media {

[[nodiscard]] MediaInfo describe(const OpenedInput& input);

/// Content of a tag copied from the input.
struct CarriedMetadata {
    Tags tags;
    std::vector<Chapter> chapters;
    std::optional<Cover> cover;
};

/// The container's tags and, for containers with tags per stream (Ogg), those of `audio_stream`.
[[nodiscard]] CarriedMetadata carried_metadata(const AVFormatContext& format, int audio_stream);

/// The container's tags as ffmpeg's muxing leaves them: without the entries that it clears, and
/// with its name as encoder. For files that must equal ffmpeg's to the last byte.
[[nodiscard]] CarriedMetadata ffmpeg_metadata(const AVFormatContext& format);

}  // namespace polymux::media
