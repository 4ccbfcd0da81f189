// Tracks the reservoir of a single encoder across the frames of many: which frames depend on its
// level, and how to bring a new encoder to the same level.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "media/mp3/coded_frame.hpp"
#include "media/mp3/reservoir.hpp"

namespace polymux::media::mp3 {

/// At ABR and VBR, a frame's content depends on the reservoir's level only if it needs more bits
/// than LAME grants at every level. Such a frame is correct only if its encoder had the correct
/// level. Not thread-safe.
class ReservoirTracker {
public:
    /// `limits`: an unused encoder of the same settings, which knows its limits. At a constant
    /// bitrate it may be null.
    ReservoirTracker(const StreamShape& shape, std::shared_ptr<Encoder> limits);

    /// Whether a frame may differ from the correct one if its encoder had another level.
    [[nodiscard]] bool is_doubtful(const FrameOutline& frame) const;

    /// Whether the next frame can have as many bits as this one.
    [[nodiscard]] bool fits(const FrameOutline& frame) const noexcept;

    /// Advances past a frame.
    void advance(const FrameOutline& frame) noexcept;

    /// Number of the next frame.
    [[nodiscard]] std::int64_t position() const noexcept { return position_; }
    [[nodiscard]] int level_bits() const noexcept { return reservoir_.level_bits(); }

    /// Returns the nearest frame before `position`, but not before `first`, at which a new encoder
    /// can start with an empty reservoir and have the correct level at `position`.
    [[nodiscard]] std::optional<std::int64_t> find_restart(std::int64_t first) const;

    /// The first doubtful frame of the following `frames`, and how many there are.
    struct Doubts {
        std::optional<std::int64_t> first;
        int count = 0;
    };
    [[nodiscard]] Doubts doubts(std::span<const FrameOutline> frames) const;

private:
    StreamShape shape_;
    std::shared_ptr<Encoder> limits_;
    Reservoir reservoir_;
    std::deque<FrameOutline> history_;
    std::int64_t position_ = 0;
};

}  // namespace polymux::media::mp3
