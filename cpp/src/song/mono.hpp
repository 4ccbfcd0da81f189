// One channel out of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/song/parameters.hpp"

namespace polymux::song {

/// Which signal stands for both channels. The middle of two channels that are opposite to each
/// other is silence: then the louder one is taken.
enum class MonoChoice : std::uint8_t { middle, left, right };

/// Power of what could be taken, over all samples so far.
class ChannelPowers {
public:
    explicit ChannelPowers(const Parameters& parameters) noexcept
        : max_side_over_middle_(parameters.max_side_over_middle),
          loudest_(parameters.loudest_sample) {}

    /// Interleaved, two channels.
    void take(std::span<const float> samples);

    /// The middle, unless `Parameters::max_side_over_middle` says otherwise.
    [[nodiscard]] MonoChoice choice() const noexcept;

private:
    void take_block(std::span<const float> samples);

    double max_side_over_middle_;
    float loudest_;
    double middle_ = 0;
    double side_ = 0;
    double left_ = 0;
    double right_ = 0;
};

/// Appends one channel of interleaved pairs; silence for samples that are no numbers, or far too
/// loud for any.
void append_mono(std::span<const float> samples, MonoChoice choice, const Parameters& parameters,
                 std::vector<float>& mono);

}  // namespace polymux::song
