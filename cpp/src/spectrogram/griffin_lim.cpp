#include "spectrogram/griffin_lim.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "spectrogram/first_phases.hpp"
#include "spectrogram/frame_grid.hpp"
#include "spectrogram/sections.hpp"

namespace polymux::spectrogram {

namespace {

/// Size of a part of a section. Results are added in order of the parts, so their size must not
/// depend on the number of threads.
constexpr std::size_t part_batches = 8;

Lanes root(const Lanes& squares) noexcept {
    Lanes roots;
    for (std::size_t lane = 0; lane < lane_count; ++lane) roots[lane] = std::sqrt(squares[lane]);
    return roots;
}

/// Keeps the phase and replaces the magnitude.
Bin with_magnitude(const Bin& bin, const Lanes& magnitude) noexcept {
    constexpr float tiny = 1e-30F;  // Silence has no phase.
    const Lanes factor = magnitude / root(bin.r * bin.r + bin.i * bin.i + tiny);
    return {bin.r * factor, bin.i * factor};
}

/// State shared by all parts. Each part writes to its own piece.
class Search {
public:
    Search(const Magnitudes& magnitudes, const Parameters& parameters, std::size_t step)
        : magnitudes_(magnitudes),
          first_(magnitudes, parameters),
          window_samples_(static_cast<std::size_t>(parameters.window_samples)),
          coarse_(parameters, samples_of(magnitudes, parameters), step),
          fine_(parameters, samples_of(magnitudes, parameters), 1),
          transform_(static_cast<std::size_t>(parameters.transform_samples) / step),
          whole_(static_cast<std::size_t>(parameters.transform_samples)),
          weights_(coarse_.inverse_weights()),
          padded_(coarse_.padded_points()),
          before_(coarse_.points()) {}

    [[nodiscard]] std::size_t parts() const noexcept {
        return (magnitudes_.batches() + part_batches - 1) / part_batches;
    }

    Result<void> begin(std::uint64_t seed, const CancelToken& token);

    Result<void> improve(float momentum, const CancelToken& token) {
        return estimate(momentum, token, [this](std::size_t batch, std::span<Bin> bins) {
            keep_phases(batch, bins);
        });
    }

    Result<std::vector<float>> end(const CancelToken& token);

private:
    static std::size_t samples_of(const Magnitudes& magnitudes, const Parameters& parameters) {
        return magnitudes.columns * static_cast<std::size_t>(parameters.hop_samples);
    }

    void choose_phases(std::size_t batch, std::vector<float>& turns, std::span<Bin> bins) const;
    void keep_phases(std::size_t batch, std::span<Bin> bins) const;
    void turn_to_samples(std::size_t batch, std::span<const Bin> coarse, std::span<Bin> fine) const;

    Result<void> estimate(float momentum, const CancelToken& token,
                          FunctionRef<void(std::size_t, std::span<Bin>)> spectra);
    void take_estimate(float momentum);
    void synthesise(const FrameGrid& grid, std::size_t part,
                    FunctionRef<std::span<const Bin>(std::size_t)> frames);
    void add_up(const FrameGrid& grid, std::span<float> sums) const;

    const Magnitudes& magnitudes_;
    FirstPhases first_;
    std::size_t window_samples_;
    FrameGrid coarse_;
    FrameGrid fine_;
    FrameTransform transform_;
    FrameTransform whole_;
    std::vector<float> weights_;
    std::vector<float> padded_;  ///< Input of the next spectra: the estimate with momentum.
    std::vector<float> before_;  ///< The last estimate.
    std::vector<std::vector<float>> pieces_ = std::vector<std::vector<float>>(parts());
};

Result<void> Search::begin(std::uint64_t seed, const CancelToken& token) {
    // Phases continue from frame to frame. To make parts independent, first compute the phases at
    // the start of each part.
    std::vector<std::vector<float>> turns(parts());
    std::vector<float> current = first_.before(seed);
    for (std::size_t part = 0; part < parts(); ++part) {
        if (token.cancelled()) break;  // `estimate` reports it.
        turns[part] = current;
        const std::size_t frame = part * part_batches * batch_frames;
        const std::size_t end = std::min(frame + part_batches * batch_frames, magnitudes_.columns);
        for (std::size_t at = frame; at < end; ++at) first_.advance(at, current);
    }
    return estimate(0, token, [&](std::size_t batch, std::span<Bin> bins) {
        choose_phases(batch, turns[batch / part_batches], bins);
    });
}

void Search::choose_phases(std::size_t batch, std::vector<float>& turns,
                           std::span<Bin> bins) const {
    std::array<std::vector<float>, batch_frames> phases;
    for (std::size_t lane = 0; lane < batch_frames; ++lane) {
        const std::size_t frame = batch * batch_frames + lane;
        if (frame < magnitudes_.columns) first_.advance(frame, turns);
        phases[lane] = turns;
        // From the middle of the window to the start of the frame.
        const std::size_t middle = window_samples_ / 2 - coarse_.frame(frame).late;
        const float turn = static_cast<float>(middle) / static_cast<float>(whole_.length());
        for (std::size_t bin = 1; bin < magnitudes_.bins; ++bin) {
            phases[lane][bin] -= turn * static_cast<float>(bin);
        }
    }
    std::fill(bins.begin(), bins.end(), Bin{Lanes{}, Lanes{}});
    const Pair* wanted = magnitudes_.batch(batch);
    for (std::size_t bin = 1; bin < magnitudes_.bins; ++bin) {
        Spectra spectra;
        for (std::size_t lane = 0; lane < batch_frames; ++lane) {
            const float phase = phases[lane][bin] * 2 * std::numbers::pi_v<float>;
            Bin& to = lane < lane_count ? spectra.first : spectra.second;
            const Lanes& magnitude = lane < lane_count ? wanted[bin].first : wanted[bin].second;
            const std::size_t number = lane % lane_count;
            to.r[number] = magnitude[number] * std::cos(phase);
            to.i[number] = magnitude[number] * std::sin(phase);
        }
        pack(spectra, bins[bin], bins[bins.size() - bin]);
    }
}

void Search::keep_phases(std::size_t batch, std::span<Bin> bins) const {
    coarse_.gather(padded_, batch * batch_frames, bins);
    transform_.forward(bins.data());
    const Pair* wanted = magnitudes_.batch(batch);
    const std::size_t length = bins.size();
    bins[0] = {Lanes{}, Lanes{}};
    for (std::size_t bin = 1; bin < magnitudes_.bins; ++bin) {
        const Spectra found = unpacked(bins[bin], bins[length - bin]);
        const Spectra kept = {with_magnitude(found.first, wanted[bin].first),
                              with_magnitude(found.second, wanted[bin].second)};
        pack(kept, bins[bin], bins[length - bin]);
    }
    for (std::size_t bin = magnitudes_.bins; bin <= length - magnitudes_.bins; ++bin) {
        bins[bin] = {Lanes{}, Lanes{}};
    }
}

/// Converts spectra on every second sample to spectra on all samples: they differ only in where a
/// frame began.
void Search::turn_to_samples(std::size_t batch, std::span<const Bin> coarse,
                             std::span<Bin> fine) const {
    std::fill(fine.begin(), fine.end(), Bin{Lanes{}, Lanes{}});
    Pair late{};
    for (std::size_t lane = 0; lane < batch_frames; ++lane) {
        Lanes& to = lane < lane_count ? late.first : late.second;
        const FrameGrid::Frame at = coarse_.frame(batch * batch_frames + lane);
        to[lane % lane_count] = static_cast<float>(at.late);
    }
    const auto turned = [](const Bin& bin, const Lanes& by, float real, float imaginary) -> Bin {
        const Lanes cosine = 1.0F + by * (real - 1.0F);
        const Lanes sine = by * imaginary;
        return {bin.r * cosine - bin.i * sine, bin.r * sine + bin.i * cosine};
    };
    for (std::size_t bin = 1; bin < magnitudes_.bins; ++bin) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(bin) / static_cast<double>(fine.size());
        const auto real = static_cast<float>(std::cos(angle));
        const auto imaginary = static_cast<float>(std::sin(angle));
        const Spectra found = unpacked(coarse[bin], coarse[coarse.size() - bin]);
        const Spectra turning = {turned(found.first, late.first, real, imaginary),
                                 turned(found.second, late.second, real, imaginary)};
        pack(turning, fine[bin], fine[fine.size() - bin]);
    }
}

/// Adds the frames of one part to its piece.
void Search::synthesise(const FrameGrid& grid, std::size_t part,
                        FunctionRef<std::span<const Bin>(std::size_t)> frames) {
    const std::size_t first = part * part_batches;
    const std::size_t end = std::min(first + part_batches, magnitudes_.batches());
    const std::size_t origin = grid.frame(first * batch_frames).begin;
    const std::size_t last = std::min(end * batch_frames, magnitudes_.columns) - 1;
    std::vector<float>& piece = pieces_[part];
    piece.assign(grid.frame(last).begin + grid.window(0).size() - origin, 0.0F);
    for (std::size_t batch = first; batch < end; ++batch) {
        grid.scatter(frames(batch), batch * batch_frames, origin, piece);
    }
}

/// Sums the pieces, from the first padded point on.
void Search::add_up(const FrameGrid& grid, std::span<float> sums) const {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (std::size_t part = 0; part < pieces_.size(); ++part) {
        float* to = sums.data() + grid.frame(part * part_batches * batch_frames).begin;
        for (std::size_t at = 0; at < pieces_[part].size(); ++at) to[at] += pieces_[part][at];
    }
}

Result<void> Search::estimate(float momentum, const CancelToken& token,
                              FunctionRef<void(std::size_t, std::span<Bin>)> spectra) {
    const auto part = [&](std::size_t number) {
        std::vector<Bin> bins(transform_.length());
        synthesise(coarse_, number, [&](std::size_t batch) -> std::span<const Bin> {
            spectra(batch, bins);
            transform_.backward(bins.data());
            return bins;
        });
    };
    Result<void> done = in_parts(parts(), part, token);
    if (done) take_estimate(momentum);
    return done;
}

void Search::take_estimate(float momentum) {
    add_up(coarse_, padded_);
    const float pushed = momentum / (1.0F + momentum);
    float* sound = padded_.data() + coarse_.padding();
    for (std::size_t point = 0; point < coarse_.points(); ++point) {
        const float now = sound[point] * weights_[point];
        sound[point] = now - pushed * before_[point];
        before_[point] = now;
    }
    coarse_.reflect(padded_);
}

Result<std::vector<float>> Search::end(const CancelToken& token) {
    const auto part = [&](std::size_t number) {
        std::vector<Bin> coarse(transform_.length());
        std::vector<Bin> fine(whole_.length());
        synthesise(fine_, number, [&](std::size_t batch) -> std::span<const Bin> {
            keep_phases(batch, coarse);
            turn_to_samples(batch, coarse, fine);
            whole_.backward(fine.data());
            return fine;
        });
    };
    if (Result<void> done = in_parts(parts(), part, token); !done) return done.error();
    std::vector<float> sums(fine_.padded_points());
    add_up(fine_, sums);
    std::vector<float> samples = fine_.inverse_weights();
    for (std::size_t at = 0; at < samples.size(); ++at) samples[at] *= sums[fine_.padding() + at];
    return samples;
}

/// Every second sample is enough if the signal is inaudible near a quarter of the sample rate.
std::size_t step_for(const Magnitudes& magnitudes, const Parameters& parameters) {
    const auto quarter = static_cast<std::size_t>(parameters.transform_samples) / 4;
    return magnitudes.bins * 20 <= quarter * 19 ? 2 : 1;
}

}  // namespace

Result<std::vector<float>> griffin_lim(const Magnitudes& magnitudes, std::uint64_t seed,
                                       const Parameters& parameters,
                                       const std::function<void(double)>& on_progress,
                                       const CancelToken& token) {
    Search search(magnitudes, parameters, step_for(magnitudes, parameters));
    if (Result<void> begun = search.begin(seed, token); !begun) return begun.error();
    const int rounds = parameters.iterations;
    for (int round = 1; round < rounds; ++round) {
        if (on_progress) on_progress(static_cast<double>(round) / rounds);
        Result<void> improved = search.improve(parameters.momentum, token);
        if (!improved) return improved.error();
    }
    return search.end(token);
}

}  // namespace polymux::spectrogram
