// Data that the MP4 muxer needs from some audio codecs for its index, which it writes last. It
// detects missing data only then, and FFmpeg leaks memory if it fails there.
#pragma once

#include <cstdint>

#include "media/ffmpeg.hpp"

namespace polymux::media {

/// Whether the codec's header has the length that MP4 copies for Opus and FLAC.
[[nodiscard]] bool has_mp4_header(const AVCodecParameters& parameters) noexcept;

/// The frames of AC-3 and E-AC-3, which MP4 describes by the content of the first ones.
class DolbyFrames {
public:
    explicit DolbyFrames(AVCodecID codec) noexcept : codec_(codec) {}

    /// Returns false for a packet that is invalid for the codec. Accepts all packets of other
    /// codecs.
    [[nodiscard]] bool accept(const AVPacket& packet) noexcept;

    /// Whether enough frames were accepted for a description, or none at all.
    [[nodiscard]] bool complete() const noexcept;

private:
    AVCodecID codec_;
    std::int64_t accepted_ = 0;
    std::int64_t independent_ = 0;
};

}  // namespace polymux::media
