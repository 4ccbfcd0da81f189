// What MP4's muxer needs of some audio codecs when it writes its index, the last thing it does. It
// finds out only then, and FFmpeg loses memory where it fails there.
#pragma once

#include <cstdint>

#include "media/ffmpeg.hpp"

namespace polymux::media {

/// Whether the codec's header, which MP4 takes over for Opus and FLAC, has its length.
[[nodiscard]] bool has_mp4_header(const AVCodecParameters& parameters) noexcept;

/// The frames of AC-3 and E-AC-3, which MP4 describes by what the first of them say.
class DolbyFrames {
public:
    explicit DolbyFrames(AVCodecID codec) noexcept : codec_(codec) {}

    /// False for a packet that is none of the codec's. Other codecs' are all let through.
    [[nodiscard]] bool accept(const AVPacket& packet) noexcept;

    /// Whether enough were accepted for a description, or none at all.
    [[nodiscard]] bool complete() const noexcept;

private:
    AVCodecID codec_;
    std::int64_t accepted_ = 0;
    std::int64_t independent_ = 0;
};

}  // namespace polymux::media
