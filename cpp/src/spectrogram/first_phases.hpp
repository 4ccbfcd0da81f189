// The phases that the search for better ones begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/spectrogram/parameters.hpp"
#include "spectrogram/griffin_lim.hpp"

namespace polymux::spectrogram {

/// What sounds goes on from frame to frame at its own frequency, and so do its phases: each peak
/// among the magnitudes turns by its frequency, and the bins around it go along. G. Beauregard,
/// M. Harish and L. Wyse, "Single Pass Spectrogram Inversion", DSP 2015.
///
/// Phases are those at the middle of a frame, in turns of a circle.
class FirstPhases {
public:
    FirstPhases(const Magnitudes& magnitudes, const Parameters& parameters);

    /// Those before the first frame: of each bin another one, by the seed.
    [[nodiscard]] std::vector<float> before(std::uint64_t seed) const;

    /// From the phases of the frame before to those of `frame`.
    void advance(std::size_t frame, std::vector<float>& turns) const;

private:
    /// A peak with the bins up to the valleys on both sides.
    struct Hill {
        std::size_t peak;
        std::size_t end;
    };

    [[nodiscard]] float magnitude(std::size_t frame, std::size_t bin) const noexcept;
    [[nodiscard]] Hill hill_from(std::size_t frame, std::size_t bin) const noexcept;
    [[nodiscard]] float turn_of(std::size_t frame, std::size_t peak) const noexcept;

    const Magnitudes& magnitudes_;
    float turns_of_a_bin_;  ///< From frame to frame, of a tone at bin 1.
};

}  // namespace polymux::spectrogram
