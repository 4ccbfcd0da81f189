// Which container a remux writes, and what it is called.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "media/ffmpeg.hpp"
#include "polymux/media/remux.hpp"

namespace polymux::media {

/// The codecs that go into one file; AV_CODEC_ID_NONE where there is no such stream.
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

/// The container asked for, or the one that `automatic` stands for.
/// Errors: unsupported_media when it cannot hold the codecs.
Result<RemuxFormat> choose_remux_format(const RemuxCodecs& codecs, RemuxContainer asked);

/// The moving picture with the most pixels: streams that packets were seen of first, then marked
/// ones. Covers and thumbnails are none.
[[nodiscard]] std::optional<int> best_video_stream(const AVFormatContext& format);

/// How much of a stream's beginning its decoder drops, where the codec says so: Opus. Containers
/// give that part times before the stream's own beginning.
[[nodiscard]] std::int64_t decoder_delay_us(const AVCodecParameters& parameters) noexcept;

}  // namespace polymux::media
