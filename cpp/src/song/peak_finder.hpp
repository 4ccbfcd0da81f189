// Finds local maxima of a spectrogram whose rows arrive one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace polymux::song {

/// A local maximum. `frame` and `bin` are fractional: the top of a parabola through the neighbors.
/// `bin` counts from the spectrogram's first.
struct FoundPeak {
    float frame_offset = 0;  ///< Relative to `frame`, -0.5 to 0.5.
    float bin = 0;
    float level = 0;  ///< log2 of the power.
    std::uint32_t frame = 0;

    [[nodiscard]] float at() const noexcept { return static_cast<float>(frame) + frame_offset; }
};

/// Finds cells that no cell exceeds within `box_frames` and `box_bins` on each side.
class PeakFinder {
public:
    /// Cells below `lowest_level` are not peaks.
    PeakFinder(std::size_t bins, int box_frames, int box_bins, float lowest_level);

    /// Adds the next row. Appends the peaks that are now certain, in order of frames.
    void take(std::span<const float> row, std::vector<FoundPeak>& peaks);

    /// Appends the peaks of the last rows.
    void finish(std::vector<FoundPeak>& peaks);

private:
    void find(std::uint64_t frame, std::vector<FoundPeak>& peaks) const;
    [[nodiscard]] bool is_peak(std::uint64_t frame, std::size_t bin, float level) const;
    [[nodiscard]] FoundPeak interpolated(std::uint64_t frame, std::size_t bin) const;
    [[nodiscard]] const float* levels(std::uint64_t frame) const;
    [[nodiscard]] const float* maxima(std::uint64_t frame) const;

    std::size_t bins_;
    float lowest_level_;
    std::uint64_t box_frames_;
    std::size_t box_bins_;
    std::uint64_t ring_rows_;
    std::vector<float> levels_;
    std::vector<float> maxima_;
    std::vector<float> padded_;
    std::vector<float> widened_;
    std::vector<float> nothing_;  ///< Replaces rows before the first and after the last.
    std::uint64_t rows_ = 0;
    std::uint64_t found_ = 0;  ///< Rows whose peaks were returned.
};

}  // namespace polymux::song
