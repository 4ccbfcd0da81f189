#include "polymux/spectrogram/sound.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <string>

#include "spectrogram/griffin_lim.hpp"
#include "spectrogram/mel_inverse.hpp"
#include "spectrogram/sections.hpp"

namespace polymux::spectrogram {

namespace {

/// Share of a channel's work that is done when its magnitudes are computed.
constexpr double magnitudes_part = 0.1;

Error invalid(std::string message) {
    return {.code = ErrorCode::invalid_argument, .message = std::move(message)};
}

Result<void> check_picture(const PictureView& picture, const Parameters& parameters) {
    if (Result<void> checked = parameters.check(); !checked) return checked;
    if (picture.height != parameters.mel_bands) {
        return invalid("invalid height of a spectrogram image (got " +
                       std::to_string(picture.height) + " pixels, allowed " +
                       std::to_string(parameters.mel_bands) + ")");
    }
    if (picture.width < 1 || picture.width > max_columns) {
        return invalid("invalid width of a spectrogram image (got " +
                       std::to_string(picture.width) + " pixels, allowed 1 to " +
                       std::to_string(max_columns) + ")");
    }
    if (picture.channels != 1 && picture.channels != 2) {
        return invalid("invalid number of channels of a spectrogram image (got " +
                       std::to_string(picture.channels) + ", allowed 1 or 2)");
    }
    const std::size_t wanted = static_cast<std::size_t>(picture.width) *
                               static_cast<std::size_t>(picture.height) *
                               static_cast<std::size_t>(picture.channels);
    if (picture.pixels.size() != wanted) {
        return invalid("invalid number of pixel bytes for the image's size (got " +
                       std::to_string(picture.pixels.size()) + ", allowed " +
                       std::to_string(wanted) + ")");
    }
    return {};
}

/// The magnitude of each gray, relative to full scale 1.
std::array<double, 256> levels(const Parameters& parameters) {
    std::array<double, 256> values{};
    for (std::size_t pixel = 0; pixel < values.size(); ++pixel) {
        const double shown = static_cast<double>(255 - pixel) / 255.0;
        values[pixel] = std::pow(shown, 1.0 / static_cast<double>(parameters.power)) *
                        parameters.largest / 32'768;
    }
    return values;
}

/// Magnitudes of the frequencies of one channel.
Result<Magnitudes> magnitudes_of(const PictureView& picture, int channel,
                                 const Parameters& parameters, const CancelToken& token) {
    const MelScale scale(parameters);
    const std::array<double, 256> known = levels(parameters);
    const auto width = static_cast<std::size_t>(picture.width);
    const std::size_t area = width * scale.bands();
    const std::uint8_t* pixels = picture.pixels.data() + static_cast<std::size_t>(channel) * area;
    Magnitudes found{.columns = width, .bins = scale.bins(), .values = {}};
    found.values.resize(found.batches() * found.bins);
    const auto batch = [&](std::size_t number) {
        MelInverse inverse(scale);
        std::vector<double> mel(scale.bands());
        std::vector<double> column(scale.bins());
        Pair* to = found.batch(number);
        for (std::size_t lane = 0; lane < batch_frames; ++lane) {
            const std::size_t at = number * batch_frames + lane;
            if (at >= width) return;
            for (std::size_t band = 0; band < mel.size(); ++band) {
                mel[band] = known[pixels[(mel.size() - 1 - band) * width + at]];
            }
            inverse.solve(mel, column);
            for (std::size_t bin = 0; bin < column.size(); ++bin) {
                Lanes& lanes = lane < lane_count ? to[bin].first : to[bin].second;
                lanes[lane % lane_count] = static_cast<float>(column[bin]);
            }
        }
    };
    if (Result<void> done = in_parts(found.batches(), batch, token); !done) return done.error();
    return found;
}

Result<std::vector<float>> play(const PictureView& picture, int channel, std::uint64_t seed,
                                const Parameters& parameters,
                                const std::function<void(double)>& on_progress,
                                const CancelToken& token) {
    const auto tell = [&](double done) {
        if (on_progress) on_progress((channel + done) / picture.channels);
    };
    auto magnitudes = magnitudes_of(picture, channel, parameters, token);
    if (!magnitudes) return magnitudes.error();
    tell(magnitudes_part);
    const auto rest = [&](double done) { tell(magnitudes_part + (1 - magnitudes_part) * done); };
    // Both channels begin with the same phases, which keeps common content in the middle.
    auto samples = griffin_lim(*magnitudes, seed, parameters, rest, token);
    if (samples) tell(1);
    return samples;
}

}  // namespace

Result<Sound> sound_of_picture(const PictureView& picture, std::uint64_t seed,
                               const Parameters& parameters,
                               const std::function<void(double)>& on_progress,
                               const CancelToken& token) try {
    if (Result<void> checked = check_picture(picture, parameters); !checked) return checked.error();
    Sound sound{.channels = picture.channels, .samples = {}};
    const auto channels = static_cast<std::size_t>(picture.channels);
    for (std::size_t channel = 0; channel < channels; ++channel) {
        auto samples =
            play(picture, static_cast<int>(channel), seed, parameters, on_progress, token);
        if (!samples) return samples.error();
        sound.samples.resize(samples->size() * channels);
        for (std::size_t at = 0; at < samples->size(); ++at) {
            sound.samples[at * channels + channel] = (*samples)[at];
        }
    }
    return sound;
} catch (const std::bad_alloc&) {
    return Error{
        .code = ErrorCode::out_of_memory,
        .message = "not enough memory to convert the image to sound. Use a narrower part of it"};
}

}  // namespace polymux::spectrogram
