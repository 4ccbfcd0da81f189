// One channel out of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace polymux::song {

/// Which signal stands for both channels. The middle of two channels that are opposite to each
/// other is silence: then the louder one is taken.
enum class MonoChoice : std::uint8_t { middle, left, right };

/// Power of what could be taken, over all samples so far.
class ChannelPowers {
public:
    /// Interleaved, two channels.
    void take(std::span<const float> samples);

    /// The middle, unless it lies more than 20 dB below the difference of the channels.
    [[nodiscard]] MonoChoice choice() const noexcept;

private:
    void take_block(std::span<const float> samples);

    double middle_ = 0;
    double side_ = 0;
    double left_ = 0;
    double right_ = 0;
};

/// Appends one channel of interleaved pairs; silence for samples that are no numbers, or far too
/// loud for any.
void append_mono(std::span<const float> samples, MonoChoice choice, std::vector<float>& mono);

}  // namespace polymux::song
