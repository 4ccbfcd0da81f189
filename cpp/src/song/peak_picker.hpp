// The most prominent peaks of each second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/song/peaks.hpp"
#include "song/peak_finder.hpp"
#include "song/spectrogram.hpp"

namespace polymux::song {

/// A peak that was kept: in frames of `Parameters::hop_samples` and in units of
/// `frequency_unit_hz`, both between whole ones.
struct PickedPeak {
    float frame = 0;
    float frequency = 0;
    float prominence = 0;  ///< log2 of the power over what is usual at this frequency.
};

struct PickerShape {
    int box_frames = 0;  ///< In rows of the spectrogram.
    int box_bins = 0;
    int bands = 1;
    int peaks_per_band = 0;  ///< Of each `Parameters::slice_frames`.
    /// Rows over which "usual" is taken; 0: all of them.
    std::uint64_t chunk_rows = 0;
    int stride = 1;
};

/// Prominence is the level over the mean of its bin, which is smoothed over its neighbours: a tone
/// that is always there does not crowd out what changes.
class PeakPicker {
public:
    PeakPicker(const Parameters& parameters, const SpectrogramShape& spectrogram,
               const PickerShape& shape);

    void take(std::span<const float> row);
    void finish();

    /// Slice by slice. Emptied by whoever takes them.
    [[nodiscard]] std::vector<PickedPeak>& picked() noexcept { return picked_; }
    [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

private:
    struct Baseline {
        std::vector<float> sums;  // Of a minute's rows: exact enough.
        std::uint64_t rows = 0;
    };

    void end_chunk(std::uint64_t end_row);
    void pick(std::span<const float> usual, std::span<const FoundPeak> peaks);
    void pick_slice(std::vector<PickedPeak>& slice);
    [[nodiscard]] std::vector<float> smoothed() const;
    [[nodiscard]] std::size_t band_of(float frequency) const noexcept;

    SpectrogramShape spectrogram_;
    PickerShape shape_;
    int slice_frames_;
    std::ptrdiff_t usual_bins_;
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
