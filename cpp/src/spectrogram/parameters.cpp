#include "polymux/spectrogram/parameters.hpp"

#include <cmath>
#include <string>

namespace polymux::spectrogram {

namespace {

struct Rule {
    bool kept;
    const char* text;
};

}  // namespace

Result<void> Parameters::check() const {
    const float nyquist_hz = static_cast<float>(sample_rate_hz) / 2;
    const Rule rules[] = {
        {sample_rate_hz >= 1'000 && sample_rate_hz <= 192'000,
         "the sample rate must be from 1,000 to 192,000 Hz"},
        {window_samples >= 4 && window_samples % 2 == 0 && window_samples <= transform_samples,
         "the window must have an even number of samples, at least 4 and at most as many as the "
         "transform"},
        {transform_samples % 2 == 0 && transform_samples <= 1 << 17,
         "the transform must have an even number of samples, at most 131,072"},
        {hop_samples >= 2 && hop_samples <= window_samples / 2,
         "the hop between columns must be at least 2 samples and at most half a window"},
        {mel_bands >= 2 && mel_bands <= 4'096, "there must be from 2 to 4,096 mel bands"},
        {lowest_hz >= 0 && lowest_hz < highest_hz && highest_hz <= nyquist_hz,
         "the lowest frequency must be at least 0 Hz and below the highest, which must be at most "
         "half the sample rate"},
        {power > 0.01F && power <= 4, "the power must be above 0.01 and at most 4"},
        {std::isfinite(largest) && largest >= 0 && largest <= 1e15,
         "the largest value must be from 0 to 1e15"},
        {iterations >= 1 && iterations <= 10'000, "there must be from 1 to 10,000 iterations"},
        {momentum >= 0 && momentum < 1, "the momentum must be at least 0 and below 1"},
    };
    for (const Rule& rule : rules) {
        if (!rule.kept) {
            return Error{.code = ErrorCode::invalid_argument,
                         .message = std::string("spectrogram: ") + rule.text};
        }
    }
    return {};
}

}  // namespace polymux::spectrogram
