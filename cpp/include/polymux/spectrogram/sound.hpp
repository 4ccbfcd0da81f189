// A picture of sound, played.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/result.hpp"
#include "polymux/spectrogram/parameters.hpp"

namespace polymux::spectrogram {

/// Pixels as those of `Picture`, owned by the caller.
struct PictureView {
    int width = 0;
    int height = 0;  ///< As many rows as there are mel bands.
    int channels = 1;
    std::span<const std::uint8_t> pixels;
};

struct Sound {
    int channels = 1;
    std::vector<float> samples;  ///< Interleaved; `hop_samples` of each channel for a column.
};

/// Makes the sound that looks as much like the picture as it can be made to. A picture has no
/// phases; the search for them begins with tones that go on from column to column, where `seed`
/// decides how each begins: the same seed gives the same samples, whatever the number of threads.
///
/// Magnitudes of frequencies from those of mel bands: the non-negative least squares of the
/// smallest norm. First phases: G. Beauregard, M. Harish and L. Wyse, "Single Pass Spectrogram
/// Inversion", DSP 2015. Better ones: N. Perraudin, P. Balazs and P. Sondergaard, "A fast
/// Griffin-Lim algorithm", WASPAA 2013.
///
/// Idle threads of the pool help. `on_progress` gets the part that is done, from 0 to 1, on the
/// calling thread.
Result<Sound> sound_of_picture(const PictureView& picture, std::uint64_t seed,
                               const Parameters& parameters = {},
                               const std::function<void(double)>& on_progress = {},
                               const CancelToken& token = {});

/// Samples of 16 bits at the loudness of a finished piece: amplified to a root mean square of
/// -12 dBFS, where peaks are cut at full scale, and then to a peak of -0.1 dBFS. Silence stays.
Result<std::vector<std::int16_t>> finished(std::span<const float> samples);

}  // namespace polymux::spectrogram
