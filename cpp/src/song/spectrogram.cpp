#include "song/spectrogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "song/real_transform.hpp"

namespace polymux::song {

namespace {

float bent_log2(float power) noexcept {
    // The bits of an IEEE float, read as an integer, approximate its logarithm with straight lines
    // between powers of two.
    return static_cast<float>(std::bit_cast<std::int32_t>(power)) * 0x1p-23F - 127.0F;
}

}  // namespace

float exact_level(float level) noexcept {
    const float whole = std::floor(level);
    return whole + std::log2(1.0F + (level - whole));
}

SpectrogramShape shape_of(const Parameters& parameters, int window, int stride) {
    const auto length = static_cast<std::size_t>(
        parameters.windows[static_cast<std::size_t>(window)].length_samples);
    const float bin_hz = static_cast<float>(parameters.sample_rate_hz) / static_cast<float>(length);
    const auto first = static_cast<std::size_t>(std::ceil(parameters.lowest_hz / bin_hz));
    const auto last = static_cast<std::size_t>(std::floor(parameters.highest_hz / bin_hz));
    return {.length_samples = length,
            .hop_samples = static_cast<std::size_t>(parameters.hop_samples * stride),
            .first_bin = first,
            .bins = last - first + 1,
            .silence_power = parameters.silence_power};
}

Spectrogram::Spectrogram(const SpectrogramShape& shape)
    : shape_(shape),
      window_(shape.length_samples),
      waiting_(shape.length_samples / 2),
      windowed_(batch_rows_ * shape.length_samples),
      transformed_(batch_rows_ * (shape.length_samples / 2 + 1)),
      row_(shape.bins) {
    // Scaled to power 1 for a full-scale sine.
    const auto length = static_cast<double>(shape.length_samples);
    for (std::size_t index = 0; index < window_.size(); ++index) {
        const double phase = 2.0 * std::numbers::pi * static_cast<double>(index) / length;
        window_[index] = static_cast<float>((0.5 - 0.5 * std::cos(phase)) * 4.0 / length);
    }
}

void Spectrogram::feed(std::span<const float> samples, RowSink sink) {
    fed_samples_ += samples.size();
    const std::size_t needed = (batch_rows_ - 1) * shape_.hop_samples + shape_.length_samples;
    while (!samples.empty()) {
        const std::size_t taken = std::min(samples.size(), needed - waiting_.size());
        waiting_.insert(waiting_.end(), samples.begin(),
                        samples.begin() + static_cast<std::ptrdiff_t>(taken));
        samples = samples.subspan(taken);
        if (waiting_.size() == needed) {
            transform(batch_rows_, sink);
        }
    }
}

void Spectrogram::finish(RowSink sink) {
    const std::uint64_t rows = (fed_samples_ + shape_.hop_samples - 1) / shape_.hop_samples;
    while (rows_given_ < rows) {
        const auto left =
            static_cast<std::size_t>(std::min<std::uint64_t>(rows - rows_given_, batch_rows_));
        waiting_.resize((left - 1) * shape_.hop_samples + shape_.length_samples);
        transform(left, sink);
    }
}

void Spectrogram::transform(std::size_t rows, RowSink sink) {
    const std::size_t length = shape_.length_samples;
    for (std::size_t row = 0; row < rows; ++row) {
        const float* from = waiting_.data() + row * shape_.hop_samples;
        float* to = windowed_.data() + row * length;
        for (std::size_t index = 0; index < length; ++index) {
            to[index] = from[index] * window_[index];
        }
    }
    real_transform(std::span(windowed_).first(rows * length), rows, length, transformed_);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::complex<float>* bins =
            transformed_.data() + row * (length / 2 + 1) + shape_.first_bin;
        for (std::size_t bin = 0; bin < shape_.bins; ++bin) {
            const float real = bins[bin].real();
            const float imaginary = bins[bin].imag();
            row_[bin] = bent_log2(real * real + imaginary * imaginary + shape_.silence_power);
        }
        sink(row_);
    }
    rows_given_ += rows;
    const auto used =
        static_cast<std::ptrdiff_t>(std::min(rows * shape_.hop_samples, waiting_.size()));
    waiting_.erase(waiting_.begin(), waiting_.begin() + used);
}

}  // namespace polymux::song
