#include "spectrogram/frame_grid.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace polymux::spectrogram {

FrameGrid::FrameGrid(const Parameters& parameters, std::size_t samples, std::size_t step)
    : hop_(static_cast<std::size_t>(parameters.hop_samples)),
      half_(static_cast<std::size_t>(parameters.window_samples) / 2),
      step_(step),
      samples_(samples),
      frames_((samples + hop_ - 1) / hop_),
      points_((samples + step - 1) / step),
      padding_(half_ / step + 1) {
    for (std::size_t late = 0; late < step; ++late) {
        for (std::size_t at = late; at < 2 * half_; at += step) {
            const double phase =
                std::numbers::pi * static_cast<double>(at) / static_cast<double>(half_);
            windows_[late].push_back(static_cast<float>(0.5 - 0.5 * std::cos(phase)));
        }
    }
}

FrameGrid::Frame FrameGrid::frame(std::size_t number) const noexcept {
    // Counted from the first padded point, which is sample -step * padding.
    const std::size_t from = number * hop_ + step_ * padding_ - half_;
    const std::size_t begin = (from + step_ - 1) / step_;
    return {.begin = begin, .late = begin * step_ - from};
}

void FrameGrid::reflect(std::span<float> padded) const noexcept {
    const auto points = static_cast<std::ptrdiff_t>(points_);
    const auto beyond = static_cast<std::ptrdiff_t>(padding_);
    const auto mirror = static_cast<std::ptrdiff_t>(2 * (samples_ - 1) / step_);
    const auto inside = [&](std::ptrdiff_t point) {
        // Audio shorter than a window is reflected more than once; a single point, endlessly.
        while (points > 1 && (point < 0 || point >= points)) {
            point = point < 0 ? -point : mirror - point;
        }
        return padded[static_cast<std::size_t>(points > 1 ? point + beyond : beyond)];
    };
    for (std::ptrdiff_t at = 0; at < beyond; ++at) {
        padded[static_cast<std::size_t>(at)] = inside(at - beyond);
        padded[static_cast<std::size_t>(at + beyond + points)] = inside(at + points);
    }
}

std::vector<float> FrameGrid::inverse_weights() const {
    std::vector<float> sums(padded_points());
    for (std::size_t number = 0; number < frames_; ++number) {
        const Frame at = frame(number);
        const std::span<const float> values = window(at.late);
        for (std::size_t index = 0; index < values.size(); ++index) {
            sums[at.begin + index] += values[index] * values[index];
        }
    }
    std::vector<float> weights(points_);
    for (std::size_t point = 0; point < points_; ++point) {
        weights[point] = 1.0F / sums[padding_ + point];
    }
    return weights;
}

void FrameGrid::gather(std::span<const float> padded, std::size_t first,
                       std::span<Bin> bins) const {
    const std::size_t length = window(0).size();
    std::array<const float*, batch_frames> from{};
    std::array<const float*, batch_frames> shape{};
    const std::vector<float> nothing(length);
    for (std::size_t lane = 0; lane < batch_frames; ++lane) {
        const bool there = first + lane < frames_;
        const Frame at = there ? frame(first + lane) : Frame{};
        from[lane] = there ? padded.data() + at.begin : nothing.data();
        shape[lane] = window(at.late).data();
    }
    for (std::size_t at = 0; at < length; ++at) {
        for (std::size_t lane = 0; lane < lane_count; ++lane) {
            const std::size_t other = lane + lane_count;
            bins[at].r[lane] = from[lane][at] * shape[lane][at];
            bins[at].i[lane] = from[other][at] * shape[other][at];
        }
    }
    std::fill(bins.begin() + static_cast<std::ptrdiff_t>(length), bins.end(),
              Bin{Lanes{}, Lanes{}});
}

void FrameGrid::scatter(std::span<const Bin> bins, std::size_t first, std::size_t origin,
                        std::span<float> sums) const {
    for (std::size_t lane = 0; lane < batch_frames && first + lane < frames_; ++lane) {
        const Frame at = frame(first + lane);
        const std::span<const float> shape = window(at.late);
        float* to = sums.data() + (at.begin - origin);
        const std::size_t number = lane % lane_count;
        if (lane < lane_count) {
            for (std::size_t index = 0; index < shape.size(); ++index) {
                to[index] += bins[index].r[number] * shape[index];
            }
        } else {
            for (std::size_t index = 0; index < shape.size(); ++index) {
                to[index] += bins[index].i[number] * shape[index];
            }
        }
    }
}

}  // namespace polymux::spectrogram
