// Any bytes as a query about a snippet, as one process sends it to another: parsed, serialized
// again, and used to search a small index. Every other input is a list of changes to a valid query,
// which needs no seed corpus.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "changes.hpp"
#include "check.hpp"
#include "polymux/song/matcher.hpp"
#include "polymux/song/query.hpp"
#include "polymux/song/song_set.hpp"

namespace {

using namespace polymux::song;

const Parameters parameters;
constexpr std::uint32_t song_frames = 1'500;
constexpr std::uint32_t query_frames = 300;
/// Magic, version, parameters: without them, the code after these checks would never be reached.
constexpr std::size_t front_bytes = 16;

std::uint32_t frequency_at(std::uint32_t frame) {
    return (frame * 2'654'435'761U >> 20U) & frequency_mask;
}

std::shared_ptr<const SongSnapshot> small_index() {
    auto set = SongSet::open("/nonexistent/songs", parameters);
    POLYMUX_FUZZ_CHECK(set.has_value());
    Track track{.song = 1, .first_frame = 0, .fingerprint = {}};
    track.fingerprint.frames = song_frames;
    for (std::uint32_t frame = 0; frame < song_frames; frame += 3) {
        for (std::vector<PackedPeak>& peaks : track.fingerprint.peaks) {
            peaks.push_back(pack(frame, frequency_at(frame)));
        }
    }
    POLYMUX_FUZZ_CHECK((*set)->add({&track, 1}, 1).has_value());
    return (*set)->snapshot();
}

std::vector<std::byte> good_query() {
    Query query;
    query.frames = query_frames;
    for (std::uint32_t frame = 0; frame < query_frames; frame += 3) {
        const QueryPeak peak{.frame = static_cast<float>(frame),
                             .frequency = static_cast<float>(frequency_at(frame + 600)),
                             .prominence = 5};
        query.peaks.push_back(peak);
        for (std::vector<QueryPeak>& dense : query.dense) dense.push_back(peak);
    }
    return to_bytes(query, parameters);
}

void ask(const Query& query) {
    static const std::shared_ptr<const SongSnapshot> index = small_index();
    for (const Candidate& candidate : find_songs(*index, query, parameters, {})) {
        POLYMUX_FUZZ_CHECK(candidate.song == 1);
        POLYMUX_FUZZ_CHECK(std::isfinite(candidate.strength));
        POLYMUX_FUZZ_CHECK(candidate.confidence >= 0 && candidate.confidence <= 1);
        for (const WindowEvidence& evidence : candidate.evidence) {
            POLYMUX_FUZZ_CHECK(evidence.hits >= 0 && evidence.hits <= evidence.peaks);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::uint8_t> given(data, size);
    static const std::vector<std::byte> good = good_query();
    std::vector<std::byte> bytes = given_or_changed(good, given);
    if (size % 4 != 0 && bytes.size() >= front_bytes) {
        std::copy_n(good.begin(), front_bytes, bytes.begin());
    }
    bytes.shrink_to_fit();
    const auto query = query_of(bytes, parameters);
    if (!query) {
        POLYMUX_FUZZ_CHECK(!query.error().message.empty());
        return 0;
    }
    POLYMUX_FUZZ_CHECK(to_bytes(*query, parameters) == bytes);
    ask(*query);
    return 0;
}
