// The layout of a segment, in order. Numbers are little-endian, sections begin at multiples of 64
// bytes.
//
//     header          magic, versions, counts, position and checksum of each section
//     tracks          a TrackRow each, by base frame
//     counts, spots, peaks of each window: see Segment::Window
//     postings        of all keys: lower bits of the key, then the frame; sorted
//     directory       for each value of the upper bits of a key its first posting, and the end
//
// The timeline has a gap of Parameters::gap_frames between two tracks, and before the first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "polymux/song/segment.hpp"

namespace polymux::song {

// Bytes are used as stored in the file. A machine with the other byte order reads this mark wrong
// and rejects the segment, so each order has its own segments.
inline constexpr std::uint32_t byte_order_mark = 0x0A0B0C0D;
inline constexpr std::uint32_t segment_version = 1;
inline constexpr std::array<char, 8> segment_magic = {'p', 'm', 'x', 's', 'o', 'n', 'g', '\n'};
inline constexpr std::size_t section_alignment_bytes = 64;

/// Completes the message of an error of the index files.
inline constexpr std::string_view rebuild_hint =
    ". Delete the directory \"segments\" of the song index. It is rebuilt from the song database";

[[nodiscard]] inline std::string other_version(std::uint32_t got, std::uint32_t allowed) {
    return "its format version is not supported (got " + std::to_string(got) + ", allowed " +
           std::to_string(allowed) + ")";
}

enum SectionName : std::uint8_t {
    section_tracks,
    section_counts,  ///< For the first window; the second window's section follows each.
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
    std::uint32_t checksum = 0;  ///< Over everything before it.
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

/// Bits of a frame number on a timeline of that length.
constexpr int frame_bits_of(std::uint32_t frames) noexcept {
    int bits = 1;
    while (frames >> bits != 0) ++bits;
    return bits;
}

/// Bits of a key that select its bucket, chosen for about twenty postings per bucket.
constexpr int directory_bits_of(int frame_bits) noexcept {
    return std::clamp(frame_bits - 4, 4, key_bits);
}
static_assert(key_bits - directory_bits_of(max_frame_bits) + max_frame_bits < 32);

/// Data of a segment that the index needs, but not the matcher.
struct SegmentParts {
    static constexpr std::uint32_t slice_frames = Segment::slice_frames;
    static constexpr std::uint32_t spot_slices = Segment::spot_slices;

    /// The slices of a whole track: the number of peaks in each, and the peaks.
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
