// Reading an open container's description into MediaInfo.
#pragma once

#include "media/opened_input.hpp"
#include "polymux/media/info.hpp"

namespace polymux::media {

[[nodiscard]] MediaInfo describe(const OpenedInput& input);

/// What a tag copied from the input holds.
struct CarriedMetadata {
    Tags tags;
    std::vector<Chapter> chapters;
    std::optional<Cover> cover;
};

/// The container's tags and, where it keeps them per stream (Ogg), those of `audio_stream`.
[[nodiscard]] CarriedMetadata carried_metadata(const AVFormatContext& format, int audio_stream);

/// The container's tags as ffmpeg's own muxing leaves them: without the entries that it clears,
/// its own name as encoder. For files that must equal ffmpeg's to the last byte.
[[nodiscard]] CarriedMetadata ffmpeg_metadata(const AVFormatContext& format);

}  // namespace polymux::media
