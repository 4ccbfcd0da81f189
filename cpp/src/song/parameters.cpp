#include "polymux/song/parameters.hpp"

#include <bit>
#include <initializer_list>

#include "polymux/song/peaks.hpp"

namespace polymux::song {

namespace {

/// FNV-1a, 64 bits (draft-eastlake-fnv).
class Hash {
public:
    void take(std::uint32_t value) noexcept {
        for (int byte = 0; byte < 4; ++byte) {
            state_ = (state_ ^ (value >> (8 * byte) & 0xFFU)) * 0x100000001b3ULL;
        }
    }
    void take(int value) noexcept { take(static_cast<std::uint32_t>(value)); }
    void take(float value) noexcept { take(std::bit_cast<std::uint32_t>(value)); }
    void take(double value) noexcept {
        const auto bits = std::bit_cast<std::uint64_t>(value);
        take(static_cast<std::uint32_t>(bits));
        take(static_cast<std::uint32_t>(bits >> 32U));
    }
    [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

private:
    std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

/// Increase it when the code finds different peaks with the same parameters.
constexpr int code_version = 1;

}  // namespace

std::uint64_t Parameters::hash() const noexcept {
    Hash hash;
    for (const int value : {code_version, key_bits, frequency_bits, sample_rate_hz, hop_samples,
                            bands, slice_frames, usual_frames, baseline_bins, pair_fan,
                            pair_min_frames, pair_max_frames, pair_max_bins, gap_frames}) {
        hash.take(value);
    }
    for (const float value : {lowest_hz, highest_hz, loudest_sample, silence_power, lowest_level,
                              level_range, frequency_unit_hz}) {
        hash.take(value);
    }
    hash.take(max_side_over_middle);
    for (const WindowParameters& window : windows) {
        for (const int value : {window.length_samples, window.stride, window.song_box_frames,
                                window.song_box_bins, window.song_peaks_per_band}) {
            hash.take(value);
        }
    }
    return hash.value();
}

}  // namespace polymux::song
