#include "song/verifier.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "song/whole_part.hpp"

namespace polymux::song {

namespace {

float levels_per_doubling(int levels, const LikelihoodParameters& likelihood) {
    return static_cast<float>(levels - 1) /
           std::log2(likelihood.max_chance / likelihood.min_chance);
}

}  // namespace

float strength_of(const WindowEvidence& evidence) noexcept {
    return evidence.peaks == 0
               ? 0.0F
               : evidence.likelihood / std::sqrt(static_cast<float>(evidence.peaks));
}

Verifier::Verifier(const Query& query, const Parameters& parameters, int window)
    : frames_(static_cast<int>(query.frames)),
      min_survival_(parameters.likelihood.min_survival),
      survivals_(parameters.likelihood.max_survival - parameters.likelihood.min_survival) {
    const WindowParameters& shape = parameters.windows[static_cast<std::size_t>(window)];
    // Two cells per bin of the first window, and as many per bin of the second.
    cells_per_unit_ = static_cast<float>(shape.length_samples) / 4'096.0F;
    cells_ = static_cast<int>(static_cast<float>(frequency_mask + 1) * cells_per_unit_);
    words_ = (static_cast<std::size_t>(cells_) + 63) / 64;
    bits_.resize(words_ * static_cast<std::size_t>(frames_));
    set_cells(query.dense[static_cast<std::size_t>(window)], shape);
    measure_chances(parameters.likelihood);
    tabulate(parameters.likelihood);
}

void Verifier::tabulate(const LikelihoodParameters& likelihood) {
    const float scale = levels_per_doubling(chance_levels, likelihood);
    for (std::size_t row = 0; row < survival_levels; ++row) {
        const float survival = survival_at(row);
        losses_[row] = std::log(1.0F - survival);
        for (std::size_t level = 0; level < chance_levels; ++level) {
            const float chance =
                likelihood.min_chance * std::exp2(static_cast<float>(level) / scale);
            gains_[level][row] = std::log(1.0F + (1.0F - chance) * survival / chance);
        }
    }
}

float Verifier::survival_at(std::size_t row) const noexcept {
    return min_survival_ +
           survivals_ * (static_cast<float>(row) / static_cast<float>(survival_levels - 1));
}

void Verifier::set_cells(std::span<const QueryPeak> peaks, const WindowParameters& window) {
    const float reach = window.tolerance_bins * 2.0F;
    for (const QueryPeak& peak : peaks) {
        const int frame = static_cast<int>(std::lround(peak.frame));
        const float cell = peak.frequency * cells_per_unit_;
        const int first_cell = std::max(static_cast<int>(std::ceil(cell - reach)), 0);
        const int last_cell = std::min(static_cast<int>(std::floor(cell + reach)), cells_ - 1);
        const int first = std::max(frame - window.tolerance_frames, 0);
        const int last = std::min(frame + window.tolerance_frames, frames_ - 1);
        for (int row = first; row <= last; ++row) {
            std::uint64_t* words = bits_.data() + static_cast<std::size_t>(row) * words_;
            for (int column = first_cell; column <= last_cell; ++column) {
                words[static_cast<std::size_t>(column) / 64] |= 1ULL << (column % 64);
            }
        }
    }
}

void Verifier::measure_chances(const LikelihoodParameters& likelihood) {
    std::vector<float> by_cell(static_cast<std::size_t>(cells_));
    std::vector<float> by_frame(static_cast<std::size_t>(frames_));
    float set = 0;
    int first_set = cells_;
    int last_set = -1;
    for (int frame = 0; frame < frames_; ++frame) {
        for (std::size_t word = 0; word < words_; ++word) {
            std::uint64_t bits = bits_[static_cast<std::size_t>(frame) * words_ + word];
            for (; bits != 0; bits &= bits - 1) {
                const int cell = static_cast<int>(word) * 64 + std::countr_zero(bits);
                by_cell[static_cast<std::size_t>(cell)] += 1.0F;
                by_frame[static_cast<std::size_t>(frame)] += 1.0F;
                first_set = std::min(first_set, cell);
                last_set = std::max(last_set, cell);
                set += 1.0F;
            }
        }
    }
    const float width = static_cast<float>(std::max(last_set - first_set + 1, 1));
    const float frames = static_cast<float>(std::max(frames_, 1));
    const float mean = std::max(set / (width * frames), 1e-4F);
    const float scale = levels_per_doubling(chance_levels, likelihood);
    frame_levels_.resize(by_frame.size());
    for (std::size_t frame = 0; frame < by_frame.size(); ++frame) {
        const float busy =
            (by_frame[frame] + likelihood.prior_of_moment * mean * width) / width / mean;
        frame_levels_[frame] = static_cast<std::int16_t>(std::lround(std::log2(busy) * scale));
    }
    cell_levels_.resize(by_cell.size());
    for (int cell = 0; cell < cells_; ++cell) {
        float sum = 0;
        float count = 0;
        for (int near = std::max(cell - likelihood.smoothed_cells, 0);
             near <= std::min(cell + likelihood.smoothed_cells, cells_ - 1); ++near) {
            sum += by_cell[static_cast<std::size_t>(near)];
            count += 1.0F;
        }
        const float prior = likelihood.prior_frames;
        const float busy = (sum / count + prior * mean) / (frames + prior);
        cell_levels_[static_cast<std::size_t>(cell)] =
            static_cast<std::int16_t>(std::lround(std::log2(busy / likelihood.min_chance) * scale));
    }
}

std::optional<Verifier::Cell> Verifier::cell_of(PackedPeak peak,
                                                const Alignment& alignment) const noexcept {
    const float at =
        (static_cast<float>(frame_of(peak)) - alignment.offset) / alignment.time_factor;
    const int frame = whole_part(at + 0.5F);
    const float frequency = static_cast<float>(frequency_of(peak)) * alignment.frequency_factor;
    const int cell = whole_part(frequency * cells_per_unit_ + 0.5F);
    if (frame < 0 || frame >= frames_ || cell >= cells_) {
        return std::nullopt;
    }
    return Cell{.frame = static_cast<std::size_t>(frame), .cell = static_cast<std::size_t>(cell)};
}

bool Verifier::is_set(const Cell& cell) const noexcept {
    return (bits_[cell.frame * words_ + cell.cell / 64] >> (cell.cell % 64) & 1U) != 0;
}

std::size_t Verifier::level_of(const Cell& cell) const noexcept {
    const int level = frame_levels_[cell.frame] + cell_levels_[cell.cell];
    return static_cast<std::size_t>(std::clamp(level, 0, chance_levels - 1));
}

WindowEvidence Verifier::judge(std::span<const PackedPeak> peaks,
                               const Alignment& alignment) const {
    std::array<int, chance_levels> hits_at{};
    WindowEvidence evidence;
    for (const PackedPeak peak : peaks) {
        const std::optional<Cell> cell = cell_of(peak, alignment);
        if (!cell) {
            continue;
        }
        ++evidence.peaks;
        if (is_set(*cell)) {
            ++evidence.hits;
            ++hits_at[level_of(*cell)];
        }
    }
    const auto misses = static_cast<float>(evidence.peaks - evidence.hits);
    std::array<float, survival_levels> sums;
    for (std::size_t row = 0; row < survival_levels; ++row) {
        sums[row] = misses * losses_[row];
    }
    for (std::size_t level = 0; level < chance_levels; ++level) {
        if (hits_at[level] == 0) {
            continue;
        }
        const auto hits = static_cast<float>(hits_at[level]);
        for (std::size_t row = 0; row < survival_levels; ++row) {
            sums[row] += hits * gains_[level][row];
        }
    }
    for (std::size_t row = 0; row < survival_levels; ++row) {
        if (sums[row] > evidence.likelihood) {
            evidence.likelihood = sums[row];
            evidence.survival = survival_at(row);
        }
    }
    return evidence;
}

}  // namespace polymux::song
