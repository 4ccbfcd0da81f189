#include "polymux/song/query.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "song/peak_picker.hpp"
#include "song/spectrogram.hpp"

namespace polymux::song {

namespace {

std::vector<QueryPeak> sorted(std::vector<PickedPeak>& picked) {
    std::vector<QueryPeak> peaks;
    peaks.reserve(picked.size());
    for (const PickedPeak& peak : picked) {
        peaks.push_back(
            {.frame = peak.frame, .frequency = peak.frequency, .prominence = peak.prominence});
    }
    std::sort(peaks.begin(), peaks.end(), [](const QueryPeak& one, const QueryPeak& other) {
        return one.frame < other.frame ||
               (one.frame == other.frame && one.frequency < other.frequency);
    });
    return peaks;
}

bool is_audible(std::span<const float> samples, const Parameters& parameters) {
    if (static_cast<double>(samples.size()) < parameters.min_query_s * parameters.sample_rate_hz) {
        return false;
    }
    double power = 0;
    for (const float sample : samples) {
        power += static_cast<double>(sample) * static_cast<double>(sample);
    }
    return power / static_cast<double>(samples.size()) >= parameters.min_power;
}

}  // namespace

std::span<const float> loudest_part(std::span<const float> samples, const Parameters& parameters) {
    const auto max_samples =
        static_cast<std::size_t>(parameters.max_query_s * parameters.sample_rate_hz);
    const std::size_t step = parameters.loudest_step_samples;
    if (samples.size() <= max_samples) {
        return samples;
    }
    std::vector<double> energies;
    for (std::size_t at = 0; at < samples.size(); at += step) {
        double energy = 0;
        for (const float sample : samples.subspan(at, std::min(step, samples.size() - at))) {
            energy += static_cast<double>(sample) * static_cast<double>(sample);
        }
        energies.push_back(energy);
    }
    const std::size_t width = max_samples / step;
    double sum = 0;
    double best = -1;
    std::size_t best_end = width;
    for (std::size_t end = 1; end <= energies.size(); ++end) {
        sum += energies[end - 1] - (end > width ? energies[end - 1 - width] : 0.0);
        if (end >= width && sum > best) {
            best = sum;
            best_end = end;
        }
    }
    const std::size_t first = std::min((best_end - width) * step, samples.size() - max_samples);
    return samples.subspan(first, max_samples);
}

Query make_query(std::span<const float> samples, const Parameters& parameters) {
    Query query;
    const auto hop = static_cast<std::size_t>(parameters.hop_samples);
    query.frames = static_cast<std::uint32_t>((samples.size() + hop - 1) / hop);
    if (!is_audible(samples, parameters)) {
        return query;
    }
    for (std::size_t number = 0; number < parameters.windows.size(); ++number) {
        const WindowParameters& window = parameters.windows[number];
        const SpectrogramShape shape = shape_of(parameters, static_cast<int>(number), 1);
        Spectrogram spectrogram(shape);
        PeakPicker dense(parameters, shape,
                         {.box_frames = window.dense_box_frames,
                          .box_bins = window.dense_box_bins,
                          .peaks_per_band = window.dense_peaks_per_second});
        PeakPicker pairing(parameters, shape,
                           {.box_frames = parameters.query_box_frames,
                            .box_bins = parameters.query_box_bins,
                            .peaks_per_band = parameters.query_peaks_per_second});
        const auto take = [&](std::span<const float> row) {
            dense.take(row);
            if (number == 0) {
                pairing.take(row);
            }
        };
        spectrogram.feed(samples, take);
        spectrogram.finish(take);
        dense.finish();
        query.dense[number] = sorted(dense.picked());
        if (number == 0) {
            pairing.finish();
            query.peaks = sorted(pairing.picked());
        }
    }
    return query;
}

}  // namespace polymux::song
