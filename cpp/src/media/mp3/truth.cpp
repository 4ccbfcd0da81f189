#include "media/mp3/truth.hpp"

#include <algorithm>

namespace polymux::media::mp3 {

namespace {

// Levels repeat about every 104 bytes, the difference of two bitrates' frames, so that some 150
// frames hold a restart, and 700 nearly always.
constexpr std::size_t history_frames = 700;

// Frames that LAME had to make smaller come out between 86 and 100 % of what is available, nearly
// all of them above this share.
constexpr double doubtful_share = 0.96;

void place(Reservoir& reservoir, const FrameOutline& frame) noexcept {
    reservoir.place(reservoir.choose(frame.size, frame.bits, frame.silent), frame.bits);
}

}  // namespace

Truth::Truth(const StreamShape& shape) : reservoir_(shape), rate_control_(shape.rate_control) {}

bool Truth::is_doubtful(const FrameOutline& frame) const noexcept {
    if (rate_control_ == RateControl::cbr) return false;
    const int level = reservoir_.level_bits();
    if (frame.level_bits == level) return false;
    const int available = reservoir_.available_bits({.bitrate_index = reservoir_.highest_index()},
                                                    std::min(level, frame.level_bits));
    return frame.bits > doubtful_share * available;
}

void Truth::pass(const FrameOutline& frame) noexcept {
    place(reservoir_, frame);
    ++position_;
    if (rate_control_ == RateControl::cbr) return;
    history_.push_back(frame);
    if (history_.size() > history_frames) history_.pop_front();
}

std::optional<std::int64_t> Truth::restart(std::int64_t first) const {
    const auto known = static_cast<std::int64_t>(history_.size());
    const std::int64_t farthest = std::min(known, position_ - first);
    // Some frames behind the restart show whether it went as expected.
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

Truth::Doubts Truth::doubts(std::span<const FrameOutline> frames) const {
    Truth ahead = *this;
    Doubts found;
    for (const FrameOutline& frame : frames) {
        if (ahead.is_doubtful(frame)) {
            if (!found.first) found.first = ahead.position();
            ++found.count;
        }
        ahead.pass(frame);
    }
    return found;
}

}  // namespace polymux::media::mp3
