// Finds the spectral peaks of a Shazam signature.
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
    std::uint16_t bin = 0;  ///< In 64ths of a bin.
};

/// Finds the peaks of consecutive frames.
class SignaturePeakFinder {
public:
    static constexpr std::size_t band_count = 4;
    using Bands = std::array<std::vector<SignaturePeak>, band_count>;

    SignaturePeakFinder();

    /// Adds a frame. May throw `std::bad_alloc`.
    void next(std::span<const float, signature_bins> power);

    /// Peaks of each band, by frame and then by bin.
    [[nodiscard]] const Bands& bands() const noexcept { return bands_; }

private:
    /// The search looks back up to 91 frames. Frames before the first are silent.
    static constexpr std::size_t frames_kept = 128;
    using Frame = std::array<float, signature_bins>;

    [[nodiscard]] const Frame& back(const std::vector<Frame>& frames, std::size_t count) const;
    void spread(std::span<const float, signature_bins> power);
    [[nodiscard]] bool is_peak(std::size_t bin) const;
    void add(std::size_t bin);

    std::size_t written_ = 0;
    std::vector<Frame> power_;
    /// The same frames, with each value raised to the maximum of its neighbors in frequency and
    /// time.
    std::vector<Frame> spread_;
    Bands bands_;
};

}  // namespace polymux::song
