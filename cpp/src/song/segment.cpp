#include "polymux/song/segment.hpp"

#include <cstring>
#include <string>
#include <string_view>

#include "song/crc32c.hpp"
#include "song/segment_layout.hpp"

namespace polymux::song {

namespace {

Error unusable_segment(std::string_view reason) {
    return Error{.code = ErrorCode::undecodable,
                 .message = "a segment of the song index cannot be used: " + std::string(reason) +
                            std::string(rebuild_hint)};
}

/// The numbers of a section whose size `check_sections` has verified.
template <typename T>
std::span<const T> numbers(std::span<const std::byte> bytes, const SectionEntry& entry) noexcept {
    // Maps and vectors are aligned for all numbers, and sections begin at multiples of 64.
    const auto* const first = reinterpret_cast<const T*>(bytes.data() + entry.offset_bytes);
    return {first, entry.size_bytes / sizeof(T)};
}

std::optional<Error> check_origin(const SegmentHeader& header, const Parameters& parameters) {
    if (header.magic != segment_magic)
        return unusable_segment("it is not a segment of a song index");
    if (header.byte_order != byte_order_mark)
        return unusable_segment("it was made on a machine with another byte order");
    if (header.version != segment_version)
        return unusable_segment(other_version(header.version, segment_version));
    const std::span<const std::byte> before = bytes_of(header).first(sizeof header - 4);
    if (header.checksum != crc32c(before))
        return unusable_segment("the checksum of its header is wrong");
    if (header.parameter_hash != parameters.hash()) {
        return unusable_segment("its songs were fingerprinted with other parameters");
    }
    return {};
}

/// Whether all sections are inside the file and have the sizes that follow from the header's
/// counts.
std::optional<Error> check_sections(const SegmentHeader& header, std::size_t size_bytes) {
    for (const SectionEntry& section : header.sections) {
        if (section.offset_bytes % section_alignment_bytes != 0) {
            return unusable_segment("a section has an invalid position");
        }
        if (section.offset_bytes > size_bytes ||
            section.size_bytes > size_bytes - section.offset_bytes) {
            return unusable_segment("it is truncated");
        }
    }
    if (header.frames >= 1U << max_frame_bits) return unusable_segment("it has too many frames");
    const auto has = [&header](std::size_t section, std::uint64_t count, std::size_t width_bytes) {
        return header.sections[section].size_bytes == count * width_bytes;
    };
    const std::uint64_t spots =
        (std::uint64_t{header.slices} + SegmentParts::spot_slices - 1) / SegmentParts::spot_slices;
    bool right = has(section_tracks, header.tracks, sizeof(TrackRow));
    for (std::size_t window = 0; window < 2; ++window) {
        const SectionEntry& peaks = header.sections[section_peaks + window];
        right = right && has(section_counts + window, header.slices, 1) &&
                has(section_spots + window, spots, sizeof(std::uint32_t)) &&
                peaks.size_bytes % sizeof(std::uint16_t) == 0;
    }
    const int directory_bits = directory_bits_of(frame_bits_of(header.frames));
    right = right && header.sections[section_postings].size_bytes % sizeof(std::uint32_t) == 0 &&
            has(section_directory, (std::uint64_t{1} << directory_bits) + 1, sizeof(std::uint32_t));
    if (!right) return unusable_segment("a section has an invalid size");
    return {};
}

/// Index of the first peak of that slice.
std::size_t first_peak_of(std::span<const std::uint8_t> counts,
                          std::span<const std::uint32_t> spots, std::uint32_t slice) noexcept {
    const std::uint32_t spot = slice / SegmentParts::spot_slices;
    std::size_t peak = spots[spot];
    for (std::uint32_t before = spot * SegmentParts::spot_slices; before < slice; ++before) {
        peak += counts[before];
    }
    return peak;
}

}  // namespace

Result<Segment> Segment::open(std::span<const std::byte> bytes, const Parameters& parameters) {
    SegmentHeader header;
    if (bytes.size() < sizeof header) return unusable_segment("it is truncated");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (auto refused = check_origin(header, parameters)) return *std::move(refused);
    if (auto refused = check_sections(header, bytes.size())) return *std::move(refused);
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(TrackRow) != 0) {
        return Error{.code = ErrorCode::internal,
                     .message = "the address of a segment's bytes must be a multiple of " +
                                std::to_string(alignof(TrackRow))};
    }
    Segment segment;
    segment.bytes_ = bytes;
    segment.generation_ = header.generation;
    segment.checksum_ = header.checksum;
    segment.frames_ = header.frames;
    segment.gap_frames_ = static_cast<std::uint32_t>(parameters.gap_frames);
    segment.frame_bits_ = frame_bits_of(header.frames);
    segment.low_bits_ = key_bits - directory_bits_of(segment.frame_bits_);
    segment.rows_ = numbers<TrackRow>(bytes, header.sections[section_tracks]);
    for (std::size_t window = 0; window < 2; ++window) {
        segment.windows_[window] = {
            .counts = numbers<std::uint8_t>(bytes, header.sections[section_counts + window]),
            .spots = numbers<std::uint32_t>(bytes, header.sections[section_spots + window]),
            .peaks = numbers<std::uint16_t>(bytes, header.sections[section_peaks + window])};
    }
    segment.postings_ = numbers<std::uint32_t>(bytes, header.sections[section_postings]);
    segment.directory_ = numbers<std::uint32_t>(bytes, header.sections[section_directory]);
    return segment;
}

Result<void> Segment::verify() const {
    SegmentHeader header;
    std::memcpy(&header, bytes_.data(), sizeof header);
    for (const SectionEntry& section : header.sections) {
        // The file may have changed after it was opened.
        if (section.offset_bytes > bytes_.size() ||
            section.size_bytes > bytes_.size() - section.offset_bytes ||
            crc32c(bytes_.subspan(section.offset_bytes, section.size_bytes)) != section.checksum) {
            return unusable_segment("the checksum of a section is wrong");
        }
    }
    return {};
}

TrackRow Segment::track(std::uint32_t index) const noexcept {
    if (index >= rows_.size()) return {};
    TrackRow row = rows_[index];
    const std::size_t slices = windows_[0].counts.size();
    const bool possible = row.frames <= max_track_frames && row.base_frame <= frames_ &&
                          row.frames <= frames_ - row.base_frame && row.first_slice <= slices &&
                          slices_in(row.frames) <= slices - row.first_slice;
    if (!possible) row.frames = 0;
    return row;
}

std::optional<TrackPlace> Segment::track_at(std::uint32_t frame) const noexcept {
    const std::uint64_t last_base = std::uint64_t{frame} + gap_frames_;
    const auto behind = std::upper_bound(
        rows_.begin(), rows_.end(), last_base,
        [](std::uint64_t base, const TrackRow& row) { return base < row.base_frame; });
    if (behind == rows_.begin()) return {};
    const auto index = static_cast<std::uint32_t>(behind - rows_.begin() - 1);
    const TrackRow row = track(index);
    const std::int64_t from_base = std::int64_t{frame} - row.base_frame;
    if (from_base >= row.frames || from_base < -std::int64_t{gap_frames_}) return {};
    return TrackPlace{.track = index, .frame = static_cast<std::int32_t>(from_base)};
}

Segment::SliceWalk Segment::slices_of(std::uint32_t track, int window, std::uint32_t first_frame,
                                      std::uint32_t end_frame) const noexcept {
    const TrackRow row = this->track(track);
    end_frame = std::min(end_frame, row.frames);
    if (first_frame >= end_frame || window < 0 || window > 1) return {};
    const Window& of_window = windows_[window];
    const std::uint32_t first = first_frame / slice_frames;
    const std::uint32_t slice = row.first_slice + first;
    const std::size_t peak = first_peak_of(of_window.counts, of_window.spots, slice);
    return {.first_frame = first * slice_frames,
            .end_frame = end_frame,
            .counts = of_window.counts.subspan(slice, slices_in(end_frame) - first),
            .peaks = of_window.peaks.subspan(std::min(peak, of_window.peaks.size()))};
}

SegmentParts::TrackPeaks SegmentParts::peaks_of(const Segment& segment, std::uint32_t track,
                                                int window) noexcept {
    const Segment::SliceWalk walk =
        segment.slices_of(track, window, 0, segment.track(track).frames);
    std::size_t peaks = 0;
    for (const std::uint8_t count : walk.counts) peaks += count;
    return {.counts = walk.counts, .peaks = walk.peaks.first(std::min(peaks, walk.peaks.size()))};
}

}  // namespace polymux::song
