// The reservoir that one encoder would have, followed through the frames of many: which frames
// depend on it, and how to bring a fresh encoder to the same level.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "media/mp3/coded_frame.hpp"
#include "media/mp3/reservoir.hpp"

namespace polymux::media::mp3 {

/// At ABR and VBR a frame's content depends on the reservoir's level only where the encoder wants
/// more bits than the largest frame and the reservoir hold together. Such a frame is the true one
/// only if its encoder's level was the true one. Not thread-safe.
class ReservoirTracker {
public:
    explicit ReservoirTracker(const StreamShape& shape);

    /// Whether a frame, if it was coded by an encoder of another level, may be another than the
    /// true one here.
    [[nodiscard]] bool is_doubtful(const FrameOutline& frame) const noexcept;

    /// Goes on behind a frame.
    void advance(const FrameOutline& frame) noexcept;

    /// Number of the next frame.
    [[nodiscard]] std::int64_t position() const noexcept { return position_; }
    [[nodiscard]] int level_bits() const noexcept { return reservoir_.level_bits(); }

    /// A frame before `position`, not before `first`: an encoder that codes everything from it on
    /// with an empty reservoir has the true level at `position`. The nearest one.
    [[nodiscard]] std::optional<std::int64_t> find_restart(std::int64_t first) const;

    /// Of `frames`, which follow: the first doubtful one, and how many there are.
    struct Doubts {
        std::optional<std::int64_t> first;
        int count = 0;
    };
    [[nodiscard]] Doubts doubts(std::span<const FrameOutline> frames) const;

private:
    StreamShape shape_;
    Reservoir reservoir_;
    std::deque<FrameOutline> history_;
    std::int64_t position_ = 0;
};

}  // namespace polymux::media::mp3
