#include "song/fingerprint_parts.hpp"

#include <algorithm>

namespace polymux::song {

namespace {

std::vector<PackedPeak> within(std::span<const TimedPeak> peaks, std::uint64_t first,
                               std::uint64_t end) {
    std::vector<PackedPeak> packed;
    const auto begin = std::lower_bound(peaks.begin(), peaks.end(), TimedPeak{.frame = first});
    for (auto at = begin; at != peaks.end() && at->frame < end; ++at) {
        packed.push_back(pack(static_cast<std::uint32_t>(at->frame - first), at->frequency));
    }
    return packed;
}

}  // namespace

std::vector<FingerprintPart> parts_of(std::uint64_t frames, std::span<const TimedPeak> first_window,
                                      std::span<const TimedPeak> second_window) {
    std::vector<FingerprintPart> parts;
    std::uint64_t first = 0;
    do {
        const std::uint64_t end = std::min<std::uint64_t>(first + max_track_frames, frames);
        FingerprintPart part{.first_frame = static_cast<std::uint32_t>(first), .fingerprint = {}};
        part.fingerprint.frames = static_cast<std::uint32_t>(end - first);
        part.fingerprint.peaks[0] = within(first_window, first, end);
        part.fingerprint.peaks[1] = within(second_window, first, end);
        parts.push_back(std::move(part));
        first = end;
    } while (first < frames);
    return parts;
}

}  // namespace polymux::song
