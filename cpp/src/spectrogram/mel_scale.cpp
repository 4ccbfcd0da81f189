#include "spectrogram/mel_scale.hpp"

#include <algorithm>
#include <cmath>

namespace polymux::spectrogram {

namespace {

// HTK's formula: S. Young et al., "The HTK Book", section 5.4.
double mel_of(double hz) {
    return 2595.0 * std::log10(1.0 + hz / 700.0);
}

double hz_of(double mel) {
    return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
}

}  // namespace

MelScale::MelScale(const Parameters& parameters) {
    const auto bands = static_cast<std::size_t>(parameters.mel_bands);
    const double lowest = mel_of(parameters.lowest_hz);
    const double step = (mel_of(parameters.highest_hz) - lowest) / static_cast<double>(bands + 1);
    const double bin_hz =
        static_cast<double>(parameters.sample_rate_hz) / parameters.transform_samples;
    const auto end_bin = static_cast<std::size_t>(parameters.transform_samples) / 2 + 1;
    auto bin = static_cast<std::size_t>(std::floor(parameters.lowest_hz / bin_hz)) + 1;
    falling_.resize(bin);
    rising_.resize(bin);
    for (std::size_t piece = 0; piece <= bands; ++piece) {
        const double from_hz = hz_of(lowest + step * static_cast<double>(piece));
        const double to_hz = hz_of(lowest + step * static_cast<double>(piece + 1));
        const std::size_t first = bin;
        for (; bin < end_bin && static_cast<double>(bin) * bin_hz < to_hz; ++bin) {
            const double along =
                std::max(0.0, (static_cast<double>(bin) * bin_hz - from_hz) / (to_hz - from_hz));
            falling_.push_back(piece == 0 ? 0.0 : 1.0 - along);
            rising_.push_back(piece == bands ? 0.0 : along);
        }
        pieces_.push_back({.first_bin = first, .end_bin = bin});
    }
}

void MelScale::apply(std::span<const Pair> magnitudes, std::span<Pair> mel) const noexcept {
    Pair rest{};  // The sum of a band whose rising side was on the previous piece.
    for (std::size_t number = 0; number < pieces_.size(); ++number) {
        Pair below = rest;
        Pair above{};
        for (std::size_t bin = pieces_[number].first_bin; bin < pieces_[number].end_bin; ++bin) {
            const auto falling = static_cast<float>(falling_[bin]);
            const auto rising = static_cast<float>(rising_[bin]);
            below.first += falling * magnitudes[bin].first;
            below.second += falling * magnitudes[bin].second;
            above.first += rising * magnitudes[bin].first;
            above.second += rising * magnitudes[bin].second;
        }
        if (number > 0) mel[number - 1] = below;
        rest = above;
    }
}

}  // namespace polymux::spectrogram
