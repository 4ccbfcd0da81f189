#include <algorithm>
#include <array>
#include <map>

#include "polymux/song/matcher.hpp"

namespace polymux::song {

namespace {

constexpr std::uint32_t excerpt_frames = 1'250;  // 20 s.
constexpr std::array<std::uint32_t, 3> places_per_cent = {20, 50, 80};
constexpr int least_excerpts = 2;
/// Of the song's peaks within an excerpt, the shares that must be the other's too. Peaks of other
/// codecs agree to four fifths, those of another performance to a third.
constexpr float least_survival = 0.45F;
constexpr int least_hits = 60;

std::vector<QueryPeak> excerpt_of(std::span<const PackedPeak> peaks, std::uint32_t first) {
    std::vector<QueryPeak> taken;
    auto at = std::lower_bound(peaks.begin(), peaks.end(), pack(first, 0));
    for (; at != peaks.end() && frame_of(*at) < first + excerpt_frames; ++at) {
        taken.push_back({.frame = static_cast<float>(frame_of(*at) - first),
                         .frequency = static_cast<float>(frequency_of(*at))});
    }
    return taken;
}

Query query_at(const Fingerprint& fingerprint, std::uint32_t first) {
    Query query;
    query.frames = std::min(excerpt_frames, fingerprint.frames - first);
    query.peaks = excerpt_of(fingerprint.peaks[0], first);
    for (std::size_t window = 0; window < query.dense.size(); ++window) {
        query.dense[window] = excerpt_of(fingerprint.peaks[window], first);
    }
    return query;
}

bool is_same(const Candidate& candidate) {
    return std::ranges::all_of(candidate.evidence, [](const WindowEvidence& evidence) {
        return evidence.survival >= least_survival && evidence.hits >= least_hits;
    });
}

}  // namespace

std::vector<std::int64_t> find_same_recordings(const SongSnapshot& songs,
                                               const Fingerprint& fingerprint,
                                               const Parameters& parameters) {
    std::map<std::int64_t, int> excerpts;
    for (const std::uint32_t per_cent : places_per_cent) {
        const std::uint64_t middle = std::uint64_t{fingerprint.frames} * per_cent / 100;
        const auto first = static_cast<std::uint32_t>(
            middle > excerpt_frames / 2 ? middle - excerpt_frames / 2 : 0);
        const Query query = query_at(fingerprint, first);
        for (const Candidate& candidate : find_unchanged(songs, query, parameters)) {
            if (is_same(candidate)) {
                ++excerpts[candidate.song];
            }
        }
    }
    std::vector<std::int64_t> same;
    for (const auto& [song, count] : excerpts) {
        if (count >= least_excerpts) {
            same.push_back(song);
        }
    }
    return same;
}

}  // namespace polymux::song
