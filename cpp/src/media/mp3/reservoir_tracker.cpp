#include "media/mp3/reservoir_tracker.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

namespace {

// Levels repeat about every 104 bytes, the difference of two bitrates' frames. About 150 frames
// therefore usually contain a restart, and 700 almost always.
constexpr std::size_t history_frames = 700;

void place(Reservoir& reservoir, const FrameOutline& frame) noexcept {
    reservoir.place(reservoir.choose(frame.size, frame.bits, frame.demand.silent), frame.bits);
}

}  // namespace

ReservoirTracker::ReservoirTracker(const StreamShape& shape, std::shared_ptr<Encoder> limits)
    : shape_(shape), limits_(std::move(limits)), reservoir_(shape) {}

bool ReservoirTracker::is_doubtful(const FrameOutline& frame) const {
    const int level_bits = reservoir_.level_bits();
    if (shape_.rate_control == RateControl::cbr || frame.level_bits == level_bits) return false;
    const int needed_bits = frame.demand.needed_bits;
    return needed_bits > limits_->limit_bits(frame.demand, level_bits) ||
           needed_bits > limits_->limit_bits(frame.demand, frame.level_bits);
}

bool ReservoirTracker::fits(const FrameOutline& frame) const noexcept {
    return reservoir_.fits({.bitrate_index = reservoir_.highest_index()}, frame.bits);
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
            const FrameSize size = candidate.choose(frame->size, frame->bits, frame->demand.silent);
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
