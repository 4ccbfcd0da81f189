#include <algorithm>
#include <array>
#include <map>

#include "polymux/song/matcher.hpp"

namespace polymux::song {

namespace {

std::vector<QueryPeak> excerpt_of(std::span<const PackedPeak> peaks, std::uint32_t first,
                                  std::uint32_t frames) {
    std::vector<QueryPeak> taken;
    auto at = std::lower_bound(peaks.begin(), peaks.end(), pack(first, 0));
    for (; at != peaks.end() && frame_of(*at) < first + frames; ++at) {
        taken.push_back({.frame = static_cast<float>(frame_of(*at) - first),
                         .frequency = static_cast<float>(frequency_of(*at))});
    }
    return taken;
}

Query query_at(const Fingerprint& fingerprint, std::uint32_t first, std::uint32_t frames) {
    Query query;
    query.frames = std::min(frames, fingerprint.frames - first);
    query.peaks = excerpt_of(fingerprint.peaks[0], first, frames);
    for (std::size_t window = 0; window < query.dense.size(); ++window) {
        query.dense[window] = excerpt_of(fingerprint.peaks[window], first, frames);
    }
    return query;
}

bool is_same(const Candidate& candidate, const SameRecordingParameters& wanted) {
    return std::ranges::all_of(candidate.evidence, [&wanted](const WindowEvidence& evidence) {
        return evidence.survival >= wanted.min_survival && evidence.hits >= wanted.min_hits;
    });
}

}  // namespace

std::vector<std::int64_t> find_same_recordings(const SongSnapshot& songs,
                                               const Fingerprint& fingerprint,
                                               const Parameters& parameters) {
    const SameRecordingParameters& wanted = parameters.same_recording;
    const std::uint32_t frames = wanted.excerpt_frames;
    std::map<std::int64_t, int> excerpts;
    for (const std::uint32_t per_cent : wanted.places_per_cent) {
        const std::uint64_t middle = std::uint64_t{fingerprint.frames} * per_cent / 100;
        const auto first =
            static_cast<std::uint32_t>(middle > frames / 2 ? middle - frames / 2 : 0);
        const Query query = query_at(fingerprint, first, frames);
        for (const Candidate& candidate : find_unchanged(songs, query, parameters)) {
            if (is_same(candidate, wanted)) {
                ++excerpts[candidate.song];
            }
        }
    }
    std::vector<std::int64_t> same;
    for (const auto& [song, count] : excerpts) {
        if (count >= wanted.min_excerpts) {
            same.push_back(song);
        }
    }
    return same;
}

}  // namespace polymux::song
