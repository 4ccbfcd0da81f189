// What a snippet of sound is asked about with: its peaks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/song/parameters.hpp"

namespace polymux::song {

/// A peak of a snippet: in frames of `Parameters::hop_samples` and in units of `frequency_unit_hz`,
/// both between whole ones.
struct QueryPeak {
    float frame = 0;
    float frequency = 0;
    float prominence = 0;  ///< log2 of the power over what is usual at this frequency.
};

/// All that is needed of a snippet.
struct Query {
    std::uint32_t frames = 0;
    /// Of the first window, the most prominent ones, sorted by frame: their pairs find candidates.
    std::vector<QueryPeak> peaks;
    /// Of each window, all that a song's peak may be found at, sorted by frame.
    std::array<std::vector<QueryPeak>, 2> dense;
};

/// Of one channel's samples at `Parameters::sample_rate_hz`, the loudest part that is no longer
/// than `Parameters::max_query_s`.
[[nodiscard]] std::span<const float> loudest_part(std::span<const float> samples,
                                                  const Parameters& parameters);

/// The peaks of a snippet of at most `Parameters::max_query_s`. Without any where the sound is
/// quieter or shorter than a snippet may be.
[[nodiscard]] Query make_query(std::span<const float> samples, const Parameters& parameters = {});

/// The query as bytes, for another process, and back. Errors: `invalid_argument` for bytes that are
/// no query of these parameters.
[[nodiscard]] std::vector<std::byte> to_bytes(const Query& query, const Parameters& parameters);
Result<Query> query_of(std::span<const std::byte> bytes, const Parameters& parameters);

}  // namespace polymux::song
