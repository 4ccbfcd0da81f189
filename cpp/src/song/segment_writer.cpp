#include "song/segment_writer.hpp"

#include <algorithm>
#include <utility>

#include "song/crc32c.hpp"

namespace polymux::song {

Result<void> MemoryTarget::append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
}

Result<void> MemoryTarget::replace_front(std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
    return {};
}

bool LineOfTime::add(std::int64_t song, std::uint32_t first_frame, std::uint32_t frames) {
    const std::uint64_t end = std::uint64_t{frames_} + frames + (rows_.empty() ? 0 : gap_frames_);
    if (end >= 1U << max_frame_bits) return false;
    rows_.push_back({.song = song,
                     .first_frame = first_frame,
                     .base_frame = static_cast<std::uint32_t>(end - frames),
                     .frames = frames,
                     .first_slice = slices_});
    frames_ = static_cast<std::uint32_t>(end);
    slices_ += slices_in(frames);
    return true;
}

Error line_too_long() {
    return Error{
        .code = ErrorCode::limit_exceeded,
        .message =
            "these songs are too long for one segment of the song index. Use several segments"};
}

SegmentWriter::SegmentWriter(ByteTarget& target) : target_(target) {
    // The header is written last; until then, the file is not a valid segment.
    header_.magic = {};
    put(bytes_of(header_));
    header_.magic = segment_magic;
}

void SegmentWriter::begin(int section) {
    pad();
    current_ = &header_.sections[static_cast<std::size_t>(section)];
    current_->offset_bytes = written_bytes_;
}

void SegmentWriter::write(std::span<const std::byte> bytes) {
    current_->checksum = crc32c(bytes, current_->checksum);
    current_->size_bytes += bytes.size();
    put(bytes);
}

Result<void> SegmentWriter::finish(const Parameters& parameters, const LineOfTime& line,
                                   std::uint64_t generation) {
    header_.parameter_hash = parameters.hash();
    header_.generation = generation;
    header_.tracks = static_cast<std::uint32_t>(line.rows().size());
    header_.frames = line.frames();
    header_.slices = line.slices();
    header_.checksum = crc32c(bytes_of(header_).first(sizeof header_ - sizeof header_.checksum));
    if (failure_) return *std::move(failure_);
    return target_.replace_front(bytes_of(header_));
}

void SegmentWriter::put(std::span<const std::byte> bytes) {
    if (failure_) return;
    written_bytes_ += bytes.size();
    if (auto appended = target_.append(bytes); !appended) failure_ = std::move(appended.error());
}

void SegmentWriter::pad() {
    static constexpr std::array<std::byte, section_alignment_bytes> zeros{};
    put(std::span(zeros).first(aligned(written_bytes_) - written_bytes_));
}

}  // namespace polymux::song
