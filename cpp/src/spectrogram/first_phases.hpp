// The initial phases for the phase search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/spectrogram/parameters.hpp"
#include "spectrogram/griffin_lim.hpp"

namespace polymux::spectrogram {

/// A tone continues from frame to frame at its frequency, and so do its phases. Each peak in the
/// magnitudes rotates by its frequency, together with the bins around it. G. Beauregard, M. Harish
/// and L. Wyse, "Single Pass Spectrogram Inversion", DSP 2015.
///
/// Phases refer to the middle of a frame, in turns of a circle.
class FirstPhases {
public:
    FirstPhases(const Magnitudes& magnitudes, const Parameters& parameters);

    /// The phases before the first frame: a different one for each bin, by the seed.
    [[nodiscard]] std::vector<float> before(std::uint64_t seed) const;

    /// Advances the phases of the previous frame to those of `frame`.
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
    float turns_of_a_bin_;  ///< Between frames, for a tone at bin 1.
};

}  // namespace polymux::spectrogram
