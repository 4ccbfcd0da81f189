// Samples of one piece of a file, waiting for the encoders that need them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Planar samples of one segment. Written by one thread, then read by any.
class Segment {
public:
    Segment(std::int64_t number, std::int64_t first_frame, const EncoderSettings& settings);

    void append(const PcmBlock& block);
    /// At most `samples` from `begin` on; valid as long as the segment.
    [[nodiscard]] PcmBlock block(int begin, int samples) const noexcept;

    [[nodiscard]] std::int64_t number() const noexcept { return number_; }
    /// Of the whole file, counted from 0.
    [[nodiscard]] std::int64_t first_frame() const noexcept { return first_frame_; }
    [[nodiscard]] int samples() const noexcept { return samples_; }

    bool last = false;  ///< Nothing of the file follows. Set before others see the segment.

private:
    std::int64_t number_;
    std::int64_t first_frame_;
    int channels_;
    std::size_t sample_bytes_;
    int samples_ = 0;
    std::array<std::vector<std::byte>, 2> planes_;
};

}  // namespace polymux::media::mp3
