// Positions of the frames of an audio signal, on all of its samples or on every second one.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "polymux/spectrogram/parameters.hpp"
#include "spectrogram/frame_transform.hpp"

namespace polymux::spectrogram {

/// Frame k is centered on sample `k * hop_samples`. Audio without content above a quarter of the
/// sample rate is complete on every second sample. A frame that begins between two of them uses the
/// other half of the window's values, and its spectrum is shifted by half a sample.
class FrameGrid {
public:
    /// `step` is 1 or 2 samples.
    FrameGrid(const Parameters& parameters, std::size_t samples, std::size_t step);

    /// One frame's part of the padded samples.
    struct Frame {
        std::size_t begin = 0;
        std::size_t late = 0;  ///< Samples from the window's start to its first value, 0 or 1.
    };

    [[nodiscard]] Frame frame(std::size_t number) const noexcept;
    [[nodiscard]] std::size_t frames() const noexcept { return frames_; }
    /// The window's values for a frame with that `late`.
    [[nodiscard]] std::span<const float> window(std::size_t late) const noexcept {
        return windows_[late];
    }
    /// Points of the audio itself.
    [[nodiscard]] std::size_t points() const noexcept { return points_; }
    /// Points of the audio including padding on both sides.
    [[nodiscard]] std::size_t padded_points() const noexcept { return points_ + 2 * padding_; }
    [[nodiscard]] std::size_t padding() const noexcept { return padding_; }

    /// Fills the padding with the reflected audio.
    void reflect(std::span<float> padded) const noexcept;

    /// 1 / (the sum of the squares of all windows that cover it), for each point of the audio.
    [[nodiscard]] std::vector<float> inverse_weights() const;

    /// Copies eight windowed frames from `first` on to the start of `bins`, followed by zeros.
    void gather(std::span<const float> padded, std::size_t first, std::span<Bin> bins) const;

    /// Adds eight windowed frames to `sums`, whose first value is the padded point `origin`.
    void scatter(std::span<const Bin> bins, std::size_t first, std::size_t origin,
                 std::span<float> sums) const;

private:
    std::size_t hop_;
    std::size_t half_;
    std::size_t step_;
    std::size_t samples_;
    std::size_t frames_;
    std::size_t points_;
    std::size_t padding_;
    std::array<std::vector<float>, 2> windows_;
};

}  // namespace polymux::spectrogram
