#include "spectrogram/first_phases.hpp"

#include <algorithm>
#include <cmath>

namespace polymux::spectrogram {

namespace {

/// A number from the seed, independent of the calling thread: SplitMix64 (G. Steele et al., OOPSLA
/// 2014).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) noexcept {
    std::uint64_t value = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
    return value ^ (value >> 31);
}

}  // namespace

FirstPhases::FirstPhases(const Magnitudes& magnitudes, const Parameters& parameters)
    : magnitudes_(magnitudes),
      turns_of_a_bin_(static_cast<float>(parameters.hop_samples) /
                      static_cast<float>(parameters.transform_samples)) {}

std::vector<float> FirstPhases::before(std::uint64_t seed) const {
    std::vector<float> turns(magnitudes_.bins);
    for (std::size_t bin = 0; bin < turns.size(); ++bin) {
        turns[bin] = static_cast<float>(mixed(seed, bin) >> 40) * 0x1p-24F;
    }
    return turns;
}

void FirstPhases::advance(std::size_t frame, std::vector<float>& turns) const {
    for (std::size_t bin = 1; bin < turns.size();) {
        const Hill hill = hill_from(frame, bin);
        const float turned = turns[hill.peak] + turn_of(frame, hill.peak);
        const float phase = turned - std::floor(turned);
        std::fill(turns.begin() + static_cast<std::ptrdiff_t>(bin),
                  turns.begin() + static_cast<std::ptrdiff_t>(hill.end), phase);
        bin = hill.end;
    }
}

float FirstPhases::magnitude(std::size_t frame, std::size_t bin) const noexcept {
    const Pair& of_eight = magnitudes_.batch(frame / batch_frames)[bin];
    const std::size_t lane = frame % batch_frames;
    return lane < lane_count ? of_eight.first[lane] : of_eight.second[lane - lane_count];
}

FirstPhases::Hill FirstPhases::hill_from(std::size_t frame, std::size_t bin) const noexcept {
    const std::size_t bins = magnitudes_.bins;
    while (bin + 1 < bins && magnitude(frame, bin + 1) >= magnitude(frame, bin)) ++bin;
    const std::size_t peak = bin;
    while (bin + 1 < bins && magnitude(frame, bin + 1) < magnitude(frame, bin)) ++bin;
    return {.peak = peak, .end = bin + 1};
}

/// The frequency of a tone between bins is the top of the parabola through the peak and its
/// neighbors.
float FirstPhases::turn_of(std::size_t frame, std::size_t peak) const noexcept {
    auto place = static_cast<float>(peak);
    if (peak > 1 && peak + 1 < magnitudes_.bins) {
        const float left = magnitude(frame, peak - 1);
        const float right = magnitude(frame, peak + 1);
        const float bend = left - 2 * magnitude(frame, peak) + right;
        if (bend < 0) place += 0.5F * (left - right) / bend;
    }
    return place * turns_of_a_bin_;
}

}  // namespace polymux::spectrogram
