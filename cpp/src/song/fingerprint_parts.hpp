// A recording's peaks, and the stored parts.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/song/fingerprint.hpp"

namespace polymux::song {

/// A peak of a recording of any length.
struct TimedPeak {
    std::uint64_t frame = 0;
    std::uint32_t frequency = 0;

    auto operator<=>(const TimedPeak&) const = default;
};

/// Returns at least one part; each except the last has `max_track_frames`. Peaks are sorted.
[[nodiscard]] std::vector<FingerprintPart> parts_of(std::uint64_t frames,
                                                    std::span<const TimedPeak> first_window,
                                                    std::span<const TimedPeak> second_window);

}  // namespace polymux::song
