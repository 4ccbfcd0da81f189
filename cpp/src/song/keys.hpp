// A pair's key: 10 bits of the first peak's bin, 8 of the difference of bins, 7 of half the frames.
#pragma once

#include <cstdint>

#include "polymux/song/peaks.hpp"

namespace polymux::song {

inline constexpr int units_per_bin = 4;  ///< For the first window.
inline constexpr int half_frames_bits = 7;
inline constexpr int difference_bits = 8;
inline constexpr int difference_zero = 128;

[[nodiscard]] constexpr int bin_of(std::uint32_t frequency) noexcept {
    return (static_cast<int>(frequency) + units_per_bin / 2) / units_per_bin;
}

/// Arguments beyond their bits give an arbitrary key; no memory access depends on it.
[[nodiscard]] constexpr std::uint32_t key_of(int bin, int difference, int half_frames) noexcept {
    const auto bits = [](int value, int count) {
        return static_cast<std::uint32_t>(value) & ((1U << count) - 1U);
    };
    return bits(bin, key_bits - difference_bits - half_frames_bits)
               << (difference_bits + half_frames_bits) |
           bits(difference + difference_zero, difference_bits) << half_frames_bits |
           bits(half_frames, half_frames_bits);
}

}  // namespace polymux::song
