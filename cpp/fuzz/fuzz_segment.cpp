// Any bytes as a segment of the song index, and as its manifest: opened, searched, read, merged.
// Every other input is a list of changes to a valid segment, which needs no seed corpus.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "changes.hpp"
#include "check.hpp"
#include "polymux/song/segment.hpp"
#include "song/crc32c.hpp"
#include "song/manifest.hpp"
#include "song/segment_layout.hpp"
#include "song/segment_merge.hpp"

namespace {

using namespace polymux::song;

const Parameters parameters;

std::vector<std::byte> good_segment() {
    std::vector<Track> tracks;
    for (const std::uint32_t frames : {90U, 700U, 0U}) {
        Track track{.song = frames, .first_frame = frames / 2, .fingerprint = {}};
        track.fingerprint.frames = frames;
        for (std::uint32_t frame = 0; frame < frames; frame += 5) {
            const PackedPeak peak = pack(frame, frame * 2'654'435'761U >> 20U);
            track.fingerprint.peaks[0].push_back(peak);
            track.fingerprint.peaks[1].push_back(peak ^ 1U);
        }
        tracks.push_back(std::move(track));
    }
    auto bytes = build_segment(parameters, tracks);
    POLYMUX_FUZZ_CHECK(bytes.has_value());
    return *std::move(bytes);
}

/// Without this, only the checks of magic, hash and checksum would ever be reached.
void make_credible(std::vector<std::byte>& bytes) {
    SegmentHeader header;
    if (bytes.size() < sizeof header) return;
    std::memcpy(&header, bytes.data(), sizeof header);
    const SegmentHeader right;
    header.magic = right.magic;
    header.byte_order = right.byte_order;
    header.version = right.version;
    header.parameter_hash = parameters.hash();
    header.checksum = crc32c(bytes_of(header).first(offsetof(SegmentHeader, checksum)));
    std::memcpy(bytes.data(), &header, sizeof header);
}

/// The same for a manifest, if `credible`.
void read_manifest(std::vector<std::byte> bytes, bool credible) {
    constexpr std::size_t front_bytes = 24;  // Magic, byte order, version, parameters.
    if (credible && bytes.size() >= front_bytes + sizeof(std::uint32_t)) {
        const std::vector<std::byte> right = encode({}, parameters);
        std::copy_n(right.begin(), front_bytes, bytes.begin());
        const std::size_t end = bytes.size() - sizeof(std::uint32_t);
        const std::uint32_t checksum = crc32c(std::span(bytes).first(end));
        std::memcpy(bytes.data() + end, &checksum, sizeof checksum);
    }
    const auto manifest = decode(bytes, parameters);
    if (!manifest) {
        POLYMUX_FUZZ_CHECK(!manifest.error().message.empty());
        return;
    }
    const std::vector<std::byte> again = encode(*manifest, parameters);
    POLYMUX_FUZZ_CHECK(again.size() == bytes.size());
    POLYMUX_FUZZ_CHECK(decode(again, parameters).has_value());
}

void read_peaks(const Segment& segment, std::uint32_t track) {
    const TrackRow row = segment.track(track);
    for (const int window : {0, 1}) {
        std::uint32_t last = 0;
        segment.peaks(track, window, 0, max_track_frames, [&](PackedPeak peak) {
            POLYMUX_FUZZ_CHECK(frame_of(peak) < row.frames);
            POLYMUX_FUZZ_CHECK(frame_of(peak) + 16 > last);
            last = frame_of(peak);
        });
        segment.peaks(track, window, row.frames / 2, row.frames, [&](PackedPeak peak) {
            POLYMUX_FUZZ_CHECK(frame_of(peak) >= row.frames / 2);
        });
    }
}

void read(const Segment& segment, std::span<const std::byte> bytes) {
    std::vector<std::uint32_t> keys;
    for (std::size_t at = 0; at + 4 <= bytes.size() && keys.size() < 256; at += 4) {
        std::uint32_t key = 0;
        std::memcpy(&key, bytes.data() + at, sizeof key);
        keys.push_back(at % 8 == 0 ? key : key >> 7U);
    }
    segment.find_each(keys, [&](std::size_t, std::span<const std::uint32_t> postings) {
        POLYMUX_FUZZ_CHECK(postings.size() <= segment.posting_count());
        for (const std::uint32_t posting : postings) {
            const auto place = segment.track_at(segment.posting_frame(posting));
            if (place) POLYMUX_FUZZ_CHECK(place->track < segment.track_count());
        }
    });
    for (std::uint32_t track = 0; track <= segment.track_count(); ++track) {
        read_peaks(segment, track);
    }
}

void merge(const Segment& segment) {
    const MergeInput inputs[2] = {{.segment = &segment, .removed = {}},
                                  {.segment = &segment, .removed = {}}};
    MemoryTarget target;
    if (!merge_segments(parameters, inputs, 1, target)) return;
    const std::vector<std::byte> merged = target.take();
    const auto reopened = Segment::open(merged, parameters);
    POLYMUX_FUZZ_CHECK(reopened.has_value());
    POLYMUX_FUZZ_CHECK(reopened->verify().has_value());
    for (std::uint32_t track = 0; track <= reopened->track_count(); ++track) {
        read_peaks(*reopened, track);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::uint8_t> given(data, size);
    static const std::vector<std::byte> good = good_segment();
    std::vector<std::byte> bytes = given_or_changed(good, given);
    bytes.shrink_to_fit();
    read_manifest(bytes, size % 4 != 0);
    if (size % 4 != 0) make_credible(bytes);
    const auto segment = Segment::open(bytes, parameters);
    if (!segment) {
        POLYMUX_FUZZ_CHECK(!segment.error().message.empty());
        return 0;
    }
    read(*segment, bytes);
    merge(*segment);
    return 0;
}
