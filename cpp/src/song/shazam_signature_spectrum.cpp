#include "song/shazam_signature_spectrum.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

namespace polymux::song {

namespace {

constexpr int significant_digits = 5;
constexpr float min_power = 1e-10F;
constexpr float full_scale = 1 << 17;

// The reference prints its window as a table: each value in float32, then truncated to five digits.
float printed(float value) {
    std::array<char, 32> text{};
    const auto written = std::to_chars(text.data(), text.data() + text.size(), double{value},
                                       std::chars_format::general, significant_digits);
    float read = 0;
    std::from_chars(text.data(), written.ptr, read);
    return read;
}

// std::complex multiplies with more operations, to handle NaN results.
std::complex<float> times(std::complex<float> left, std::complex<float> right) noexcept {
    return {left.real() * right.real() - left.imag() * right.imag(),
            left.real() * right.imag() + left.imag() * right.real()};
}

// Multiplies by -i.
std::complex<float> quarter_turn(std::complex<float> value) noexcept {
    return {value.imag(), -value.real()};
}

float power_of(std::complex<float> value) noexcept {
    const float square = value.real() * value.real() + value.imag() * value.imag();
    return std::max(square / full_scale, min_power);
}

}  // namespace

SignatureSpectrum::SignatureSpectrum() {
    // A Hann window of 2050 points without its ends, which are zero.
    constexpr double step = 2 * std::numbers::pi / (signature_window_samples + 1);
    for (std::size_t i = 0; i < window_.size(); ++i) {
        const double angle = step * static_cast<double>(i + 1);
        window_[i] = printed(static_cast<float>(0.5 - 0.5 * std::cos(angle)));
    }
    // The first quarter's angles in float32, the other quarters rotated from it.
    const std::size_t quarter = turns_.size() / 4;
    for (std::size_t i = 0; i < quarter; ++i) {
        const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(i) /
                            static_cast<float>(turns_.size());
        turns_[i] = {std::cos(angle), -std::sin(angle)};
    }
    for (std::size_t i = quarter; i < turns_.size(); ++i) {
        turns_[i] = quarter_turn(turns_[i - quarter]);
    }
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        shares_[i] = {(1 - turns_[i].imag()) * 0.5F, turns_[i].real() * 0.5F};
    }
    for (std::size_t i = 0; i < half; ++i) {
        std::size_t reversed = 0;
        for (std::size_t width = 1; width < half; width *= 4) {
            reversed = reversed * 4 + i / width % 4;
        }
        order_[i] = static_cast<std::uint16_t>(reversed);
    }
}

void SignatureSpectrum::next(std::span<const std::int16_t, signature_hop_samples> samples,
                             std::span<float, signature_bins> power) noexcept {
    std::copy(heard_.begin() + signature_hop_samples, heard_.end(), heard_.begin());
    std::copy(samples.begin(), samples.end(), heard_.end() - signature_hop_samples);
    transform();
    // Even samples were real parts, odd ones imaginary parts. The odd samples' part moves from one
    // half of the spectrum to the mirrored half. The ends and the middle need no factor.
    const Complex sums = values_.front();
    power.front() = power_of({sums.real() + sums.imag(), 0});
    power.back() = power_of({sums.real() - sums.imag(), 0});
    power[half / 2] = power_of(values_[half / 2]);
    for (std::size_t bin = 1; bin < half / 2; ++bin) {
        const Complex low = values_[bin];
        const Complex high = values_[half - bin];
        const Complex moved = times(shares_[bin], low - std::conj(high));
        power[bin] = power_of(low - moved);
        power[half - bin] = power_of(high + std::conj(moved));
    }
}

void SignatureSpectrum::transform() noexcept {
    for (std::size_t i = 0; i < half; ++i) {
        const std::size_t from = std::size_t{2} * order_[i];
        values_[i] = {heard_[from] * window_[from], heard_[from + 1] * window_[from + 1]};
    }
    for (std::size_t width = 4; width <= half; width *= 4) combine(width);
}

void SignatureSpectrum::combine(std::size_t width) noexcept {
    const std::size_t quarter = width / 4;
    const std::size_t stride = turns_.size() / width;
    for (std::size_t first = 0; first < half; first += width) {
        for (std::size_t i = first; i < first + quarter; ++i) {
            const std::size_t turn = (i - first) * stride;
            const Complex a = values_[i];
            const Complex b = times(values_[i + quarter], turns_[turn]);
            const Complex c = times(values_[i + 2 * quarter], turns_[2 * turn]);
            const Complex d = times(values_[i + 3 * quarter], turns_[3 * turn]);
            const Complex difference = quarter_turn(b - d);
            values_[i] = (a + c) + (b + d);
            values_[i + quarter] = (a - c) + difference;
            values_[i + 2 * quarter] = (a + c) - (b + d);
            values_[i + 3 * quarter] = (a - c) - difference;
        }
    }
}

}  // namespace polymux::song
