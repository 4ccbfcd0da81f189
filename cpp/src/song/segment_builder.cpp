#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "polymux/song/segment.hpp"
#include "song/segment_layout.hpp"
#include "song/segment_writer.hpp"

namespace polymux::song {

namespace {

constexpr std::size_t max_slice_peaks = 255;

Error refused_track(const Track& track, const std::string& reason) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = "the fingerprint of song " + std::to_string(track.song) + " " + reason +
                            ". Fingerprint the song's audio again"};
}

std::optional<Error> check_track(const Track& track) {
    if (track.fingerprint.frames > max_track_frames) {
        return refused_track(track, "is too long (got " + std::to_string(track.fingerprint.frames) +
                                        " frames, allowed " + std::to_string(max_track_frames) +
                                        ")");
    }
    for (const std::vector<PackedPeak>& peaks : track.fingerprint.peaks) {
        if (!std::is_sorted(peaks.begin(), peaks.end())) {
            return refused_track(track, "has peaks that are not ordered by time");
        }
    }
    return {};
}

/// The peaks of a track before its end.
std::span<const PackedPeak> peaks_within(const Fingerprint& fingerprint, std::size_t window) {
    const std::vector<PackedPeak>& peaks = fingerprint.peaks[window];
    const auto end = std::lower_bound(
        peaks.begin(), peaks.end(), fingerprint.frames,
        [](PackedPeak peak, std::uint32_t frames) { return frame_of(peak) < frames; });
    return {peaks.begin(), end};
}

struct EncodedPeaks {
    std::vector<std::uint8_t> counts;
    std::vector<std::uint32_t> spots;
    std::vector<std::uint16_t> peaks;

    void add(std::span<const PackedPeak> track, std::uint32_t slices) {
        auto at = track.begin();
        for (std::uint32_t slice = 0; slice < slices; ++slice) {
            if (counts.size() % SegmentParts::spot_slices == 0) {
                spots.push_back(static_cast<std::uint32_t>(peaks.size()));
            }
            std::size_t count = 0;
            for (; at != track.end() && frame_of(*at) / SegmentParts::slice_frames == slice; ++at) {
                if (count == max_slice_peaks) continue;
                ++count;
                const std::uint32_t within = frame_of(*at) % SegmentParts::slice_frames;
                peaks.push_back(
                    static_cast<std::uint16_t>(within << frequency_bits | frequency_of(*at)));
            }
            counts.push_back(static_cast<std::uint8_t>(count));
        }
    }
};

EncodedPeaks encode_peaks(std::span<const Track> tracks, std::size_t window) {
    EncodedPeaks encoded;
    for (const Track& track : tracks) {
        encoded.add(peaks_within(track.fingerprint, window), slices_in(track.fingerprint.frames));
    }
    return encoded;
}

std::vector<KeyedFrame> pairs_of(const Parameters& parameters, std::span<const Track> tracks,
                                 std::span<const TrackRow> rows) {
    std::vector<KeyedFrame> pairs;
    for (std::size_t index = 0; index < tracks.size(); ++index) {
        const std::size_t first = pairs.size();
        append_pairs(peaks_within(tracks[index].fingerprint, 0), parameters, pairs);
        for (KeyedFrame& pair : std::span(pairs).subspan(first)) {
            pair.frame += rows[index].base_frame;
        }
    }
    return pairs;
}

struct SortedPostings {
    std::vector<std::uint32_t> postings;
    std::vector<std::uint32_t> directory;
};

/// Sorts by key and frame, without duplicates: first into buckets by the key's upper bits, which
/// form the directory, and then within each bucket, which is short.
SortedPostings sort_postings(std::span<const KeyedFrame> pairs, int frame_bits) {
    const int low_bits = key_bits - directory_bits_of(frame_bits);
    const std::size_t buckets = std::size_t{1} << directory_bits_of(frame_bits);
    std::vector<std::uint32_t> ends(buckets + 1);
    for (const KeyedFrame& pair : pairs) ++ends[(pair.key >> low_bits) + 1];
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) ends[bucket + 1] += ends[bucket];

    SortedPostings sorted;
    sorted.postings.resize(pairs.size());
    const std::uint32_t low_mask = (1U << low_bits) - 1;
    // From here on, each value is the position of the bucket's next posting, and finally its end.
    for (const KeyedFrame& pair : pairs) {
        sorted.postings[ends[pair.key >> low_bits]++] =
            (pair.key & low_mask) << frame_bits | pair.frame;
    }
    sorted.directory.resize(buckets + 1);
    auto kept = sorted.postings.begin();
    auto first = sorted.postings.begin();
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
        const auto last = sorted.postings.begin() + ends[bucket];
        std::sort(first, last);
        const auto begin = kept;
        for (; first != last; ++first) {
            if (kept == begin || *(kept - 1) != *first) *kept++ = *first;
        }
        sorted.directory[bucket + 1] = static_cast<std::uint32_t>(kept - sorted.postings.begin());
    }
    sorted.postings.erase(kept, sorted.postings.end());
    return sorted;
}

Result<std::vector<std::byte>> build(const Parameters& parameters, std::span<const Track> tracks,
                                     std::uint64_t generation) {
    LineOfTime line(parameters);
    for (const Track& track : tracks) {
        if (auto wrong = check_track(track)) return *std::move(wrong);
        if (!line.add(track.song, track.first_frame, track.fingerprint.frames)) {
            return line_too_long();
        }
    }
    MemoryTarget target;
    SegmentWriter writer(target);
    writer.section(section_tracks, line.rows());
    const EncodedPeaks windows[2] = {encode_peaks(tracks, 0), encode_peaks(tracks, 1)};
    for (int window = 0; window < 2; ++window) {
        writer.section(section_counts + window, std::span(windows[window].counts));
    }
    for (int window = 0; window < 2; ++window) {
        writer.section(section_spots + window, std::span(windows[window].spots));
    }
    for (int window = 0; window < 2; ++window) {
        writer.section(section_peaks + window, std::span(windows[window].peaks));
    }
    const SortedPostings sorted =
        sort_postings(pairs_of(parameters, tracks, line.rows()), line.frame_bits());
    writer.section(section_postings, std::span(sorted.postings));
    writer.section(section_directory, std::span(sorted.directory));
    if (auto finished = writer.finish(parameters, line, generation); !finished) {
        return std::move(finished.error());
    }
    return target.take();
}

}  // namespace

Result<std::vector<std::byte>> build_segment(const Parameters& parameters,
                                             std::span<const Track> tracks,
                                             std::uint64_t generation) {
    try {
        return build(parameters, tracks, generation);
    } catch (const std::bad_alloc&) {
        return Error{.code = ErrorCode::out_of_memory,
                     .message = "not enough memory to build the song index"};
    }
}

}  // namespace polymux::song
