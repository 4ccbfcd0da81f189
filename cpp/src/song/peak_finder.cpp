#include "song/peak_finder.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "song/spectrogram.hpp"

namespace polymux::song {

namespace {

/// The top of the parabola through three neighbors, relative to the middle one.
float top_of(float before, float middle, float after) noexcept {
    const float curvature = before - 2.0F * middle + after;
    if (curvature >= 0.0F) {
        return 0.0F;
    }
    return std::clamp(0.5F * (before - after) / curvature, -0.5F, 0.5F);
}

/// out[i] = the largest of the `width` values from in[i] on; `scratch` has the length of `in`.
void running_maxima(std::span<float> in, std::span<float> scratch, std::size_t width,
                    std::span<float> out) {
    std::size_t reach = 1;
    std::size_t length = in.size();
    float* from = in.data();
    float* to = scratch.data();
    while (reach * 2 <= width) {
        length -= reach;
        for (std::size_t index = 0; index < length; ++index) {
            to[index] = from[index] > from[index + reach] ? from[index] : from[index + reach];
        }
        std::swap(from, to);
        reach *= 2;
    }
    const std::size_t rest = width - reach;
    for (std::size_t index = 0; index < out.size(); ++index) {
        out[index] = from[index] > from[index + rest] ? from[index] : from[index + rest];
    }
}

}  // namespace

PeakFinder::PeakFinder(std::size_t bins, int box_frames, int box_bins, float lowest_level)
    : bins_(bins),
      lowest_level_(lowest_level),
      box_frames_(static_cast<std::uint64_t>(box_frames)),
      box_bins_(static_cast<std::size_t>(box_bins)),
      ring_rows_(2 * box_frames_ + 1),
      levels_(ring_rows_ * bins),
      maxima_(ring_rows_ * bins),
      padded_(bins + 2 * box_bins_),
      widened_(bins + 2 * box_bins_),
      nothing_(bins, std::numeric_limits<float>::lowest()) {}

const float* PeakFinder::levels(std::uint64_t frame) const {
    return levels_.data() + (frame % ring_rows_) * bins_;
}

const float* PeakFinder::maxima(std::uint64_t frame) const {
    return maxima_.data() + (frame % ring_rows_) * bins_;
}

void PeakFinder::take(std::span<const float> row, std::vector<FoundPeak>& peaks) {
    float* levels = levels_.data() + (rows_ % ring_rows_) * bins_;
    std::copy(row.begin(), row.end(), levels);
    std::fill(padded_.begin(), padded_.end(), std::numeric_limits<float>::lowest());
    std::copy(row.begin(), row.end(), padded_.begin() + static_cast<std::ptrdiff_t>(box_bins_));
    running_maxima(padded_, widened_, 2 * box_bins_ + 1,
                   {maxima_.data() + (rows_ % ring_rows_) * bins_, bins_});
    ++rows_;
    if (rows_ > box_frames_) {
        find(found_++, peaks);
    }
}

void PeakFinder::finish(std::vector<FoundPeak>& peaks) {
    while (found_ < rows_) {
        find(found_++, peaks);
    }
}

void PeakFinder::find(std::uint64_t frame, std::vector<FoundPeak>& peaks) const {
    // Few cells are the maximum of the box in their own row and the following rows, so skip many at
    // a time.
    constexpr std::size_t at_once = 16;
    const float* level = levels(frame);
    const float* largest = maxima(frame);
    const float* before = frame >= 1 ? maxima(frame - 1) : nothing_.data();
    const float* after = frame + 1 < rows_ ? maxima(frame + 1) : nothing_.data();
    const bool far = box_frames_ >= 2;
    const float* long_before = far && frame >= 2 ? maxima(frame - 2) : nothing_.data();
    const float* long_after = far && frame + 2 < rows_ ? maxima(frame + 2) : nothing_.data();
    for (std::size_t first = 0; first < bins_; first += at_once) {
        const std::size_t end = std::min(first + at_once, bins_);
        unsigned any = 0;
        for (std::size_t bin = first; bin < end; ++bin) {
            const float near = std::max(std::max(before[bin], after[bin]),
                                        std::max(long_before[bin], long_after[bin]));
            any |= level[bin] >= std::max(largest[bin], near) ? 1U : 0U;
        }
        for (std::size_t bin = first; any != 0 && bin < end; ++bin) {
            if (level[bin] >= largest[bin] && is_peak(frame, bin, level[bin])) {
                peaks.push_back(interpolated(frame, bin));
            }
        }
    }
}

bool PeakFinder::is_peak(std::uint64_t frame, std::size_t bin, float level) const {
    if (level < lowest_level_) {
        return false;
    }
    // Step through the ring's slots, to avoid a division for each.
    std::size_t before = frame % ring_rows_;
    std::size_t after = before;
    for (std::uint64_t distance = 1; distance <= box_frames_; ++distance) {
        before = before == 0 ? ring_rows_ - 1 : before - 1;
        after = after + 1 == ring_rows_ ? 0 : after + 1;
        if (distance <= frame && maxima_[before * bins_ + bin] >= level) {
            return false;
        }
        if (frame + distance < rows_ && maxima_[after * bins_ + bin] > level) {
            return false;
        }
    }
    // The first of equal cells is the peak.
    const std::size_t reach = std::min(bin, box_bins_);
    const float* own = levels(frame);
    for (std::size_t other = bin - reach; other < bin; ++other) {
        if (own[other] == level) {
            return false;
        }
    }
    return true;
}

FoundPeak PeakFinder::interpolated(std::uint64_t frame, std::size_t bin) const {
    const float* level = levels(frame);
    const float middle = exact_level(level[bin]);
    FoundPeak peak{.frame_offset = 0,
                   .bin = static_cast<float>(bin),
                   .level = middle,
                   .frame = static_cast<std::uint32_t>(frame)};
    if (bin > 0 && bin + 1 < bins_) {
        peak.bin += top_of(exact_level(level[bin - 1]), middle, exact_level(level[bin + 1]));
    }
    if (frame > 0 && frame + 1 < rows_) {
        peak.frame_offset = top_of(exact_level(levels(frame - 1)[bin]), middle,
                                   exact_level(levels(frame + 1)[bin]));
    }
    return peak;
}

}  // namespace polymux::song
