// One segment of the index: which pairs of peaks occur at which frames of which songs, and the
// peaks themselves. The bytes are the same in memory and in a mapped file.
//
// All tracks of a segment share one timeline, so a posting is one 32-bit number: a frame on that
// timeline. cpp/src/song/segment_layout.hpp defines the byte layout.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "polymux/result.hpp"
#include "polymux/song/parameters.hpp"
#include "polymux/song/peaks.hpp"

namespace polymux::song {

/// Input of a segment. A recording of more than `max_track_frames` becomes several tracks of one
/// song; each has the recording's frame at which it begins.
struct Track {
    std::int64_t song = 0;
    std::uint32_t first_frame = 0;
    Fingerprint fingerprint;
};

/// A track as stored in a segment.
struct TrackRow {
    std::int64_t song = 0;
    std::uint32_t first_frame = 0;  ///< Frame in the recording.
    std::uint32_t base_frame = 0;   ///< Frame on the segment's timeline.
    std::uint32_t frames = 0;
    std::uint32_t first_slice = 0;  ///< Index of the first slice of its peaks.
};

/// A frame of the timeline, relative to its track. `frame` counts from the track's first frame. It
/// is negative in the gap before the track, for a snippet that begins before the song.
struct TrackPlace {
    std::uint32_t track = 0;
    std::int32_t frame = 0;
};

/// Maximum bits of a timeline frame: 149 hours, gaps included.
inline constexpr int max_frame_bits = 25;

/// A view of a segment's bytes, which must outlive it. Cheap to copy, safe for any number of
/// threads. Damaged bytes give fewer or wrong results, but never an out-of-bounds read.
class Segment {
public:
    /// Checks the header and the sizes of the sections, and reads little else. The address of the
    /// bytes must be a multiple of 8. Errors: `undecodable` if the bytes are not a segment, are
    /// damaged, or were made with other parameters or by another version.
    static Result<Segment> open(std::span<const std::byte> bytes, const Parameters& parameters);

    /// Reads everything and compares the checksums of all sections.
    [[nodiscard]] Result<void> verify() const;

    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
    /// Length of the timeline.
    [[nodiscard]] std::uint32_t frames() const noexcept { return frames_; }
    [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_.size(); }
    [[nodiscard]] std::size_t posting_count() const noexcept { return postings_.size(); }
    /// Checksum of the header, which includes the checksums of all sections. Unique for each
    /// segment.
    [[nodiscard]] std::uint32_t checksum() const noexcept { return checksum_; }

    [[nodiscard]] std::uint32_t track_count() const noexcept {
        return static_cast<std::uint32_t>(rows_.size());
    }
    /// An invalid row and one past the end have no frames.
    [[nodiscard]] TrackRow track(std::uint32_t index) const noexcept;
    /// Finds the track that contains a timeline frame, either in the track or in the gap before it.
    [[nodiscard]] std::optional<TrackPlace> track_at(std::uint32_t frame) const noexcept;

    /// The postings of one key, sorted by frame. `posting_frame` extracts the frame.
    [[nodiscard]] std::span<const std::uint32_t> postings(std::uint32_t key) const noexcept {
        if (key >> key_bits != 0) return {};
        const std::span<const std::uint32_t> bucket = bucket_of(key >> low_bits_);
        const std::uint32_t low = key & ((1U << low_bits_) - 1);
        const std::size_t first = first_from(bucket, low << frame_bits_);
        std::size_t end = first;
        // Most keys have few postings, so a linear scan is enough. A search for the next key is not
        // possible, because that key may exceed 32 bits.
        while (end < bucket.size() && bucket[end] >> frame_bits_ == low) ++end;
        return bucket.subspan(first, end - first);
    }
    [[nodiscard]] std::uint32_t posting_frame(std::uint32_t posting) const noexcept {
        return posting & ((1U << frame_bits_) - 1);
    }

    /// Calls `visit(frame)` for each timeline frame at which a pair has this key.
    template <typename Visit>
    void find(std::uint32_t key, Visit&& visit) const {
        for (const std::uint32_t posting : postings(key)) visit(posting_frame(posting));
    }

    /// Calls `visit(index, postings(keys[index]))` for each key in turn. Faster than single calls,
    /// because it prefetches memory.
    template <typename Visit>
    void find_each(std::span<const std::uint32_t> keys, Visit&& visit) const {
        constexpr std::size_t ahead = 12;
        for (std::size_t index = 0; index < keys.size(); ++index) {
            if (index + 2 * ahead < keys.size()) prefetch_directory(keys[index + 2 * ahead]);
            if (index + ahead < keys.size()) prefetch_postings(keys[index + ahead]);
            visit(index, postings(keys[index]));
        }
    }

    /// Calls `visit(PackedPeak)`, in order of time, for each peak of that window (0 or 1) of that
    /// track, from `first_frame` to before `end_frame`. Frames count from the track's first.
    template <typename Visit>
    void peaks(std::uint32_t track, int window, std::uint32_t first_frame, std::uint32_t end_frame,
               Visit&& visit) const {
        const SliceWalk walk = slices_of(track, window, first_frame, end_frame);
        const std::uint16_t* at = walk.peaks.data();
        const std::uint16_t* const end = at + walk.peaks.size();
        std::uint32_t slice_frame = walk.first_frame;
        for (const std::uint8_t count : walk.counts) {
            const std::uint16_t* const slice_end = at + std::min<std::ptrdiff_t>(count, end - at);
            for (; at != slice_end; ++at) {
                const std::uint32_t frame =
                    slice_frame + (static_cast<std::uint32_t>(*at) >> frequency_bits);
                if (frame >= first_frame && frame < walk.end_frame) {
                    visit(pack(frame, *at & frequency_mask));
                }
            }
            slice_frame += slice_frames;
        }
    }

private:
    friend struct SegmentParts;

    static constexpr std::uint32_t slice_frames = 16;
    static constexpr std::uint32_t spot_slices = 32;

    /// Peaks of one window: the count in each slice of 16 frames; for each peak the 4 low bits of
    /// the frame and 12 of the frequency; and for every 32nd slice the index of its first peak.
    struct Window {
        std::span<const std::uint8_t> counts;
        std::span<const std::uint32_t> spots;
        std::span<const std::uint16_t> peaks;
    };
    struct SliceWalk {
        std::uint32_t first_frame = 0;  ///< First frame of the first slice.
        std::uint32_t end_frame = 0;    ///< At most the track's end.
        std::span<const std::uint8_t> counts;
        std::span<const std::uint16_t> peaks;  ///< Peaks from the first slice on.
    };

    Segment() = default;
    [[nodiscard]] SliceWalk slices_of(std::uint32_t track, int window, std::uint32_t first_frame,
                                      std::uint32_t end_frame) const noexcept;

    [[nodiscard]] std::span<const std::uint32_t> bucket_of(std::uint32_t bucket) const noexcept {
        const std::size_t end = std::min<std::size_t>(directory_[bucket + 1], postings_.size());
        const std::size_t begin = std::min<std::size_t>(directory_[bucket], end);
        return postings_.subspan(begin, end - begin);
    }
    /// Counts the elements before the first that is not below `min_value`, without data-dependent
    /// branches. Such branches are unpredictable, and a search of a snippet does half a million of
    /// these.
    static std::size_t first_from(std::span<const std::uint32_t> sorted,
                                  std::uint32_t min_value) noexcept {
        std::size_t before = 0;
        for (std::size_t left = sorted.size(); left > 0;) {
            const std::size_t half = (left + 1) / 2;
            before += sorted[before + half - 1] < min_value ? half : 0;
            left -= half;
        }
        return before;
    }
    void prefetch_directory(std::uint32_t key) const noexcept {
        if (key >> key_bits == 0) __builtin_prefetch(&directory_[key >> low_bits_]);
    }
    void prefetch_postings(std::uint32_t key) const noexcept {
        if (key >> key_bits != 0) return;
        const std::span<const std::uint32_t> bucket = bucket_of(key >> low_bits_);
        __builtin_prefetch(bucket.data() + bucket.size() / 2);
    }

    std::span<const std::byte> bytes_;
    std::uint64_t generation_ = 0;
    std::uint32_t checksum_ = 0;
    std::uint32_t frames_ = 0;
    std::uint32_t gap_frames_ = 0;
    int frame_bits_ = 0;
    int low_bits_ = 0;  ///< Bits of a key that postings store; the other bits select the bucket.
    std::span<const TrackRow> rows_;
    Window windows_[2];
    std::span<const std::uint32_t> postings_;
    std::span<const std::uint32_t> directory_;
};

/// Builds a segment from these tracks, in this order. Drops peaks at or after a track's end, and
/// peaks beyond 255 in 16 frames. Errors: `limit_exceeded` if the timeline would need more than
/// `max_frame_bits`; `invalid_argument` for a track of more than `max_track_frames`, or unsorted
/// peaks.
Result<std::vector<std::byte>> build_segment(const Parameters& parameters,
                                             std::span<const Track> tracks,
                                             std::uint64_t generation = 0);

}  // namespace polymux::song
