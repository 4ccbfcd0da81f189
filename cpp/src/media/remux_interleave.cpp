#include "media/remux_interleave.hpp"

#include <algorithm>

namespace polymux::media {

namespace {

constexpr std::int64_t largest_wait_bytes = 64 << 20;
constexpr std::int64_t max_wait_us = 10'000'000;

RemuxInput& input_of(std::span<const std::unique_ptr<RemuxInput>> inputs, const RemuxTrack& track) {
    return *inputs[static_cast<std::size_t>(track.input)];
}

bool waited_enough(std::span<RemuxTrack* const> tracks) {
    std::int64_t bytes = 0;
    std::int64_t max_us = 0;
    for (const RemuxTrack* track : tracks) {
        bytes += track->waiting_bytes;
        const auto& ready = track->timeline.ready();
        if (ready.empty()) continue;
        const std::int64_t waiting_us = bounded_rescale(ready.back()->dts - ready.front()->dts,
                                                        track->timeline.time_base(), microseconds);
        max_us = std::max(max_us, waiting_us);
    }
    return bytes > largest_wait_bytes || max_us > max_wait_us;
}

}  // namespace

Result<void> fill_tracks(std::span<const std::unique_ptr<RemuxInput>> inputs,
                         std::span<RemuxTrack* const> tracks) {
    const auto is_hungry = [&](const RemuxTrack* track) {
        return track->timeline.ready().empty() && !input_of(inputs, *track).ended();
    };
    for (;;) {
        const auto hungry = std::find_if(tracks.begin(), tracks.end(), is_hungry);
        if (hungry == tracks.end()) return {};
        if (waited_enough(tracks)) {
            for (RemuxTrack* track : tracks) track->timeline.release();
            return {};
        }
        if (Result<void> read = input_of(inputs, **hungry).read(); !read) return read;
    }
}

std::optional<std::size_t> earliest_track(std::span<RemuxTrack* const> tracks) {
    std::optional<std::size_t> best;
    std::int64_t best_us = 0;
    for (std::size_t index = 0; index < tracks.size(); ++index) {
        const auto& ready = tracks[index]->timeline.ready();
        if (ready.empty()) continue;
        const std::int64_t dts_us = tracks[index]->output_us(ready.front()->dts);
        if (!best || dts_us < best_us) {
            best = index;
            best_us = dts_us;
        }
    }
    return best;
}

}  // namespace polymux::media
