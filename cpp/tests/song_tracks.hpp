// Tracks of random peaks, for tests of the index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "polymux/song/segment.hpp"

namespace polymux::testing {

/// `peaks` random peaks in each window.
inline song::Track random_track(std::mt19937& random, std::int64_t song, std::uint32_t frames,
                                std::size_t peaks) {
    song::Track track{.song = song, .first_frame = 0, .fingerprint = {}};
    track.fingerprint.frames = frames;
    for (std::vector<song::PackedPeak>& of_window : track.fingerprint.peaks) {
        for (std::size_t index = 0; index < peaks; ++index) {
            const auto frame = static_cast<std::uint32_t>(random() % frames);
            of_window.push_back(
                song::pack(frame, static_cast<std::uint32_t>(random()) & song::frequency_mask));
        }
        std::sort(of_window.begin(), of_window.end());
    }
    return track;
}

}  // namespace polymux::testing
