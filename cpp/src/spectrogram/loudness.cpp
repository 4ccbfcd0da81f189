#include <algorithm>
#include <cmath>
#include <new>

#include "polymux/spectrogram/sound.hpp"

namespace polymux::spectrogram {

namespace {

constexpr double wanted_dbfs = -12;
constexpr double headroom_db = 0.1;

double ratio_of(double decibels) {
    return std::pow(10.0, decibels / 20.0);
}

}  // namespace

Result<std::vector<std::int16_t>> finished(std::span<const float> samples) try {
    double largest = 0;
    double squares = 0;
    for (const float sample : samples) {
        if (!std::isfinite(sample)) {
            return Error{.code = ErrorCode::invalid_argument,
                         .message = "the audio contains NaN or infinite samples"};
        }
        largest = std::max(largest, std::abs(static_cast<double>(sample)));
        squares += static_cast<double>(sample) * static_cast<double>(sample);
    }
    std::vector<std::int16_t> whole(samples.size());
    if (largest == 0) return whole;
    const double gain =
        ratio_of(wanted_dbfs) / std::sqrt(squares / static_cast<double>(samples.size()));
    const double peak = std::min(1.0, gain * largest);
    const double scale = ratio_of(-headroom_db) / peak * 32'767;
    for (std::size_t at = 0; at < samples.size(); ++at) {
        const double louder = std::clamp(gain * static_cast<double>(samples[at]), -1.0, 1.0);
        whole[at] = static_cast<std::int16_t>(std::lround(louder * scale));
    }
    return whole;
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the audio samples"};
}

}  // namespace polymux::spectrogram
