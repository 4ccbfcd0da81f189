// The points that stand out of a spectrum, as a Shazam signature has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "song/shazam_signature_spectrum.hpp"

namespace polymux::song {

struct SignaturePeak {
    std::uint32_t frame = 0;
    std::uint16_t magnitude = 0;
    std::uint16_t bin = 0;  ///< In 64ths.
};

/// Finds the peaks of frames that come one after the other.
class SignaturePeakFinder {
public:
    static constexpr std::size_t band_count = 4;
    using Bands = std::array<std::vector<SignaturePeak>, band_count>;

    SignaturePeakFinder();

    /// May throw `std::bad_alloc`.
    void next(std::span<const float, signature_bins> power);

    /// Each band's peaks, by frame and then by bin.
    [[nodiscard]] const Bands& bands() const noexcept { return bands_; }

private:
    /// The earliest frame that is looked at is 91 back. What lies before the first one is silence.
    static constexpr std::size_t frames_kept = 128;
    using Frame = std::array<float, signature_bins>;

    [[nodiscard]] const Frame& back(const std::vector<Frame>& frames, std::size_t count) const;
    void spread(std::span<const float, signature_bins> power);
    [[nodiscard]] bool is_peak(std::size_t bin) const;
    void add(std::size_t bin);

    std::size_t written_ = 0;
    std::vector<Frame> power_;
    /// Of the same frames, in which each value has grown over its neighbours in frequency and time.
    std::vector<Frame> spread_;
    Bands bands_;
};

}  // namespace polymux::song
