#include "polymux/song/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "song/fingerprint_parts.hpp"
#include "song/peak_picker.hpp"
#include "song/spectrogram.hpp"

namespace polymux::song {

namespace {

PickerShape picker_shape(const Parameters& parameters, const WindowParameters& window) {
    return {.box_frames = window.song_box_frames,
            .box_bins = window.song_box_bins,
            .bands = parameters.bands,
            .peaks_per_band = window.song_peaks_per_band,
            .chunk_rows = static_cast<std::uint64_t>(parameters.usual_frames / window.stride),
            .stride = window.stride};
}

struct OneWindow {
    OneWindow(const Parameters& parameters, int number)
        : window(parameters.windows[static_cast<std::size_t>(number)]),
          shape(shape_of(parameters, number, window.stride)),
          spectrogram(shape),
          picker(parameters, shape, picker_shape(parameters, window)) {}

    WindowParameters window;
    SpectrogramShape shape;
    Spectrogram spectrogram;
    PeakPicker picker;
    std::vector<TimedPeak> peaks;

    void feed(std::span<const float> samples) {
        spectrogram.feed(samples, [this](std::span<const float> row) { picker.take(row); });
        keep();
    }

    void finish() {
        spectrogram.finish([this](std::span<const float> row) { picker.take(row); });
        picker.finish();
        keep();
        std::sort(peaks.begin(), peaks.end());
    }

    void keep() {
        for (const PickedPeak& peak : picker.picked()) {
            const auto frequency = static_cast<std::uint32_t>(std::lround(peak.frequency));
            peaks.push_back({.frame = static_cast<std::uint64_t>(std::lround(peak.frame)),
                             .frequency = std::min(frequency, frequency_mask)});
        }
        picker.picked().clear();
    }
};

}  // namespace

struct Fingerprinter::Impl {
    explicit Impl(const Parameters& parameters)
        : windows{OneWindow(parameters, 0), OneWindow(parameters, 1)},
          hop_samples(static_cast<std::uint64_t>(parameters.hop_samples)) {}

    std::array<OneWindow, 2> windows;
    std::uint64_t hop_samples;
    std::uint64_t samples = 0;
};

Fingerprinter::Fingerprinter(const Parameters& parameters)
    : impl_(std::make_unique<Impl>(parameters)) {}

Fingerprinter::~Fingerprinter() = default;

void Fingerprinter::feed(std::span<const float> samples) {
    impl_->samples += samples.size();
    for (OneWindow& window : impl_->windows) {
        window.feed(samples);
    }
}

std::vector<FingerprintPart> Fingerprinter::finish() {
    for (OneWindow& window : impl_->windows) {
        window.finish();
    }
    const std::uint64_t frames = (impl_->samples + impl_->hop_samples - 1) / impl_->hop_samples;
    return parts_of(frames, impl_->windows[0].peaks, impl_->windows[1].peaks);
}

}  // namespace polymux::song
