// The frames of one encoder on their way to the stitcher.
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

/// Frames of one encoder that others may look at. Thread-safe.
class FrameQueue {
public:
    explicit FrameQueue(std::int64_t first) : begin_(first), end_(first) {}

    void publish(CodedFrame frame, std::vector<std::byte> raw);
    /// What the reservoir's arithmetic needs of up to `count` frames from number `first` on.
    [[nodiscard]] std::vector<FrameOutline> outlines(std::int64_t first, std::int64_t count) const;

    /// Takes the oldest frame out, with its bytes as the encoder gave them if they were kept.
    struct Taken {
        CodedFrame frame;
        std::vector<std::byte> raw;
    };
    [[nodiscard]] std::optional<Taken> take();
    void drop_before(std::int64_t frame);

    /// Number of the frame behind the newest one.
    [[nodiscard]] std::int64_t end() const;
    /// Number of the oldest frame that has not been taken.
    [[nodiscard]] std::int64_t begin() const;
    /// Nothing where frame `number` has not been published or is gone.
    [[nodiscard]] std::optional<bool> same_as(std::int64_t number, const CodedFrame& frame,
                                              RateControl rate_control) const;

private:
    mutable std::mutex mutex_;
    std::deque<Taken> frames_;
    std::int64_t begin_;
    std::int64_t end_;
};

}  // namespace polymux::media::mp3
