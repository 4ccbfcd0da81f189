// The spectrum that a Shazam signature is made of, with the reference's very roundings.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>

namespace polymux::song {

inline constexpr std::size_t signature_window_samples = 2048;
inline constexpr std::size_t signature_hop_samples = 128;
inline constexpr std::size_t signature_bins = signature_window_samples / 2 + 1;

/// The power of each bin, one frame after the other.
///
/// Peaks are told by numbers cut to integers, so that a difference in the last place of a float
/// changes bytes. Window and transform therefore round where the reference does, which has the Rust
/// crate chfft transform: packed, by radix 4, with factors of the first quarter in float32 and
/// those of the others turned from them. pocketfft's order differs, and with it one peak in a
/// thousand.
class SignatureSpectrum {
public:
    SignatureSpectrum();

    /// The frame that ends with these samples.
    void next(std::span<const std::int16_t, signature_hop_samples> samples,
              std::span<float, signature_bins> power) noexcept;

private:
    static constexpr std::size_t half = signature_window_samples / 2;
    using Complex = std::complex<float>;

    void transform() noexcept;
    void combine(std::size_t width) noexcept;

    std::array<float, signature_window_samples> window_;
    std::array<float, signature_window_samples> heard_{};
    std::array<std::uint16_t, half> order_;
    /// Of all fractions of a turn: the n-th part is found at multiples of their number over n.
    std::array<Complex, signature_window_samples> turns_;
    /// How much of the odd samples' part goes over, for each bin of the lower half.
    std::array<Complex, half / 2> shares_;
    std::array<Complex, half> values_;
};

}  // namespace polymux::song
