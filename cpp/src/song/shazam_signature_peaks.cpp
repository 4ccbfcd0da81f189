#include "song/shazam_signature_peaks.hpp"

#include <algorithm>
#include <cmath>

namespace polymux::song {

namespace {

constexpr float min_peak = 1.0F / 64;
constexpr std::size_t peak_frame = 46;  // This and all below: frames before the next.
constexpr std::size_t spread_frame = 49;
constexpr std::size_t first_bin = 10;
constexpr std::size_t end_bin = 1015;
constexpr std::array<std::size_t, 3> spread_over{1, 3, 6};
constexpr std::array<std::ptrdiff_t, 8> other_bins{-10, -7, -4, -3, 1, 2, 5, 8};
constexpr std::array<std::size_t, 14> other_frames{53, 45, 91, 84, 77, 70, 63,
                                                   56, 42, 35, 28, 21, 14, 7};

struct Band {
    unsigned first_hz;
    unsigned end_hz;
};
constexpr std::array<Band, SignaturePeakFinder::band_count> bands_hz{
    {{250, 520}, {520, 1450}, {1450, 3500}, {3500, 5501}}};

float magnitude_of(float power) noexcept {
    return std::max(std::log(power), min_peak) * 1477.3F + 6144;
}

}  // namespace

SignaturePeakFinder::SignaturePeakFinder() : power_(frames_kept), spread_(frames_kept) {}

const SignaturePeakFinder::Frame& SignaturePeakFinder::back(const std::vector<Frame>& frames,
                                                            std::size_t count) const {
    return frames[(written_ - count) % frames_kept];
}

void SignaturePeakFinder::next(std::span<const float, signature_bins> power) {
    std::copy(power.begin(), power.end(), power_[written_ % frames_kept].begin());
    spread(power);
    ++written_;
    if (written_ < peak_frame) return;
    for (std::size_t bin = first_bin; bin < end_bin; ++bin) {
        if (is_peak(bin)) add(bin);
    }
}

void SignaturePeakFinder::spread(std::span<const float, signature_bins> power) {
    Frame& grown = spread_[written_ % frames_kept];
    for (std::size_t bin = 0; bin < signature_bins - 3; ++bin) {
        grown[bin] = std::max({power[bin], power[bin + 1], power[bin + 2]});
    }
    std::copy(power.end() - 3, power.end(), grown.end() - 3);
    for (const std::size_t count : spread_over) {
        Frame& earlier = spread_[(written_ - count) % frames_kept];
        for (std::size_t bin = 0; bin < signature_bins; ++bin) {
            earlier[bin] = std::max(earlier[bin], grown[bin]);
        }
    }
}

bool SignaturePeakFinder::is_peak(std::size_t bin) const {
    const float power = back(power_, peak_frame)[bin];
    const Frame& around = back(spread_, spread_frame);
    if (power < min_peak || power < around[bin - 1]) return false;
    const auto own = around.begin() + static_cast<std::ptrdiff_t>(bin);
    for (const std::ptrdiff_t other : other_bins) {
        if (power <= own[other]) return false;
    }
    return std::ranges::all_of(
        other_frames, [&](std::size_t count) { return power > back(spread_, count)[bin - 1]; });
}

void SignaturePeakFinder::add(std::size_t bin) {
    const Frame& frame = back(power_, peak_frame);
    const float magnitude = magnitude_of(frame[bin]);
    const float before = magnitude_of(frame[bin - 1]);
    const float after = magnitude_of(frame[bin + 1]);
    // The top of a parabola through the three values; a straight line has no top.
    const float bend = magnitude * 2 - before - after;
    const int shift = bend > 0 ? static_cast<int>((after - before) * 32 / bend) : 0;
    const auto fine_bin = static_cast<std::uint16_t>(static_cast<int>(bin) * 64 + shift);
    const unsigned hz = fine_bin * 125U / 1024;
    for (std::size_t band = 0; band < band_count; ++band) {
        if (hz < bands_hz[band].first_hz || hz >= bands_hz[band].end_hz) continue;
        bands_[band].push_back({.frame = static_cast<std::uint32_t>(written_ - peak_frame),
                                .magnitude = static_cast<std::uint16_t>(magnitude),
                                .bin = fine_bin});
    }
}

}  // namespace polymux::song
