// Frames of one encoder, waiting for the stitcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "media/mp3/coded_frame.hpp"
#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Frames of one encoder that other threads may read. Thread-safe.
class FrameQueue {
public:
    explicit FrameQueue(std::int64_t first) : begin_(first), end_(first) {}

    void publish(CodedFrame frame, std::vector<std::byte> raw);
    /// Outlines of up to `count` frames from number `first`, for the reservoir's arithmetic.
    [[nodiscard]] std::vector<FrameOutline> outlines(std::int64_t first, std::int64_t count) const;

    /// A removed frame, with the encoder's bytes if they were kept.
    struct Taken {
        CodedFrame frame;
        std::vector<std::byte> raw;
    };
    [[nodiscard]] std::optional<Taken> take();
    void drop_before(std::int64_t frame);

    /// Number of the frame after the newest one.
    [[nodiscard]] std::int64_t end() const;
    /// Number of the oldest frame that has not been taken.
    [[nodiscard]] std::int64_t begin() const;
    /// Returns nothing if frame `number` is not published yet or already removed.
    [[nodiscard]] std::optional<bool> same_as(std::int64_t number, const CodedFrame& frame,
                                              RateControl rate_control) const;

private:
    mutable std::mutex mutex_;
    std::deque<Taken> frames_;
    std::int64_t begin_;
    std::int64_t end_;
};

}  // namespace polymux::media::mp3
