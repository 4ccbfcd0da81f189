#include "song/peak_picker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace polymux::song {

namespace {

constexpr float units_of_shortest_bin = 8'192.0F;

}  // namespace

PeakPicker::PeakPicker(const Parameters& parameters, const SpectrogramShape& spectrogram,
                       const PickerShape& shape)
    : spectrogram_(spectrogram),
      shape_(shape),
      slice_frames_(parameters.slice_frames),
      usual_bins_(parameters.baseline_bins),
      level_range_(parameters.level_range),
      units_per_bin_(units_of_shortest_bin / static_cast<float>(spectrogram.length_samples)),
      finder_(spectrogram.bins, shape.box_frames, shape.box_bins, parameters.lowest_level),
      by_band_(static_cast<std::size_t>(shape.bands)),
      chunk_end_(shape.chunk_rows == 0 ? std::numeric_limits<std::uint64_t>::max()
                                       : shape.chunk_rows) {
    baseline_.sums.resize(spectrogram.bins);
    next_.sums.resize(spectrogram.bins);
    const float ratio = parameters.highest_hz / parameters.lowest_hz;
    for (int band = 1; band < shape.bands; ++band) {
        const float part = static_cast<float>(band) / static_cast<float>(shape.bands);
        const float end_hz = parameters.lowest_hz * std::pow(ratio, part);
        band_ends_.push_back(end_hz / frequency_unit_hz);
    }
}

void PeakPicker::take(std::span<const float> row) {
    finder_.take(row, found_);
    Baseline& baseline = rows_ < chunk_end_ ? baseline_ : next_;
    for (std::size_t bin = 0; bin < row.size(); ++bin) {
        baseline.sums[bin] += row[bin];
    }
    ++baseline.rows;
    ++rows_;
    if (next_.rows > static_cast<std::uint64_t>(shape_.box_frames)) {
        end_chunk(chunk_end_);
        chunk_end_ += shape_.chunk_rows;
        std::swap(baseline_, next_);
        std::fill(next_.sums.begin(), next_.sums.end(), 0.0F);
        next_.rows = 0;
    }
}

void PeakPicker::finish() {
    finder_.finish(found_);
    for (std::size_t bin = 0; bin < baseline_.sums.size(); ++bin) {
        baseline_.sums[bin] += next_.sums[bin];
    }
    baseline_.rows += next_.rows;
    end_chunk(std::numeric_limits<std::uint64_t>::max());
}

void PeakPicker::end_chunk(std::uint64_t end_row) {
    const auto end = std::find_if(found_.begin(), found_.end(), [end_row](const FoundPeak& peak) {
        return peak.frame >= end_row;
    });
    if (baseline_.rows > 0) {
        pick(smoothed(), std::span(found_.begin(), end));
    }
    found_.erase(found_.begin(), end);
}

std::vector<float> PeakPicker::smoothed() const {
    const auto bins = static_cast<std::ptrdiff_t>(baseline_.sums.size());
    std::vector<double> running(baseline_.sums.size() + 1);
    for (std::size_t bin = 0; bin < baseline_.sums.size(); ++bin) {
        running[bin + 1] = running[bin] + static_cast<double>(baseline_.sums[bin]);
    }
    std::vector<float> baseline(baseline_.sums.size());
    for (std::ptrdiff_t bin = 0; bin < bins; ++bin) {
        const std::ptrdiff_t first = std::max<std::ptrdiff_t>(bin - usual_bins_, 0);
        const std::ptrdiff_t end = std::min(bin + usual_bins_ + 1, bins);
        const double sum =
            running[static_cast<std::size_t>(end)] - running[static_cast<std::size_t>(first)];
        baseline[static_cast<std::size_t>(bin)] = static_cast<float>(
            sum / static_cast<double>(end - first) / static_cast<double>(baseline_.rows));
    }
    return baseline;
}

void PeakPicker::pick(std::span<const float> baseline, std::span<const FoundPeak> peaks) {
    const auto rows_per_slice = static_cast<std::uint32_t>(slice_frames_ / shape_.stride);
    while (!peaks.empty()) {
        const std::uint32_t number = peaks.front().frame / rows_per_slice;
        const auto end = std::ranges::find_if(
            peaks, [&](const FoundPeak& peak) { return peak.frame / rows_per_slice != number; });
        const auto count = static_cast<std::size_t>(end - peaks.begin());
        pick_slice(baseline, peaks.first(count));
        peaks = peaks.subspan(count);
    }
}

std::size_t PeakPicker::band_of(float frequency) const noexcept {
    return static_cast<std::size_t>(
        std::upper_bound(band_ends_.begin(), band_ends_.end(), frequency) - band_ends_.begin());
}

void PeakPicker::pick_slice(std::span<const float> baseline, std::span<const FoundPeak> peaks) {
    const float loudest = std::ranges::max(peaks, {}, &FoundPeak::level).level;
    for (const FoundPeak& peak : peaks) {
        if (peak.level < loudest - level_range_) {
            continue;
        }
        const auto bin = static_cast<std::size_t>(std::lround(peak.bin));
        const float frame = peak.at() * static_cast<float>(shape_.stride);
        const float frequency =
            (static_cast<float>(spectrogram_.first_bin) + peak.bin) * units_per_bin_;
        by_band_[band_of(frequency)].push_back(
            {.frame = std::max(frame, 0.0F),
             .frequency = frequency,
             .prominence = peak.level - baseline[std::min(bin, baseline.size() - 1)]});
    }
    const auto max_count = static_cast<std::size_t>(shape_.peaks_per_band);
    for (std::vector<PickedPeak>& band : by_band_) {
        if (band.size() > max_count) {
            std::nth_element(band.begin(), band.begin() + static_cast<std::ptrdiff_t>(max_count),
                             band.end(), [](const PickedPeak& one, const PickedPeak& other) {
                                 return one.prominence > other.prominence;
                             });
            band.resize(max_count);
        }
        picked_.insert(picked_.end(), band.begin(), band.end());
        band.clear();
    }
}

}  // namespace polymux::song
