// The second stage: checks whether the snippet has the song's peaks at that place, more than by
// chance.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "polymux/song/matcher.hpp"
#include "polymux/song/peaks.hpp"
#include "polymux/song/query.hpp"

namespace polymux::song {

/// Alignment of a snippet with a song: `song frame = offset + snippet frame * time_factor`, and
/// `snippet frequency = song frequency * frequency_factor`. For a song that is played 2 % faster,
/// both factors are 1.02.
struct Alignment {
    float offset = 0;
    float time_factor = 1;
    float frequency_factor = 1;
};

/// The likelihood, normalized for snippets of different lengths.
[[nodiscard]] float strength_of(const WindowEvidence& evidence) noexcept;

/// One window's dense peaks of a snippet as a map of cells. If a song's peak hits a set cell, it
/// counts more the less often that frequency and that moment are set: steady tones and busy moments
/// are set anyway.
class Verifier {
public:
    Verifier(const Query& query, const Parameters& parameters, int window);

    /// `peaks` are the song's, with frames in the same units as `alignment.offset`.
    [[nodiscard]] WindowEvidence judge(std::span<const PackedPeak> peaks,
                                       const Alignment& alignment) const;

private:
    struct Cell {
        std::size_t frame = 0;
        std::size_t cell = 0;
    };

    [[nodiscard]] std::optional<Cell> cell_of(PackedPeak peak,
                                              const Alignment& alignment) const noexcept;
    [[nodiscard]] bool is_set(const Cell& cell) const noexcept;
    [[nodiscard]] std::size_t level_of(const Cell& cell) const noexcept;

    /// Resolution of both tables; finer steps change almost nothing.
    static constexpr int chance_levels = 64;
    static constexpr int survival_levels = 12;

    void set_cells(std::span<const QueryPeak> peaks, const WindowParameters& window);
    void measure_chances(const LikelihoodParameters& likelihood);
    void tabulate(const LikelihoodParameters& likelihood);
    [[nodiscard]] float survival_at(std::size_t row) const noexcept;

    int frames_ = 0;
    int cells_ = 0;
    float cells_per_unit_ = 1;
    std::vector<std::uint64_t> bits_;
    std::size_t words_ = 0;
    /// Logarithm of how busy a frame and a cell are, in steps of the chance's level.
    std::vector<std::int16_t> frame_levels_;
    std::vector<std::int16_t> cell_levels_;
    std::array<std::array<float, survival_levels>, chance_levels> gains_;
    std::array<float, survival_levels> losses_;
    float min_survival_ = 0;
    float survivals_ = 0;  ///< From the minimum to the maximum.
};

}  // namespace polymux::song
