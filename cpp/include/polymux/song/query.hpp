// The query that a snippet makes to the index: its peaks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/song/parameters.hpp"

namespace polymux::song {

/// A peak of a snippet, in frames of `Parameters::hop_samples` and in units of `frequency_unit_hz`.
/// Both can be fractional.
struct QueryPeak {
    float frame = 0;
    float frequency = 0;
    float prominence = 0;  ///< log2 of the power relative to the usual power at this frequency.
};

/// The data of a snippet that recognition needs.
struct Query {
    std::uint32_t frames = 0;
    /// The most prominent peaks of the first window, sorted by frame. Their pairs find candidates.
    std::vector<QueryPeak> peaks;
    /// For each window, all peaks that can match a song's peak, sorted by frame.
    std::array<std::vector<QueryPeak>, 2> dense;
};

/// Returns the loudest part, at most `Parameters::max_query_s` long, of one channel's samples at
/// `Parameters::sample_rate_hz`.
[[nodiscard]] std::span<const float> loudest_part(std::span<const float> samples,
                                                  const Parameters& parameters);

/// Finds the peaks of a snippet of at most `Parameters::max_query_s`. Returns no peaks if the audio
/// is quieter or shorter than the minimum.
[[nodiscard]] Query make_query(std::span<const float> samples, const Parameters& parameters = {});

/// Serializes the query for another process, and parses it. Errors: `invalid_argument` for bytes
/// that are not a query with these parameters.
[[nodiscard]] std::vector<std::byte> to_bytes(const Query& query, const Parameters& parameters);
Result<Query> query_of(std::span<const std::byte> bytes, const Parameters& parameters);

}  // namespace polymux::song
