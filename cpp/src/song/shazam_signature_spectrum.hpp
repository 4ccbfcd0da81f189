// The spectrum of a Shazam signature, with exactly the reference's rounding.
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

/// The power of each bin, for consecutive frames.
///
/// Peaks depend on numbers truncated to integers, so a difference in the last place of a float
/// changes bytes. Window and transform therefore round like the reference, which uses the Rust
/// crate chfft: packed, radix 4, the first quarter's factors in float32 and the others rotated from
/// them. pocketfft's order of operations differs, and changes one peak in a thousand.
class SignatureSpectrum {
public:
    SignatureSpectrum();

    /// Processes the frame that ends with these samples.
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
    /// Factors for all fractions of a turn. An n-point transform uses every (size / n)-th one.
    std::array<Complex, signature_window_samples> turns_;
    /// Share of the odd samples' part that moves, for each bin of the lower half.
    std::array<Complex, half / 2> shares_;
    std::array<Complex, half> values_;
};

}  // namespace polymux::song
