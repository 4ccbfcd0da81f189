// Parameters for drawing audio as an image, and for playing an image.
#pragma once

#include "polymux/result.hpp"

namespace polymux::spectrogram {

/// The format of Riffusion's images: S. Forsgren and H. Martiros, "Riffusion: Stable diffusion for
/// real-time music generation", 2022.
struct Parameters {
    int sample_rate_hz = 44'100;
    int hop_samples = 441;           ///< Between columns: 10 ms.
    int window_samples = 4'410;      ///< A periodic Hann window of 100 ms; even.
    int transform_samples = 17'640;  ///< The window is padded with zeros to 400 ms; even.

    /// Triangles that are evenly spaced on the mel scale of HTK, 1 at their middle.
    int mel_bands = 512;
    float lowest_hz = 0;
    float highest_hz = 10'000;

    float power = 0.25F;  ///< An image shows the magnitude to the power of this.
    /// Magnitude of a black pixel, in 16-bit sample units: a full-scale sine has 36 million.
    double largest = 30e6;

    int iterations = 32;  ///< Iterations of the phase search.
    float momentum = 0.99F;

    /// Returns `invalid_argument` if a number is out of range, or if two conflict.
    [[nodiscard]] Result<void> check() const;
};

/// The widest image, five minutes with the default parameters. Playing it uses about 600 MB.
inline constexpr int max_columns = 30'000;

}  // namespace polymux::spectrogram
