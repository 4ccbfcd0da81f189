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
    explicit StateLog(std::int64_t first_frame) : first_(first_frame) {}

    /// Keeps the state after the next frame.
    void add(const EncoderState& state);
    /// Call if the encoder's search was set. Until there is another one, an earlier value does not
    /// matter: the states since the last search change, too.
    void set_search(std::size_t channel, const GainSearch& search);
    /// The searches after the newest frame.
    [[nodiscard]] GainSearches searches() const;
    /// Returns nothing if the frame before frame `number` is not coded yet.
    [[nodiscard]] std::optional<EncoderState> before(std::int64_t number) const;
    /// Number of the next frame: frames before it are coded.
    [[nodiscard]] std::int64_t end() const;

private:
    mutable std::mutex mutex_;
    std::int64_t first_;
    std::vector<EncoderState> states_;  // After first_, after the frame behind it, and so on.
};

}  // namespace polymux::media::mp3
