// The bytes of a segment, in the order in which they stand. Numbers are little-endian, sections
// begin at multiples of 64 bytes.
//
//     header          magic, versions, counts, where each section is and its checksum
//     tracks          a TrackRow each, by base frame
//     counts, spots, peaks of each window: see Segment::Window
//     postings        of all keys: lower bits of the key, then the frame; sorted
//     directory       for each value of the upper bits of a key its first posting, and the end
//
// Between two tracks, and before the first, the line of time has a gap of Parameters::gap_frames.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "polymux/song/segment.hpp"

namespace polymux::song {

// Bytes are used as they lie in the file. A machine of the other order would read the mark wrong,
// and refuse the segments of others as well as be refused: it makes its own.
inline constexpr std::uint32_t byte_order_mark = 0x0A0B0C0D;
inline constexpr std::uint32_t segment_version = 1;
inline constexpr std::array<char, 8> segment_magic = {'p', 'm', 'x', 's', 'o', 'n', 'g', '\n'};
inline constexpr std::size_t section_alignment_bytes = 64;

enum SectionName : std::uint8_t {
    section_tracks,
    section_counts,  ///< Of the first window; those of the second follow each.
    section_spots = section_counts + 2,
    section_peaks = section_spots + 2,
    section_postings = section_peaks + 2,
    section_directory,
    section_count
};

struct SectionEntry {
    std::uint64_t offset_bytes = 0;
    std::uint64_t size_bytes = 0;
    std::uint32_t checksum = 0;
    std::uint32_t unused = 0;
};

struct SegmentHeader {
    std::array<char, 8> magic = segment_magic;
    std::uint32_t byte_order = byte_order_mark;
    std::uint32_t version = segment_version;
    std::uint64_t parameter_hash = 0;
    std::uint64_t generation = 0;
    std::uint32_t tracks = 0;
    std::uint32_t frames = 0;
    std::uint32_t slices = 0;
    std::array<std::uint32_t, 5> unused = {};
    std::array<SectionEntry, section_count> sections;
    std::uint32_t unused_too = 0;
    std::uint32_t checksum = 0;  ///< Of all before it.
};
static_assert(sizeof(SegmentHeader) == 288);
static_assert(std::is_trivially_copyable_v<SegmentHeader>);
static_assert(sizeof(TrackRow) == 24);

template <typename T>
    requires std::is_trivially_copyable_v<T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
    return std::as_bytes(std::span(&value, 1));
}

template <typename T>
    requires std::is_trivially_copyable_v<T>
std::span<const std::byte> bytes_of(std::span<const T> values) noexcept {
    return std::as_bytes(values);
}

constexpr std::uint64_t aligned(std::uint64_t offset_bytes) noexcept {
    return (offset_bytes + section_alignment_bytes - 1) / section_alignment_bytes *
           section_alignment_bytes;
}

/// Bits of a frame of a line of time of that length.
constexpr int frame_bits_of(std::uint32_t frames) noexcept {
    int bits = 1;
    while (frames >> bits != 0) ++bits;
    return bits;
}

/// Bits of a key that its bucket tells: so that a bucket has some twenty postings.
constexpr int directory_bits_of(int frame_bits) noexcept {
    return std::clamp(frame_bits - 4, 4, key_bits);
}
static_assert(key_bits - directory_bits_of(max_frame_bits) + max_frame_bits < 32);

/// What the parts of the index need to know of a segment, and the matcher does not.
struct SegmentParts {
    static constexpr std::uint32_t slice_frames = Segment::slice_frames;
    static constexpr std::uint32_t spot_slices = Segment::spot_slices;

    /// The slices of a whole track: how many peaks each has, and the peaks.
    struct TrackPeaks {
        std::span<const std::uint8_t> counts;
        std::span<const std::uint16_t> peaks;
    };
    static TrackPeaks peaks_of(const Segment& segment, std::uint32_t track, int window) noexcept;

    static std::span<const std::uint32_t> directory(const Segment& segment) noexcept {
        return segment.directory_;
    }
    static std::span<const std::uint32_t> postings(const Segment& segment) noexcept {
        return segment.postings_;
    }
    static int low_bits(const Segment& segment) noexcept { return segment.low_bits_; }
    static int frame_bits(const Segment& segment) noexcept { return segment.frame_bits_; }
};

constexpr std::uint32_t slices_in(std::uint32_t frames) noexcept {
    return frames / SegmentParts::slice_frames + (frames % SegmentParts::slice_frames != 0);
}

}  // namespace polymux::song
