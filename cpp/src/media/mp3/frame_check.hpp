// Compares the frames of a conversion with those of a reference.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "polymux/media/mp3/encoder.hpp"
#include "polymux/result.hpp"

namespace polymux::media::mp3 {

/// Not thread-safe.
class FrameCheck {
public:
    virtual ~FrameCheck() = default;

    /// Takes the samples that the conversion reads.
    virtual Result<void> encode(const PcmBlock& /*block*/) { return {}; }
    /// Takes a frame that the conversion writes. Error `encoder_failed` if it differs.
    virtual Result<void> compare(std::span<const std::byte> frame) = 0;
    /// Call after the last samples and the last frame.
    virtual Result<void> finish() = 0;

    /// For people, such as "ffmpeg 5.1.6".
    [[nodiscard]] virtual std::string reference() const = 0;
};

}  // namespace polymux::media::mp3
