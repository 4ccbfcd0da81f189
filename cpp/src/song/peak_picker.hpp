// Selects the most prominent peaks of each second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/song/peaks.hpp"
#include "song/peak_finder.hpp"
#include "song/spectrogram.hpp"

namespace polymux::song {

/// A selected peak, in frames of `Parameters::hop_samples` and in units of `frequency_unit_hz`,
/// both fractional.
struct PickedPeak {
    float frame = 0;
    float frequency = 0;
    float prominence = 0;  ///< log2 of the power over the usual power at this frequency.
};

struct PickerShape {
    int box_frames = 0;  ///< In rows of the spectrogram.
    int box_bins = 0;
    int bands = 1;
    int peaks_per_band = 0;  ///< For each `Parameters::slice_frames`.
    /// Rows of the mean; 0: all of them.
    std::uint64_t chunk_rows = 0;
    int stride = 1;
};

/// Prominence is the level minus the mean of its bin, smoothed over neighboring bins. A constant
/// tone therefore does not displace changing ones.
class PeakPicker {
public:
    PeakPicker(const Parameters& parameters, const SpectrogramShape& spectrogram,
               const PickerShape& shape);

    void take(std::span<const float> row);
    void finish();

    /// Grows slice by slice. The caller empties it.
    [[nodiscard]] std::vector<PickedPeak>& picked() noexcept { return picked_; }
    [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

private:
    struct Baseline {
        std::vector<float> sums;  // Over the rows of a minute, which is precise enough.
        std::uint64_t rows = 0;
    };

    void end_chunk(std::uint64_t end_row);
    void pick(std::span<const float> baseline, std::span<const FoundPeak> peaks);
    void pick_slice(std::span<const float> baseline, std::span<const FoundPeak> peaks);
    [[nodiscard]] std::vector<float> smoothed() const;
    [[nodiscard]] std::size_t band_of(float frequency) const noexcept;

    SpectrogramShape spectrogram_;
    PickerShape shape_;
    int slice_frames_;
    std::ptrdiff_t usual_bins_;
    float level_range_;
    float units_per_bin_;
    std::vector<float> band_ends_;  ///< In frequency units.
    PeakFinder finder_;
    std::vector<FoundPeak> found_;
    std::vector<std::vector<PickedPeak>> by_band_;
    std::vector<PickedPeak> picked_;
    Baseline baseline_;
    Baseline next_;
    std::uint64_t rows_ = 0;
    std::uint64_t chunk_end_;
};

}  // namespace polymux::song
