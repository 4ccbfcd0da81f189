// The short-time Fourier transform of audio that arrives in pieces, as rows of levels.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "polymux/function_ref.hpp"
#include "polymux/song/parameters.hpp"

namespace polymux::song {

/// The requested frames and bins.
struct SpectrogramShape {
    std::size_t length_samples = 0;
    std::size_t hop_samples = 0;
    std::size_t first_bin = 0;
    std::size_t bins = 0;
    float silence_power = 0;  ///< Added to each cell.
};

[[nodiscard]] SpectrogramShape shape_of(const Parameters& parameters, int window, int stride);

/// Frame k is centered on sample `k * hop_samples`; silence surrounds the input. A row's values are
/// levels: log2 of the power, with linear interpolation between integers (`exact_level` corrects a
/// value). This keeps their order and costs almost nothing.
class Spectrogram {
public:
    using RowSink = FunctionRef<void(std::span<const float>)>;

    explicit Spectrogram(const SpectrogramShape& shape);

    void feed(std::span<const float> samples, RowSink sink);

    /// Emits the last rows, whose center is inside the input.
    void finish(RowSink sink);

private:
    static constexpr std::size_t batch_rows_ = 16;

    void transform(std::size_t rows, RowSink sink);

    SpectrogramShape shape_;
    std::vector<float> window_;
    std::vector<float> waiting_;
    std::vector<float> windowed_;
    std::vector<std::complex<float>> transformed_;
    std::vector<float> row_;
    std::uint64_t fed_samples_ = 0;
    std::uint64_t rows_given_ = 0;
};

/// log2 of the power of a row's value.
[[nodiscard]] float exact_level(float level) noexcept;

}  // namespace polymux::song
