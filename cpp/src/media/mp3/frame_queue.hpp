// Frames of one encoder, waiting for the stitcher.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "media/mp3/coded_frame.hpp"

namespace polymux::media::mp3 {

/// Frames of one encoder that other threads may read. Thread-safe.
class FrameQueue {
public:
    explicit FrameQueue(std::int64_t first) : begin_(first), end_(first) {}

    void publish(CodedFrame frame);
    /// Outlines of up to `count` frames from number `first`, for the reservoir's arithmetic.
    [[nodiscard]] std::vector<FrameOutline> outlines(std::int64_t first, std::int64_t count) const;

    /// Removes the oldest frame.
    [[nodiscard]] std::optional<CodedFrame> take();
    void drop_before(std::int64_t frame);

    /// Number of the frame after the newest one.
    [[nodiscard]] std::int64_t end() const;
    /// Number of the oldest frame that has not been taken.
    [[nodiscard]] std::int64_t begin() const;

private:
    mutable std::mutex mutex_;
    std::deque<CodedFrame> frames_;
    std::int64_t begin_;
    std::int64_t end_;
};

}  // namespace polymux::media::mp3
