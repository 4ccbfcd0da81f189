#include "media/mp3/reservoir_tracker.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

namespace {

// Levels repeat about every 104 bytes, the difference of two bitrates' frames. About 150 frames
// therefore usually contain a restart, and 700 almost always.
constexpr std::size_t history_frames = 700;

// Frames that LAME had to shrink use 82 to 100 % of their allowance, at VBR nearly always more than
// this share. At ABR, LAME distributes the bits before coding, and frames use fewer.
constexpr double doubtful_share_vbr = 0.95;
constexpr double doubtful_share_abr = 0.65;

// At VBR, LAME grants a granule nine tenths of its half of the largest frame, and at most six
// tenths of the reservoir's limit.
constexpr double granted_payload_share = 0.9;
constexpr double granted_reservoir_share = 0.6;

// If the larger granule has this many times the bits of the others, they have none to give.
constexpr int lonely_granule_share = 10;

void place(Reservoir& reservoir, const FrameOutline& frame) noexcept {
    reservoir.place(reservoir.choose(frame.size, frame.bits, frame.silent), frame.bits);
}

}  // namespace

ReservoirTracker::ReservoirTracker(const StreamShape& shape) : shape_(shape), reservoir_(shape) {}

bool ReservoirTracker::is_doubtful(const FrameOutline& frame) const noexcept {
    const int level = reservoir_.level_bits();
    if (shape_.rate_control == RateControl::cbr || frame.level_bits == level) return false;
    const FrameSize largest{.bitrate_index = reservoir_.highest_index()};
    const int lower_level = std::min(level, frame.level_bits);
    const int available = reservoir_.available_bits(largest, lower_level);
    if (shape_.rate_control == RateControl::abr) {
        return frame.bits > doubtful_share_abr * available;
    }
    if (frame.bits > doubtful_share_vbr * available) return true;
    const int others = frame.bits - frame.largest_granule_bits;
    if (others * lonely_granule_share > frame.largest_granule_bits) return false;
    const double granule_payload =
        static_cast<double>(reservoir_.payload_bits(largest)) / shape_.granules();
    const double granted =
        granted_payload_share * granule_payload +
        std::min<double>(lower_level, granted_reservoir_share * reservoir_.limit_bits(largest));
    return frame.largest_granule_bits > doubtful_share_vbr * granted;
}

void ReservoirTracker::advance(const FrameOutline& frame) noexcept {
    place(reservoir_, frame);
    ++position_;
    if (shape_.rate_control == RateControl::cbr) return;
    history_.push_back(frame);
    if (history_.size() > history_frames) history_.pop_front();
}

std::optional<std::int64_t> ReservoirTracker::find_restart(std::int64_t first) const {
    const auto known = static_cast<std::int64_t>(history_.size());
    const std::int64_t farthest = std::min(known, position_ - first);
    // A few frames after the restart show whether it worked as expected.
    constexpr std::int64_t nearest = 3;
    for (std::int64_t distance = nearest; distance <= farthest; ++distance) {
        Reservoir candidate = reservoir_;
        candidate.empty();
        bool possible = true;
        for (auto frame = history_.end() - distance; possible && frame != history_.end(); ++frame) {
            const FrameSize size = candidate.choose(frame->size, frame->bits, frame->silent);
            possible = candidate.fits(size, frame->bits);
            if (possible) candidate.place(size, frame->bits);
        }
        if (possible && candidate.level_bits() == reservoir_.level_bits()) {
            return position_ - distance;
        }
    }
    return std::nullopt;
}

ReservoirTracker::Doubts ReservoirTracker::doubts(std::span<const FrameOutline> frames) const {
    ReservoirTracker ahead = *this;
    Doubts found;
    for (const FrameOutline& frame : frames) {
        if (ahead.is_doubtful(frame)) {
            if (!found.first) found.first = ahead.position();
            ++found.count;
        }
        ahead.advance(frame);
    }
    return found;
}

}  // namespace polymux::media::mp3
