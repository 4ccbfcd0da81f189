// Computes audio from magnitudes without phases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/result.hpp"
#include "polymux/spectrogram/parameters.hpp"
#include "spectrogram/frame_transform.hpp"

namespace polymux::spectrogram {

/// Magnitudes of all frames in the order of the transforms: for each eight frames, bin after bin.
struct Magnitudes {
    std::size_t columns = 0;
    std::size_t bins = 0;  ///< Bins of each frame; higher ones are silent. Bin 0 is ignored.
    std::vector<Pair> values;

    [[nodiscard]] std::size_t batches() const noexcept {
        return (columns + batch_frames - 1) / batch_frames;
    }
    [[nodiscard]] Pair* batch(std::size_t number) noexcept { return values.data() + number * bins; }
    [[nodiscard]] const Pair* batch(std::size_t number) const noexcept {
        return values.data() + number * bins;
    }
};

/// Returns samples of one channel, `hop_samples` for each column. The short-time transform is
/// linear, so momentum is applied to samples; only the last two estimates are stored. May throw
/// std::bad_alloc.
Result<std::vector<float>> griffin_lim(const Magnitudes& magnitudes, std::uint64_t seed,
                                       const Parameters& parameters,
                                       const std::function<void(double)>& on_progress,
                                       const CancelToken& token);

}  // namespace polymux::spectrogram
