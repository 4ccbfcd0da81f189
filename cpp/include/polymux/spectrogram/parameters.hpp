// The numbers by which sound is drawn as a picture, and a picture is played.
#pragma once

#include "polymux/result.hpp"

namespace polymux::spectrogram {

/// As Riffusion's pictures have them: S. Forsgren and H. Martiros, "Riffusion: Stable diffusion for
/// real-time music generation", 2022.
struct Parameters {
    int sample_rate_hz = 44'100;
    int hop_samples = 441;           ///< From column to column: 10 ms.
    int window_samples = 4'410;      ///< A periodic Hann window of 100 ms; even.
    int transform_samples = 17'640;  ///< The window is padded with zeros to 400 ms; even.

    /// Triangles that are evenly spaced on the mel scale of HTK, 1 at their middle.
    int mel_bands = 512;
    float lowest_hz = 0;
    float highest_hz = 10'000;

    float power = 0.25F;  ///< What a picture shows is the magnitude to the power of this.
    /// What a black pixel stands for, in samples of 16 bits: a full-scale sine has 36 million.
    double largest = 30e6;

    int iterations = 32;  ///< Of the search for phases.
    float momentum = 0.99F;

    /// `invalid_argument` where a number is out of its range, or two do not go together.
    [[nodiscard]] Result<void> check() const;
};

/// The widest picture, five minutes by the default parameters. Playing it takes some 600 MB.
inline constexpr int max_columns = 30'000;

}  // namespace polymux::spectrogram
