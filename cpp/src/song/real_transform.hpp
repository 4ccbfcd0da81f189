// Fourier transforms of real input, several at once.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

namespace polymux::song {

/// Transforms `rows` rows of `length` samples each into `length / 2 + 1` bins each, row by row.
/// Float32; processing several rows at once makes it fast. Thread-safe. Uses pocketfft.
void real_transform(std::span<const float> samples, std::size_t rows, std::size_t length,
                    std::span<std::complex<float>> bins);

}  // namespace polymux::song
