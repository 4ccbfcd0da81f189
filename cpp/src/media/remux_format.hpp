// The container and file type of a remux.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "media/ffmpeg.hpp"
#include "polymux/media/remux.hpp"

namespace polymux::media {

/// The codecs of one file; AV_CODEC_ID_NONE for a missing stream.
struct RemuxCodecs {
    AVCodecID video = AV_CODEC_ID_NONE;
    AVCodecID audio = AV_CODEC_ID_NONE;
    bool audio_has_mp4_header = true;
};

struct RemuxFormat {
    RemuxContainer container = RemuxContainer::matroska;
    const AVOutputFormat* muxer = nullptr;
    std::string_view name;
    std::string_view content_type;
    std::string_view extension;
};

/// The requested container, or the one that `automatic` selects. Errors: unsupported_media if it
/// does not support the codecs.
Result<RemuxFormat> choose_remux_format(const RemuxCodecs& codecs, RemuxContainer asked);

/// The video stream with the most pixels. Streams with seen packets come first, then those with the
/// default flag. Covers and thumbnails do not count.
[[nodiscard]] std::optional<int> best_video_stream(const AVFormatContext& format);

/// Duration at the start of a stream that its decoder drops, if the codec states it: Opus.
/// Containers give that part times before the start of the stream.
[[nodiscard]] std::int64_t decoder_delay_us(const AVCodecParameters& parameters) noexcept;

}  // namespace polymux::media
