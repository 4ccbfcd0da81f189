// Mixes two channels to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/song/parameters.hpp"

namespace polymux::song {

/// The signal that represents both channels. The middle of two opposite channels is silent; then
/// the louder channel is used.
enum class MonoChoice : std::uint8_t { middle, left, right };

/// Power of the possible signals, over all samples so far.
class ChannelPowers {
public:
    explicit ChannelPowers(const Parameters& parameters) noexcept
        : max_side_over_middle_(parameters.max_side_over_middle),
          loudest_(parameters.loudest_sample) {}

    /// Interleaved, two channels.
    void take(std::span<const float> samples);

    /// The middle, unless `Parameters::max_side_over_middle` selects a channel.
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

/// Appends one channel of interleaved pairs. NaN, infinite and far too loud samples become silence.
void append_mono(std::span<const float> samples, MonoChoice choice, const Parameters& parameters,
                 std::vector<float>& mono);

}  // namespace polymux::song
