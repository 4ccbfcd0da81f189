#include "polymux/spectrogram/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "spectrogram/frame_grid.hpp"
#include "spectrogram/mel_scale.hpp"
#include "spectrogram/padded_transform.hpp"
#include "spectrogram/sections.hpp"

namespace polymux::spectrogram {

namespace {

/// Columns that a thread processes at a time.
constexpr std::size_t part_frames = 4 * batch_frames;
/// Parts between two checks of the token and progress reports.
constexpr std::size_t turn_parts = 8;

Result<void> check_samples(std::span<const float> samples, int channels,
                           const Parameters& parameters) {
    if (Result<void> checked = parameters.check(); !checked) return checked;
    const auto invalid = [](std::string message) {
        return Error{.code = ErrorCode::invalid_argument, .message = std::move(message)};
    };
    if (channels != 1 && channels != 2) {
        return invalid("invalid number of channels (got " + std::to_string(channels) +
                       ", allowed 1 or 2)");
    }
    const auto each = samples.size() / static_cast<std::size_t>(channels);
    if (each == 0 || samples.size() % static_cast<std::size_t>(channels) != 0) {
        return invalid("invalid number of samples (got " + std::to_string(samples.size()) +
                       ", allowed a multiple of the " + std::to_string(channels) +
                       " channels, at least 1 per channel)");
    }
    const auto hop = static_cast<std::size_t>(parameters.hop_samples);
    if (each > hop * max_columns) {
        return invalid("the audio is too long for a spectrogram (got " + std::to_string(each) +
                       " samples per channel, allowed " + std::to_string(hop * max_columns) +
                       "). Split the audio into shorter parts");
    }
    if (!std::all_of(samples.begin(), samples.end(),
                     [](float one) { return std::isfinite(one); })) {
        return invalid("the audio contains NaN or infinite samples");
    }
    return {};
}

/// Scale factor that brings the loudest sample to 0.5 to 1: a power of two, which avoids rounding.
/// It keeps squares of magnitudes finite at any loudness.
double scale_of(std::span<const float> samples) {
    float loudest = 0;
    for (const float sample : samples) loudest = std::max(loudest, std::abs(sample));
    int exponent = 0;
    if (loudest > 0) std::frexp(static_cast<double>(loudest), &exponent);
    return std::ldexp(1.0, -exponent);
}

Lanes magnitude(const Bin& bin) noexcept {
    const Lanes squares = bin.r * bin.r + bin.i * bin.i;
    Lanes roots;
    for (std::size_t lane = 0; lane < lane_count; ++lane) roots[lane] = std::sqrt(squares[lane]);
    return roots;
}

/// Mel bands of one channel, row after row.
class Drawing {
public:
    Drawing(std::span<const float> samples, std::size_t channel, std::size_t channels,
            const Parameters& parameters, double scale)
        : grid_(parameters, samples.size() / channels, 1),
          transform_(static_cast<std::size_t>(parameters.window_samples),
                     static_cast<std::size_t>(parameters.transform_samples)),
          scale_(parameters),
          padded_(grid_.padded_points()),
          mel_(grid_.frames() * scale_.bands()) {
        for (std::size_t at = 0; at < grid_.points(); ++at) {
            const auto sample = static_cast<double>(samples[at * channels + channel]);
            padded_[grid_.padding() + at] = static_cast<float>(sample * scale);
        }
        grid_.reflect(padded_);
    }

    [[nodiscard]] std::size_t parts() const noexcept {
        return (grid_.frames() + part_frames - 1) / part_frames;
    }

    void draw(std::size_t part) {
        std::vector<Bin> frames(transform_.short_length());
        std::vector<Bin> bins(transform_.length());
        std::vector<Pair> magnitudes(scale_.bins());
        std::vector<Pair> bands(scale_.bands());
        const std::size_t end = std::min((part + 1) * part_frames, grid_.frames());
        for (std::size_t column = part * part_frames; column < end; column += batch_frames) {
            grid_.gather(padded_, column, frames);
            transform_.forward(frames, bins);
            for (std::size_t bin = 1; bin < magnitudes.size(); ++bin) {
                const std::size_t mirrored = transform_.length() - bin;
                const Spectra found =
                    unpacked(bins[transform_.place(bin)], bins[transform_.place(mirrored)]);
                magnitudes[bin] = {magnitude(found.first), magnitude(found.second)};
            }
            scale_.apply(magnitudes, bands);
            keep(bands, column);
        }
    }

    [[nodiscard]] std::vector<float> take() noexcept { return std::move(mel_); }

private:
    void keep(std::span<const Pair> bands, std::size_t column) {
        const std::size_t count = std::min(batch_frames, grid_.frames() - column);
        for (std::size_t band = 0; band < bands.size(); ++band) {
            float* to = mel_.data() + band * grid_.frames() + column;
            for (std::size_t lane = 0; lane < count; ++lane) {
                const Lanes& of = lane < lane_count ? bands[band].first : bands[band].second;
                to[lane] = of[lane % lane_count];
            }
        }
    }

    FrameGrid grid_;
    PaddedTransform transform_;
    MelScale scale_;
    std::vector<float> padded_;
    std::vector<float> mel_;
};

Result<void> draw_all(Drawing& drawing, const std::function<void(double)>& on_progress,
                      const CancelToken& token) {
    const std::size_t parts = drawing.parts();
    for (std::size_t begun = 0; begun < parts; begun += turn_parts) {
        const std::size_t now = std::min(turn_parts, parts - begun);
        Result<void> done =
            in_parts(now, [&](std::size_t number) { drawing.draw(begun + number); }, token);
        if (!done) return done;
        on_progress(static_cast<double>(begun + now) / static_cast<double>(parts));
    }
    return {};
}

/// Thresholds of the grays: `[k]` is the minimum magnitude whose gray is 254 - k. Silence is below
/// all, and nothing reaches the last.
using GreySteps = std::array<float, 256>;

GreySteps grey_steps(float largest, float power) {
    GreySteps steps{};
    for (std::size_t step = 0; step < steps.size(); ++step) {
        const double shown = (static_cast<double>(step) + 0.5) / 255;
        const double min_step =
            std::pow(shown, 1 / static_cast<double>(power)) * static_cast<double>(largest);
        steps[step] = std::max(static_cast<float>(min_step), std::numeric_limits<float>::min());
    }
    steps.back() = std::numeric_limits<float>::infinity();
    return steps;
}

/// The gray of a magnitude. Searches without branches, which would be unpredictable.
std::uint8_t grey_of(float magnitude, const GreySteps& steps) noexcept {
    std::size_t reached = 0;
    for (std::size_t stride = steps.size() / 2; stride > 0; stride /= 2) {
        reached += stride * static_cast<std::size_t>(steps[reached + stride - 1] <= magnitude);
    }
    return static_cast<std::uint8_t>(255 - reached);
}

/// Paints one channel's rows, the highest frequency first.
void paint(std::span<const float> mel, const GreySteps& steps, std::size_t width,
           std::span<std::uint8_t> pixels) {
    const std::size_t height = mel.size() / width;
    for (std::size_t row = 0; row < height; ++row) {
        const float* from = mel.data() + (height - 1 - row) * width;
        for (std::size_t column = 0; column < width; ++column) {
            pixels[row * width + column] = grey_of(from[column], steps);
        }
    }
}

}  // namespace

Result<Picture> picture_of_sound(std::span<const float> samples, int channels,
                                 const Parameters& parameters,
                                 const std::function<void(double)>& on_progress,
                                 const CancelToken& token) try {
    if (Result<void> checked = check_samples(samples, channels, parameters); !checked) {
        return checked.error();
    }
    const auto count = static_cast<std::size_t>(channels);
    const double scale = scale_of(samples);
    std::vector<std::vector<float>> mel(count);
    float largest = 0;
    for (std::size_t channel = 0; channel < count; ++channel) {
        Drawing drawing(samples, channel, count, parameters, scale);
        const auto tell = [&](double done) {
            if (on_progress) on_progress((static_cast<double>(channel) + done) / channels);
        };
        if (Result<void> drawn = draw_all(drawing, tell, token); !drawn) return drawn.error();
        mel[channel] = drawing.take();
        largest = std::max(largest, *std::max_element(mel[channel].begin(), mel[channel].end()));
    }
    const std::size_t area = mel[0].size();
    Picture picture{
        .width = static_cast<int>(area / static_cast<std::size_t>(parameters.mel_bands)),
        .height = parameters.mel_bands,
        .channels = channels,
        .pixels = std::vector<std::uint8_t>(area * count),
        .largest = static_cast<double>(largest) * 32'768 / scale};
    const GreySteps steps = grey_steps(largest, parameters.power);
    for (std::size_t channel = 0; channel < count; ++channel) {
        paint(mel[channel], steps, static_cast<std::size_t>(picture.width),
              std::span(picture.pixels).subspan(channel * area, area));
    }
    return picture;
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the image. Split the audio into shorter parts"};
}

}  // namespace polymux::spectrogram
