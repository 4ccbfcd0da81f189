// The states of one encoder between its frames, for comparison with another encoder.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "polymux/media/mp3/encoder.hpp"

namespace polymux::media::mp3 {

/// Thread-safe.
class StateLog {
public:
    explicit StateLog(std::int64_t first_frame) : first_(first_frame), end_(first_frame) {}

    /// Counts a coded frame and keeps the state after it. After a frame without a state, no more
    /// states are kept.
    void add(const std::optional<StateHash>& state);
    /// Returns nothing if frame `number` is not coded yet, or its state was not kept.
    [[nodiscard]] std::optional<StateHash> before(std::int64_t number) const;
    /// Number of the next frame: frames before it are coded.
    [[nodiscard]] std::int64_t end() const;

private:
    mutable std::mutex mutex_;
    std::int64_t first_;
    std::int64_t end_;
    std::vector<StateHash> states_;  // After first_, after the frame behind it, and so on.
};

}  // namespace polymux::media::mp3
