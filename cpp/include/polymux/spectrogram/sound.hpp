// Plays an image as audio.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "polymux/cancel.hpp"
#include "polymux/result.hpp"
#include "polymux/spectrogram/parameters.hpp"

namespace polymux::spectrogram {

/// Pixels as in `Picture`, owned by the caller.
struct PictureView {
    int width = 0;
    int height = 0;  ///< As many rows as there are mel bands.
    int channels = 1;
    std::span<const std::uint8_t> pixels;
};

struct Sound {
    int channels = 1;
    std::vector<float> samples;  ///< Interleaved; `hop_samples` per channel for each column.
};

/// Computes the audio whose spectrogram is as close to the image as possible. An image has no
/// phases. The search for them starts with tones that continue from column to column; `seed` sets
/// the initial phase of each. The same seed gives the same samples for any number of threads.
///
/// Magnitudes of frequencies from mel bands: the non-negative least squares of the smallest norm.
/// First phases: G. Beauregard, M. Harish and L. Wyse, "Single Pass Spectrogram Inversion", DSP
/// 2015. Refinement: N. Perraudin, P. Balazs and P. Sondergaard, "A fast Griffin-Lim algorithm",
/// WASPAA 2013.
///
/// Idle threads of the pool help. `on_progress` receives the completed fraction, from 0 to 1, on
/// the calling thread.
Result<Sound> sound_of_picture(const PictureView& picture, std::uint64_t seed,
                               const Parameters& parameters = {},
                               const std::function<void(double)>& on_progress = {},
                               const CancelToken& token = {});

inline constexpr int min_sample_rate_hz = 8'000;

/// Converts to 16-bit samples at the loudness of a finished piece, as FFmpeg's filter `loudnorm`
/// measures it (ITU-R BS.1770-4): -16 LUFS, with peaks between the samples of at most -1.5 dBTP.
/// A gain that falls around loud peaks keeps them below. Audio with single peaks that are too high
/// stays quieter. The gain is at most 54 dB, so audio below -70 LUFS, the standard's gate, stays
/// quieter too. `samples` are interleaved; full scale is 1, and louder audio is accepted.
Result<std::vector<std::int16_t>> finished(std::span<const float> samples, int channels,
                                           int sample_rate_hz);

}  // namespace polymux::spectrogram
