// Sound from magnitudes without phases.
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

/// Magnitudes of all frames, as the transforms take them: of eight frames, bin after bin.
struct Magnitudes {
    std::size_t columns = 0;
    std::size_t bins = 0;  ///< Of each frame; those above are silent. Bin 0 is ignored.
    std::vector<Pair> values;

    [[nodiscard]] std::size_t batches() const noexcept {
        return (columns + batch_frames - 1) / batch_frames;
    }
    [[nodiscard]] Pair* batch(std::size_t number) noexcept { return values.data() + number * bins; }
    [[nodiscard]] const Pair* batch(std::size_t number) const noexcept {
        return values.data() + number * bins;
    }
};

/// Samples of one channel, `hop_samples` for each column. As the short-time transform is linear,
/// the momentum is put into samples: its last two estimates are all that is remembered. May throw
/// std::bad_alloc.
Result<std::vector<float>> griffin_lim(const Magnitudes& magnitudes, std::uint64_t seed,
                                       const Parameters& parameters,
                                       const std::function<void(double)>& on_progress,
                                       const CancelToken& token);

}  // namespace polymux::spectrogram
