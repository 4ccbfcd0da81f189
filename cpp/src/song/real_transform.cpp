#include "song/real_transform.hpp"

#define POCKETFFT_NO_MULTITHREADING
#include <pocketfft_hdronly.h>

namespace polymux::song {

void real_transform(std::span<const float> samples, std::size_t rows, std::size_t length,
                    std::span<std::complex<float>> bins) {
    const auto sample_bytes = static_cast<std::ptrdiff_t>(sizeof(float));
    const auto bin_bytes = static_cast<std::ptrdiff_t>(sizeof(std::complex<float>));
    const auto row = static_cast<std::ptrdiff_t>(length);
    pocketfft::r2c({rows, length}, {row * sample_bytes, sample_bytes},
                   {(row / 2 + 1) * bin_bytes, bin_bytes}, 1, pocketfft::FORWARD, samples.data(),
                   bins.data(), 1.0F, 1);
}

}  // namespace polymux::song
