// Sound, drawn as a picture.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/result.hpp"
#include "polymux/spectrogram/parameters.hpp"

namespace polymux::spectrogram {

/// A grey picture for each channel, one behind the other; rows from the top, which is the highest
/// frequency. White is silence.
struct Picture {
    int width = 0;
    int height = 0;
    int channels = 1;
    std::vector<std::uint8_t> pixels;
    /// What black stands for, in samples of 16 bits; 0 for silence.
    double largest = 0;
};

/// Draws `samples`, interleaved and in [-1, 1], of 1 or 2 channels. A column is drawn for each
/// begun `hop_samples`; behind the ends the sound is thought of as reflected. The loudest point of
/// all channels is black.
///
/// `on_progress` gets the part that is done, from 0 to 1, on the calling thread.
Result<Picture> picture_of_sound(std::span<const float> samples, int channels,
                                 const Parameters& parameters = {},
                                 const std::function<void(double)>& on_progress = {},
                                 const CancelToken& token = {});

}  // namespace polymux::spectrogram
