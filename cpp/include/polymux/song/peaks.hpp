// Peaks of a spectrogram as stored, and the keys made of pairs of peaks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polymux/song/parameters.hpp"

namespace polymux::song {

/// A peak in 32 bits: 20 for its frame, 12 for its frequency in units of `frequency_unit_hz`. The
/// unit is the same for both windows (a quarter bin of the first, half a bin of the second). Order
/// by value is order by time.
using PackedPeak = std::uint32_t;

inline constexpr int frequency_bits = 12;
inline constexpr std::uint32_t frequency_mask = (1U << frequency_bits) - 1;
/// A longer recording becomes several tracks: 4.6 hours.
inline constexpr std::uint32_t max_track_frames = (1U << (32 - frequency_bits)) - 1;
inline constexpr float frequency_unit_hz = 8'000.0F / 8'192.0F;

[[nodiscard]] constexpr PackedPeak pack(std::uint32_t frame, std::uint32_t frequency) noexcept {
    return frame << frequency_bits | (frequency & frequency_mask);
}
[[nodiscard]] constexpr std::uint32_t frame_of(PackedPeak peak) noexcept {
    return peak >> frequency_bits;
}
[[nodiscard]] constexpr std::uint32_t frequency_of(PackedPeak peak) noexcept {
    return peak & frequency_mask;
}

/// Fingerprint of up to 4.6 hours of audio: the sorted peaks of both windows.
struct Fingerprint {
    std::uint32_t frames = 0;
    std::vector<PackedPeak> peaks[2];
};

/// A key of the index and the frame of the pair's first peak.
struct KeyedFrame {
    std::uint32_t key = 0;  ///< `key_bits` bits.
    std::uint32_t frame = 0;
};

/// Appends the keys of a song's pairs. `peaks` are the sorted peaks of the first window.
void append_pairs(std::span<const PackedPeak> peaks, const Parameters& parameters,
                  std::vector<KeyedFrame>& pairs);

}  // namespace polymux::song
