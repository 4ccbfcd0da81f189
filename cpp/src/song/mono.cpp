#include "song/mono.hpp"

#include <cmath>

namespace polymux::song {

namespace {

constexpr std::size_t block_samples = 4'096;

/// Float files may contain NaN, infinity, or values whose square overflows.
float sound(float sample, float loudest) noexcept {
    return std::abs(sample) <= loudest ? sample : 0.0F;
}

}  // namespace

void ChannelPowers::take(std::span<const float> samples) {
    // float32 sums are precise enough over a block.
    while (samples.size() > block_samples) {
        take_block(samples.first(block_samples));
        samples = samples.subspan(block_samples);
    }
    take_block(samples);
}

void ChannelPowers::take_block(std::span<const float> samples) {
    float left_power = 0;
    float right_power = 0;
    float product = 0;
    for (std::size_t index = 0; index + 1 < samples.size(); index += 2) {
        const float left = sound(samples[index], loudest_);
        const float right = sound(samples[index + 1], loudest_);
        left_power += left * left;
        right_power += right * right;
        product += left * right;
    }
    left_ += left_power;
    right_ += right_power;
    middle_ += (static_cast<double>(left_power) + right_power + 2.0 * product) / 4.0;
    side_ += (static_cast<double>(left_power) + right_power - 2.0 * product) / 4.0;
}

MonoChoice ChannelPowers::choice() const noexcept {
    if (side_ <= middle_ * max_side_over_middle_) {
        return MonoChoice::middle;
    }
    return left_ >= right_ ? MonoChoice::left : MonoChoice::right;
}

void append_mono(std::span<const float> samples, MonoChoice choice, const Parameters& parameters,
                 std::vector<float>& mono) {
    const float loudest = parameters.loudest_sample;
    const std::size_t frames = samples.size() / 2;
    const std::size_t before = mono.size();
    mono.resize(before + frames);
    float* to = mono.data() + before;
    if (choice == MonoChoice::middle) {
        for (std::size_t index = 0; index < frames; ++index) {
            to[index] = 0.5F * (sound(samples[2 * index], loudest) +
                                sound(samples[2 * index + 1], loudest));
        }
        return;
    }
    const std::size_t channel = choice == MonoChoice::right ? 1 : 0;
    for (std::size_t index = 0; index < frames; ++index) {
        to[index] = sound(samples[2 * index + channel], loudest);
    }
}

}  // namespace polymux::song
