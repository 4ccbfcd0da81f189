#include "polymux/spectrogram/picture.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>

#include "spectrogram/frame_grid.hpp"
#include "spectrogram/mel_scale.hpp"
#include "spectrogram/sections.hpp"

namespace polymux::spectrogram {

namespace {

/// Batches between two looks at the token and two tellings of progress.
constexpr std::size_t turn_batches = 32;

Result<void> check(std::span<const float> samples, int channels, const Parameters& parameters) {
    if (Result<void> checked = parameters.check(); !checked) return checked;
    const auto invalid = [](std::string message) {
        return Error{.code = ErrorCode::invalid_argument, .message = std::move(message)};
    };
    if (channels != 1 && channels != 2) {
        return invalid("a picture is drawn of 1 or 2 channels, not of " + std::to_string(channels));
    }
    const auto each = samples.size() / static_cast<std::size_t>(channels);
    if (each == 0 || samples.size() % static_cast<std::size_t>(channels) != 0) {
        return invalid("a picture is drawn of one sample of each channel at least");
    }
    const auto hop = static_cast<std::size_t>(parameters.hop_samples);
    if (each > hop * most_columns) {
        return invalid("a picture is drawn of at most " + std::to_string(hop * most_columns) +
                       " samples of each channel, and these are " + std::to_string(each) +
                       "; draw parts of the sound");
    }
    if (!std::all_of(samples.begin(), samples.end(),
                     [](float one) { return std::isfinite(one); })) {
        return invalid("the sound has samples that are no numbers");
    }
    return {};
}

/// Mel bands of one channel, column after column.
class Drawing {
public:
    Drawing(std::span<const float> samples, std::size_t channel, std::size_t channels,
            const Parameters& parameters)
        : grid_(parameters, samples.size() / channels, 1),
          transform_(static_cast<std::size_t>(parameters.transform_samples)),
          scale_(parameters),
          padded_(grid_.padded_points()),
          mel_(grid_.frames() * scale_.bands()) {
        for (std::size_t at = 0; at < grid_.points(); ++at) {
            padded_[grid_.padding() + at] = samples[at * channels + channel];
        }
        grid_.reflect(padded_);
    }

    [[nodiscard]] std::size_t batches() const noexcept {
        return (grid_.frames() + batch_frames - 1) / batch_frames;
    }

    void draw(std::size_t batch) {
        std::vector<Bin> bins(transform_.length());
        std::vector<double> magnitudes(scale_.bins());
        std::vector<double> bands(scale_.bands());
        grid_.gather(padded_, batch * batch_frames, bins);
        transform_.forward(bins.data());
        for (std::size_t lane = 0; lane < batch_frames; ++lane) {
            const std::size_t column = batch * batch_frames + lane;
            if (column >= grid_.frames()) return;
            for (std::size_t bin = 1; bin < magnitudes.size(); ++bin) {
                const Spectra found = unpacked(bins[bin], bins[bins.size() - bin]);
                const Bin& of = lane < lane_count ? found.first : found.second;
                const std::size_t number = lane % lane_count;
                magnitudes[bin] = std::hypot(of.r[number], of.i[number]);
            }
            scale_.apply(magnitudes, bands);
            std::copy(bands.begin(), bands.end(),
                      mel_.begin() + static_cast<std::ptrdiff_t>(column * bands.size()));
        }
    }

    [[nodiscard]] std::span<const float> mel() const noexcept { return mel_; }

private:
    FrameGrid grid_;
    FrameTransform transform_;
    MelScale scale_;
    std::vector<float> padded_;
    std::vector<float> mel_;
};

Result<void> draw_all(Drawing& drawing, const std::function<void(double)>& on_progress,
                      const CancelToken& token) {
    const std::size_t batches = drawing.batches();
    for (std::size_t begun = 0; begun < batches; begun += turn_batches) {
        const std::size_t now = std::min(turn_batches, batches - begun);
        Result<void> done =
            in_parts(now, [&](std::size_t number) { drawing.draw(begun + number); }, token);
        if (!done) return done;
        on_progress(static_cast<double>(begun + now) / static_cast<double>(batches));
    }
    return {};
}

/// One channel's columns as rows from the top.
void paint(std::span<const float> mel, double largest, float power, int height,
           std::span<std::uint8_t> pixels) {
    const auto bands = static_cast<std::size_t>(height);
    const std::size_t width = mel.size() / bands;
    for (std::size_t column = 0; column < width; ++column) {
        for (std::size_t band = 0; band < bands; ++band) {
            const double part =
                largest > 0 ? static_cast<double>(mel[column * bands + band]) / largest : 0.0;
            const double shown = std::pow(part, static_cast<double>(power));
            pixels[(bands - 1 - band) * width + column] =
                static_cast<std::uint8_t>(255 - std::lround(255 * std::min(shown, 1.0)));
        }
    }
}

}  // namespace

Result<Picture> picture_of_sound(std::span<const float> samples, int channels,
                                 const Parameters& parameters,
                                 const std::function<void(double)>& on_progress,
                                 const CancelToken& token) try {
    if (Result<void> checked = check(samples, channels, parameters); !checked) {
        return checked.error();
    }
    const auto count = static_cast<std::size_t>(channels);
    std::vector<std::vector<float>> mel(count);
    float largest = 0;
    for (std::size_t channel = 0; channel < count; ++channel) {
        Drawing drawing(samples, channel, count, parameters);
        const auto tell = [&](double done) {
            if (on_progress) on_progress((static_cast<double>(channel) + done) / channels);
        };
        if (Result<void> drawn = draw_all(drawing, tell, token); !drawn) return drawn.error();
        mel[channel].assign(drawing.mel().begin(), drawing.mel().end());
        largest = std::max(largest, *std::max_element(mel[channel].begin(), mel[channel].end()));
    }
    const std::size_t area = mel[0].size();
    Picture picture{
        .width = static_cast<int>(area / static_cast<std::size_t>(parameters.mel_bands)),
        .height = parameters.mel_bands,
        .channels = channels,
        .pixels = std::vector<std::uint8_t>(area * count),
        .largest = static_cast<double>(largest) * 32'768};
    for (std::size_t channel = 0; channel < count; ++channel) {
        paint(mel[channel], static_cast<double>(largest), parameters.power, picture.height,
              std::span(picture.pixels).subspan(channel * area, area));
    }
    return picture;
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the picture; draw parts of the sound"};
}

}  // namespace polymux::spectrogram
