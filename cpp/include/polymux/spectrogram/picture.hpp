// Draws audio as an image.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/result.hpp"
#include "polymux/spectrogram/parameters.hpp"

namespace polymux::spectrogram {

/// A gray image for each channel, one after the other; rows from the top, which is the highest
/// frequency. White is silence.
struct Picture {
    int width = 0;
    int height = 0;
    int channels = 1;
    std::vector<std::uint8_t> pixels;
    /// Magnitude of black, in 16-bit sample units; 0 for silence.
    double largest = 0;
};

/// Draws `samples`, interleaved and in [-1, 1], of 1 or 2 channels. Each started `hop_samples`
/// gives one column. The audio is reflected beyond both ends. The loudest point of all channels is
/// black.
///
/// `on_progress` receives the completed fraction, from 0 to 1, on the calling thread.
Result<Picture> picture_of_sound(std::span<const float> samples, int channels,
                                 const Parameters& parameters = {},
                                 const std::function<void(double)>& on_progress = {},
                                 const CancelToken& token = {});

}  // namespace polymux::spectrogram
