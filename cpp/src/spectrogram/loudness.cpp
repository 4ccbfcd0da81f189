// ITU-R BS.1770-4: loudness with two filters and two gates, and peaks between the samples.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <new>
#include <numbers>
#include <string>

#include "polymux/spectrogram/sound.hpp"

namespace polymux::spectrogram {

namespace {

constexpr double target_lufs = -16;
constexpr double max_peak_dbtp = -1.5;
/// Louder clips would sound compressed. A click over quiet audio stays quieter than the target.
constexpr double max_limiting_db = 12;
constexpr double close_enough_lu = 0.02;
constexpr int max_rounds = 12;
constexpr double attack_s = 0.005;
constexpr double absolute_gate_lufs = -70;
/// Audio below the gate counts as silence, so it does not reach the target.
constexpr double max_gain_db = target_lufs - absolute_gate_lufs;
constexpr double relative_gate_lu = -10;
constexpr double steps_per_second = 10;
constexpr std::size_t steps_per_block = 4;
/// Points between two samples, and samples on each side from which a point is interpolated.
constexpr int points = 4;
constexpr int reach = 16;

struct Format {
    std::size_t channels;
    double sample_rate_hz;
};

double ratio_of(double decibels) {
    return std::pow(10.0, decibels / 20.0);
}

double lufs_of(double power) {
    return power > 0 ? -0.691 + 10 * std::log10(power) : -std::numeric_limits<double>::infinity();
}

/// A filter of second order in direct form II.
class Biquad {
public:
    Biquad(std::array<double, 3> zeros, std::array<double, 2> poles)
        : zeros_(zeros), poles_(poles) {}

    double operator()(double input) noexcept {
        const double now = input - poles_[0] * first_ - poles_[1] * second_;
        const double output = zeros_[0] * now + zeros_[1] * first_ + zeros_[2] * second_;
        second_ = first_;
        first_ = now;
        return output;
    }

private:
    std::array<double, 3> zeros_;
    std::array<double, 2> poles_;
    double first_ = 0;
    double second_ = 0;
};

/// The standard's filter for the head, at any sample rate (as in libebur128).
Biquad shelf(double sample_rate_hz) {
    constexpr double hz = 1681.974450955533;
    constexpr double quality = 0.7071752369554196;
    const double slope = std::tan(std::numbers::pi * hz / sample_rate_hz);
    const double high = ratio_of(3.999843853973347);
    const double middle = std::pow(high, 0.4996667741545416);
    const double square = slope * slope;
    const double scale = 1 + slope / quality + square;
    return {{(high + middle * slope / quality + square) / scale, 2 * (square - high) / scale,
             (high - middle * slope / quality + square) / scale},
            {2 * (square - 1) / scale, (1 - slope / quality + square) / scale}};
}

Biquad high_pass(double sample_rate_hz) {
    constexpr double hz = 38.13547087602444;
    constexpr double quality = 0.5003270373238773;
    const double slope = std::tan(std::numbers::pi * hz / sample_rate_hz);
    const double scale = 1 + slope / quality + slope * slope;
    return {{1, -2, 1},
            {2 * (slope * slope - 1) / scale, (1 - slope / quality + slope * slope) / scale}};
}

/// Weighted energy of each tenth of a second, per sample and summed over the channels.
std::vector<double> step_powers(std::span<const float> samples, const Format& format) {
    const auto step = static_cast<std::size_t>(format.sample_rate_hz / steps_per_second);
    const std::size_t frames = samples.size() / format.channels;
    std::vector<double> powers(std::max<std::size_t>(1, frames / step));
    for (std::size_t channel = 0; channel < format.channels; ++channel) {
        Biquad head = shelf(format.sample_rate_hz);
        Biquad low = high_pass(format.sample_rate_hz);
        for (std::size_t frame = 0; frame < frames; ++frame) {
            const double value =
                low(head(static_cast<double>(samples[frame * format.channels + channel])));
            // The rest of a step belongs to no block.
            if (frame / step < powers.size()) powers[frame / step] += value * value;
        }
    }
    const auto count = static_cast<double>(std::min(step, frames));
    for (double& power : powers) power /= count;
    return powers;
}

double mean_above(const std::vector<double>& powers, double gate_lufs) {
    double sum = 0;
    std::size_t count = 0;
    for (const double power : powers) {
        if (lufs_of(power) <= gate_lufs) continue;
        sum += power;
        ++count;
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
}

/// The integrated loudness in LUFS. Audio that is shorter than a block counts as one.
double loudness(std::span<const float> samples, const Format& format) {
    const std::vector<double> steps = step_powers(samples, format);
    const std::size_t length = std::min(steps_per_block, steps.size());
    std::vector<double> blocks;
    blocks.reserve(steps.size());
    for (std::size_t first = 0; first + length <= steps.size(); ++first) {
        double sum = 0;
        for (std::size_t at = first; at < first + length; ++at) sum += steps[at];
        blocks.push_back(sum / static_cast<double>(length));
    }
    const double ungated = mean_above(blocks, absolute_gate_lufs);
    const double gate = std::max(absolute_gate_lufs, lufs_of(ungated) + relative_gate_lu);
    return lufs_of(mean_above(blocks, gate));
}

/// Weights of the samples around each point between two samples.
std::array<std::array<double, 2 * reach>, points - 1> interpolation() {
    std::array<std::array<double, 2 * reach>, points - 1> weights{};
    for (int point = 1; point < points; ++point) {
        for (int at = 0; at < 2 * reach; ++at) {
            const double distance = at - (reach - 1) - static_cast<double>(point) / points;
            const double angle = std::numbers::pi * distance;
            const double window = 0.5 + 0.5 * std::cos(angle / (reach + 0.5));
            weights[static_cast<std::size_t>(point - 1)][static_cast<std::size_t>(at)] =
                window * std::sin(angle) / angle;
        }
    }
    return weights;
}

/// The largest magnitude of each frame's samples, and of the points up to the next.
std::vector<float> peaks_of(std::span<const float> samples, const Format& format) {
    static const auto weights = interpolation();
    const std::size_t frames = samples.size() / format.channels;
    std::vector<float> peaks(frames);
    std::vector<float> padded(frames + 2 * reach);
    for (std::size_t channel = 0; channel < format.channels; ++channel) {
        for (std::size_t frame = 0; frame < frames; ++frame) {
            padded[frame + reach - 1] = samples[frame * format.channels + channel];
        }
        for (std::size_t frame = 0; frame < frames; ++frame) {
            double largest = std::abs(static_cast<double>(padded[frame + reach - 1]));
            for (const auto& point : weights) {
                double value = 0;
                for (std::size_t at = 0; at < point.size(); ++at) {
                    value += point[at] * static_cast<double>(padded[frame + at]);
                }
                largest = std::max(largest, std::abs(value));
            }
            peaks[frame] = std::max(peaks[frame], static_cast<float>(largest));
        }
    }
    return peaks;
}

/// The smallest of the values at most `radius` away.
std::vector<double> smallest_nearby(const std::vector<double>& values, std::size_t radius) {
    std::vector<double> found(values.size());
    std::vector<std::size_t> candidates;  // Their values rise; the first is the smallest.
    std::size_t first = 0;
    std::size_t next = 0;
    for (std::size_t at = 0; at < values.size(); ++at) {
        for (; next < std::min(values.size(), at + radius + 1); ++next) {
            while (candidates.size() > first && values[candidates.back()] >= values[next]) {
                candidates.pop_back();
            }
            candidates.push_back(next);
        }
        while (candidates[first] + radius < at) ++first;
        found[at] = values[candidates[first]];
    }
    return found;
}

/// The mean of the values at most `radius` away; the first and last values continue.
std::vector<double> mean_nearby(const std::vector<double>& values, std::size_t radius) {
    std::vector<double> sums(values.size() + 2 * radius + 1);
    for (std::size_t at = 0; at + 1 < sums.size(); ++at) {
        const std::size_t from = at < radius ? 0 : at - radius;
        sums[at + 1] = sums[at] + values[std::min(from, values.size() - 1)];
    }
    std::vector<double> means(values.size());
    const std::size_t width = 2 * radius + 1;
    for (std::size_t at = 0; at < means.size(); ++at) {
        means[at] = (sums[at + width] - sums[at]) / static_cast<double>(width);
    }
    return means;
}

/// Amplifies, and lowers the gain around each peak that would be too high.
std::vector<float> limited(std::span<const float> samples, const std::vector<float>& peaks,
                           const Format& format, double gain) {
    const double limit = ratio_of(max_peak_dbtp);
    std::vector<double> gains(peaks.size());
    for (std::size_t frame = 0; frame < peaks.size(); ++frame) {
        gains[frame] = std::min(gain, limit / std::max(1e-9, static_cast<double>(peaks[frame])));
    }
    const auto radius = static_cast<std::size_t>(attack_s * format.sample_rate_hz);
    gains = mean_nearby(smallest_nearby(gains, radius), radius);
    std::vector<float> louder(samples.size());
    for (std::size_t at = 0; at < louder.size(); ++at) {
        louder[at] =
            static_cast<float>(static_cast<double>(samples[at]) * gains[at / format.channels]);
    }
    return louder;
}

std::vector<float> normalized(std::span<const float> samples, const Format& format,
                              double largest) {
    // The gates apply to the amplified audio.
    std::vector<float> scaled(samples.begin(), samples.end());
    for (float& sample : scaled) {
        sample = static_cast<float>(static_cast<double>(sample) / largest);
    }
    const std::vector<float> peaks = peaks_of(scaled, format);
    const double peak_db =
        20 * std::log10(static_cast<double>(*std::max_element(peaks.begin(), peaks.end())));
    const double highest_db =
        std::min(max_peak_dbtp - peak_db + max_limiting_db, max_gain_db + 20 * std::log10(largest));
    double gain_db = target_lufs - loudness(scaled, format);
    std::vector<float> louder;
    for (int round = 0; round < max_rounds; ++round) {
        // Audio below the gate is infinitely quiet.
        gain_db = std::min(gain_db, highest_db);
        louder = limited(scaled, peaks, format, ratio_of(gain_db));
        const double missing = target_lufs - loudness(louder, format);
        if (std::abs(missing) < close_enough_lu || (gain_db == highest_db && missing > 0)) break;
        gain_db += missing;
    }
    return louder;
}

}  // namespace

Result<std::vector<std::int16_t>> finished(std::span<const float> samples, int channels,
                                           int sample_rate_hz) try {
    if (channels < 1 || samples.size() % static_cast<std::size_t>(channels) != 0 ||
        sample_rate_hz < min_sample_rate_hz) {
        return Error{.code = ErrorCode::invalid_argument,
                     .message = "invalid audio (got " + std::to_string(samples.size()) +
                                " samples, " + std::to_string(channels) + " channels and " +
                                std::to_string(sample_rate_hz) + " Hz)"};
    }
    double largest = 0;
    for (const float sample : samples) {
        if (!std::isfinite(sample)) {
            return Error{.code = ErrorCode::invalid_argument,
                         .message = "the audio contains NaN or infinite samples"};
        }
        largest = std::max(largest, std::abs(static_cast<double>(sample)));
    }
    std::vector<std::int16_t> whole(samples.size());
    if (largest == 0) return whole;
    const Format format{.channels = static_cast<std::size_t>(channels),
                        .sample_rate_hz = static_cast<double>(sample_rate_hz)};
    const std::vector<float> louder = normalized(samples, format, largest);
    for (std::size_t at = 0; at < louder.size(); ++at) {
        whole[at] = static_cast<std::int16_t>(std::lround(louder[at] * 32'767));
    }
    return whole;
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory for the audio samples"};
}

}  // namespace polymux::spectrogram
