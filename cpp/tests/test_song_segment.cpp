#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <set>

#include "polymux/song/segment.hpp"
#include "song/crc32c.hpp"
#include "song/segment_layout.hpp"
#include "song/segment_merge.hpp"
#include "song_tracks.hpp"
#include "support.hpp"

using namespace polymux;
using namespace polymux::song;
using namespace polymux::testing;

namespace {

using Bytes = std::vector<std::byte>;

const Parameters parameters;
const auto gap_frames = static_cast<std::uint32_t>(parameters.gap_frames);

/// Typical tracks: a song in two parts, one without a peak, an empty one.
std::vector<Track> some_tracks(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Track> tracks;
    tracks.push_back(random_track(random, 7, 3'000, 800));
    tracks.push_back(random_track(random, 7, 17, 5));
    tracks.back().first_frame = 3'000;
    tracks.push_back(random_track(random, -5, 500, 0));
    tracks.push_back(Track{.song = 12, .first_frame = 0, .fingerprint = {}});
    tracks.push_back(random_track(random, 1LL << 40, 9'999, 2'500));
    return tracks;
}

Bytes built(std::span<const Track> tracks, std::uint64_t generation = 0) {
    auto bytes = build_segment(parameters, tracks, generation);
    REQUIRE(bytes.has_value());
    bytes->shrink_to_fit();
    return *std::move(bytes);
}

Segment opened(const Bytes& bytes) {
    const auto segment = Segment::open(bytes, parameters);
    REQUIRE(segment.has_value());
    return *segment;
}

std::vector<PackedPeak> peaks_of(const Segment& segment, std::uint32_t track, int window,
                                 std::uint32_t first, std::uint32_t end) {
    std::vector<PackedPeak> peaks;
    segment.peaks(track, window, first, end, [&](PackedPeak peak) { peaks.push_back(peak); });
    return peaks;
}

/// The expected index, computed the slow way.
std::map<std::uint32_t, std::set<std::uint32_t>> naive_index(std::span<const Track> tracks) {
    std::map<std::uint32_t, std::set<std::uint32_t>> index;
    std::uint32_t base = gap_frames;
    for (const Track& track : tracks) {
        std::vector<KeyedFrame> pairs;
        append_pairs(track.fingerprint.peaks[0], parameters, pairs);
        for (const KeyedFrame& pair : pairs) index[pair.key].insert(base + pair.frame);
        base += track.fingerprint.frames + gap_frames;
    }
    return index;
}

/// Reads everything through the public functions. The values do not matter.
std::uint64_t read_all(const Segment& segment) {
    std::uint64_t sum = 0;
    for (std::uint32_t bucket = 0; bucket < 64; ++bucket) {
        const std::uint32_t key = bucket << (key_bits - 6);
        segment.find(key, [&sum](std::uint32_t frame) { sum += frame; });
        segment.find(key + bucket, [&sum](std::uint32_t frame) { sum += frame; });
    }
    for (const std::uint32_t posting : SegmentParts::postings(segment)) {
        segment.find(posting >> 7U, [&sum](std::uint32_t frame) { sum += frame; });
    }
    for (std::uint32_t frame = 0; frame < segment.frames() + gap_frames; frame += 500) {
        if (const auto place = segment.track_at(frame)) sum += place->track;
    }
    for (std::uint32_t track = 0; track <= segment.track_count(); ++track) {
        for (const int window : {0, 1}) {
            segment.peaks(track, window, 0, 1U << 31U, [&sum](PackedPeak peak) { sum += peak; });
            segment.peaks(track, window, 100, 300, [&sum](PackedPeak peak) { sum += peak; });
        }
    }
    return sum + (segment.verify() ? 1U : 0U);
}

/// Opens bytes in a buffer of their exact size, so nothing readable follows them, and reads
/// everything.
bool survives(std::span<const std::byte> bytes) {
    const Bytes exact(bytes.begin(), bytes.end());
    const auto segment = Segment::open(exact, parameters);
    if (!segment) return !segment.error().message.empty();
    read_all(*segment);
    const MergeInput input{.segment = &*segment, .removed = {}};
    MemoryTarget target;
    const auto merged = merge_segments(parameters, std::span(&input, 1), 0, target);
    if (!merged) return !merged.error().message.empty();
    const Bytes again = target.take();
    const auto reopened = Segment::open(again, parameters);
    if (reopened) read_all(*reopened);
    return true;
}

/// As if a damaged header had been made to look valid.
void make_credible(std::span<std::byte> bytes) {
    const std::size_t at = offsetof(SegmentHeader, checksum);
    const std::uint32_t checksum = crc32c(bytes.first(at));
    std::memcpy(bytes.data() + at, &checksum, sizeof checksum);
}

Bytes merged(std::span<const MergeInput> inputs, std::uint64_t generation = 0) {
    MemoryTarget target;
    REQUIRE(merge_segments(parameters, inputs, generation, target));
    return target.take();
}

}  // namespace

TEST_CASE("a segment finds exactly the entries of a naive index") {
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
        const std::vector<Track> tracks = some_tracks(seed);
        const Bytes bytes = built(tracks, 42);
        const Segment segment = opened(bytes);
        CHECK(segment.verify());
        CHECK(segment.generation() == 42);
        CHECK(segment.size_bytes() == bytes.size());
        const auto index = naive_index(tracks);
        std::size_t postings = 0;
        std::vector<std::uint32_t> keys;
        for (const auto& [key, frames] : index) {
            std::vector<std::uint32_t> found;
            segment.find(key, [&found](std::uint32_t frame) { found.push_back(frame); });
            CHECK(found == std::vector<std::uint32_t>(frames.begin(), frames.end()));
            postings += frames.size();
            for (const std::uint32_t other : {key, key + 1, key ^ (1U << 20U)}) {
                CHECK(segment.postings(other).size() ==
                      (index.contains(other) ? index.at(other).size() : 0));
                keys.push_back(other);
            }
        }
        CHECK(postings > 1'000);
        CHECK(segment.posting_count() == postings);
        std::size_t visited = 0;
        segment.find_each(keys, [&](std::size_t at, std::span<const std::uint32_t> found) {
            CHECK(at == visited++);
            CHECK(found.data() == segment.postings(keys[at]).data());
            CHECK(found.size() == segment.postings(keys[at]).size());
        });
        CHECK(visited == keys.size());
        CHECK(segment.postings(1U << key_bits).empty());
    }
}

TEST_CASE("the same pair at the same frame is stored once") {
    Track track{.song = 1, .first_frame = 0, .fingerprint = {}};
    track.fingerprint.frames = 100;
    // Two peaks in one cell of the index: the same bin, and a quarter of a bin between them.
    track.fingerprint.peaks[0] = {pack(5, 400), pack(5, 401), pack(20, 480)};
    const Bytes bytes = built({&track, 1});
    std::vector<KeyedFrame> pairs;
    append_pairs(track.fingerprint.peaks[0], parameters, pairs);
    CHECK(pairs.size() == 2);
    CHECK(opened(bytes).posting_count() == 1);
}

TEST_CASE("a segment returns all peaks of any span") {
    const std::vector<Track> tracks = some_tracks(4);
    const Bytes bytes = built(tracks);
    const Segment segment = opened(bytes);
    REQUIRE(segment.track_count() == tracks.size());
    std::mt19937 random(5);
    for (std::uint32_t index = 0; index < tracks.size(); ++index) {
        const Fingerprint& fingerprint = tracks[index].fingerprint;
        for (const int window : {0, 1}) {
            const std::vector<PackedPeak>& all = fingerprint.peaks[window];
            CHECK(peaks_of(segment, index, window, 0, max_track_frames) == all);
            for (int span = 0; span < 50; ++span) {
                const auto first = static_cast<std::uint32_t>(random() % (fingerprint.frames + 2));
                const auto end = first + static_cast<std::uint32_t>(random() % 400);
                std::vector<PackedPeak> expected;
                std::copy_if(all.begin(), all.end(), std::back_inserter(expected),
                             [&](PackedPeak peak) {
                                 return frame_of(peak) >= first && frame_of(peak) < end;
                             });
                CHECK(peaks_of(segment, index, window, first, end) == expected);
            }
        }
    }
    CHECK(peaks_of(segment, 0, 2, 0, 1'000).empty());
    CHECK(peaks_of(segment, 0, -1, 0, 1'000).empty());
    CHECK(peaks_of(segment, 0, 0, 300, 200).empty());
    CHECK(peaks_of(segment, segment.track_count(), 0, 0, 1'000).empty());
}

TEST_CASE("each frame belongs to its track, and those of the gap to the next one") {
    const std::vector<Track> tracks = some_tracks(6);
    const Bytes bytes = built(tracks);
    const Segment segment = opened(bytes);
    std::uint32_t base = gap_frames;
    for (std::uint32_t index = 0; index < tracks.size(); ++index) {
        const TrackRow row = segment.track(index);
        const auto frames = static_cast<std::int32_t>(tracks[index].fingerprint.frames);
        CHECK(row.song == tracks[index].song);
        CHECK(row.first_frame == tracks[index].first_frame);
        CHECK(row.base_frame == base);
        CHECK(static_cast<std::int32_t>(row.frames) == frames);
        const auto gap = static_cast<std::int32_t>(gap_frames);
        for (const std::int32_t frame : {-gap, -1, 0, frames / 2, frames - 1}) {
            if (frame >= frames) continue;
            const auto place = segment.track_at(
                static_cast<std::uint32_t>(static_cast<std::int32_t>(base) + frame));
            REQUIRE(place.has_value());
            CHECK(place->track == index);
            CHECK(place->frame == frame);
        }
        base += row.frames + gap_frames;
    }
    CHECK(segment.frames() == base - gap_frames);
    CHECK_FALSE(segment.track_at(segment.frames()).has_value());
    CHECK_FALSE(segment.track_at(0xFFFFFFFFU).has_value());
}

TEST_CASE("peaks past the end are dropped, and those over 255 of 16 frames") {
    Track track{.song = 1, .first_frame = 0, .fingerprint = {}};
    track.fingerprint.frames = 40;
    std::vector<PackedPeak>& peaks = track.fingerprint.peaks[1];
    for (std::uint32_t frequency = 0; frequency < 300; ++frequency) {
        peaks.push_back(pack(3, frequency));
    }
    const std::vector<PackedPeak> later = {pack(16, 9), pack(39, 4'095)};
    peaks.insert(peaks.end(), later.begin(), later.end());
    peaks.push_back(pack(40, 1));
    const Bytes bytes = built({&track, 1});
    const Segment segment = opened(bytes);
    CHECK(peaks_of(segment, 0, 1, 0, 16).size() == 255);
    CHECK(peaks_of(segment, 0, 1, 16, 100) == later);
    CHECK(peaks_of(segment, 0, 0, 0, 100).empty());
}

TEST_CASE("peaks cost at most 2.3 bytes each") {
    std::mt19937 random(7);
    // Four minutes at 17 peaks a second.
    constexpr std::size_t peaks = 4'080;
    const Track track = random_track(random, 1, 15'000, peaks);
    const Bytes bytes = built({&track, 1});
    SegmentHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    std::uint64_t size_bytes = 0;
    for (int section = section_counts; section < section_postings; ++section) {
        size_bytes += header.sections[static_cast<std::size_t>(section)].size_bytes;
    }
    CHECK(static_cast<double>(size_bytes) / (2 * peaks) < 2.3);
}

TEST_CASE("a segment without tracks is valid") {
    const Bytes empty = built({});
    const Segment segment = opened(empty);
    CHECK(segment.track_count() == 0);
    CHECK(segment.posting_count() == 0);
    CHECK_FALSE(segment.track_at(0).has_value());
    CHECK(survives(empty));
}

TEST_CASE("tracks that cannot be indexed are refused with a reason") {
    std::mt19937 random(8);
    const auto code_of = [](const Track& track) {
        const auto result = build_segment(parameters, {&track, 1});
        REQUIRE_FALSE(result.has_value());
        CHECK(result.error().message.find("song 77") != std::string::npos);
        return result.error().code;
    };
    Track track = random_track(random, 77, 1'000, 100);
    std::swap(track.fingerprint.peaks[1].front(), track.fingerprint.peaks[1].back());
    CHECK(code_of(track) == ErrorCode::invalid_argument);
    track = random_track(random, 77, 1'000, 100);
    track.fingerprint.frames = max_track_frames + 1;
    CHECK(code_of(track) == ErrorCode::invalid_argument);
    std::vector<Track> many(33, Track{.song = 1, .first_frame = 0, .fingerprint = {}});
    for (Track& one : many) one.fingerprint.frames = max_track_frames;
    const auto result = build_segment(parameters, many);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == ErrorCode::limit_exceeded);
    CHECK(build_segment(parameters, std::span(many).first(31)).has_value());
}

TEST_CASE("merged segments have the bytes of one built at once") {
    std::vector<std::vector<Track>> lists = {some_tracks(10), some_tracks(11), {}, some_tracks(12)};
    std::mt19937 random(13);
    lists.push_back({random_track(random, 3, 40'000, 12'000)});
    std::vector<Track> all;
    std::vector<Track> fewer;
    std::vector<Bytes> parts;
    std::vector<Segment> segments;
    const std::vector<std::int64_t> removed = {-5, 3, 7};
    for (const std::vector<Track>& tracks : lists) {
        parts.push_back(built(tracks));
        segments.push_back(opened(parts.back()));
        for (const Track& track : tracks) {
            all.push_back(track);
            if (!std::binary_search(removed.begin(), removed.end(), track.song)) {
                fewer.push_back(track);
            }
        }
    }
    std::vector<MergeInput> inputs;
    for (const Segment& segment : segments) inputs.push_back({.segment = &segment, .removed = {}});
    CHECK(merged(inputs, 9) == built(all, 9));
    for (MergeInput& input : inputs) input.removed = removed;
    CHECK(merged(inputs) == built(fewer));
    CHECK(merged({}) == built({}));
}

TEST_CASE("a merge that is too long, or whose target fails, reports it") {
    std::vector<Track> tracks(20, Track{.song = 1, .first_frame = 0, .fingerprint = {}});
    for (Track& track : tracks) track.fingerprint.frames = max_track_frames;
    const Bytes bytes = built(tracks);
    const Segment segment = opened(bytes);
    const MergeInput both[2] = {{.segment = &segment, .removed = {}},
                                {.segment = &segment, .removed = {}}};
    MemoryTarget target;
    const auto result = merge_segments(parameters, both, 0, target);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == ErrorCode::limit_exceeded);

    class Full final : public ByteTarget {
    public:
        Result<void> append(std::span<const std::byte> part) override {
            left_bytes_ -= static_cast<std::int64_t>(part.size());
            if (left_bytes_ >= 0) return {};
            return Error{.code = ErrorCode::output_failed, .message = "full"};
        }
        Result<void> replace_front(std::span<const std::byte>) override { return {}; }

    private:
        std::int64_t left_bytes_ = 5'000;
    };
    Full full;
    const auto unwritten = merge_segments(parameters, std::span(both).first(1), 0, full);
    REQUIRE_FALSE(unwritten.has_value());
    CHECK(unwritten.error().code == ErrorCode::output_failed);
}

TEST_CASE("foreign and outdated segments are refused") {
    const Bytes bytes = built(some_tracks(14));
    Parameters other = parameters;
    other.pair_fan += 1;
    const auto code_of = [](const Result<Segment>& result) {
        REQUIRE_FALSE(result.has_value());
        return result.error().code;
    };
    CHECK(code_of(Segment::open(bytes, other)) == ErrorCode::undecodable);
    CHECK(code_of(Segment::open({}, parameters)) == ErrorCode::undecodable);
    CHECK(code_of(Segment::open(as_bytes(std::string(4'096, 'x')), parameters)) ==
          ErrorCode::undecodable);
    Bytes shifted(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
    CHECK(code_of(Segment::open(std::span(shifted).subspan(1), parameters)) == ErrorCode::internal);
}

TEST_CASE("any byte may be wrong, and any end missing") {
    std::mt19937 random(15);
    const std::vector<Track> tracks = {random_track(random, 1, 300, 60),
                                       random_track(random, 2, 500, 90)};
    const Bytes bytes = built(tracks);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        for (const std::byte change : {std::byte{0xFF}, std::byte{0x01}, std::byte{0x80}}) {
            Bytes damaged = bytes;
            damaged[at] ^= change;
            const auto segment = Segment::open(damaged, parameters);
            if (at < sizeof(SegmentHeader)) {
                CHECK_FALSE(segment.has_value());
                make_credible(damaged);
            }
            CHECK(survives(damaged));
        }
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CHECK_FALSE(Segment::open(std::span(bytes).first(size), parameters).has_value());
    }
}

TEST_CASE("a checksum detects each damaged byte of a section") {
    const Bytes bytes = built(some_tracks(16));
    SegmentHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    for (const SectionEntry& section : header.sections) {
        for (const std::uint64_t within : {std::uint64_t{0}, section.size_bytes - 1}) {
            Bytes damaged = bytes;
            damaged[section.offset_bytes + within] ^= std::byte{4};
            const auto segment = Segment::open(damaged, parameters);
            if (segment) CHECK_FALSE(segment->verify());
        }
    }
}
