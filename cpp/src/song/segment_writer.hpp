// Writes a segment section by section, to memory or to a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "polymux/result.hpp"
#include "song/segment_layout.hpp"

namespace polymux::song {

/// Destination of bytes.
class ByteTarget {
public:
    ByteTarget() = default;
    ByteTarget(const ByteTarget&) = delete;
    ByteTarget& operator=(const ByteTarget&) = delete;
    virtual ~ByteTarget() = default;
    [[nodiscard]] virtual Result<void> append(std::span<const std::byte> bytes) = 0;
    /// Replaces the first bytes of the output.
    [[nodiscard]] virtual Result<void> replace_front(std::span<const std::byte> bytes) = 0;
};

class MemoryTarget final : public ByteTarget {
public:
    [[nodiscard]] Result<void> append(std::span<const std::byte> bytes) override;
    [[nodiscard]] Result<void> replace_front(std::span<const std::byte> bytes) override;
    [[nodiscard]] std::vector<std::byte> take() noexcept { return std::move(bytes_); }

private:
    std::vector<std::byte> bytes_;
};

/// Consecutive tracks with gaps between them.
class LineOfTime {
public:
    explicit LineOfTime(const Parameters& parameters) noexcept
        : gap_frames_(static_cast<std::uint32_t>(parameters.gap_frames)), frames_(gap_frames_) {}

    /// Frames that a track occupies, including its gap.
    static std::uint64_t frames_of(const Parameters& parameters, std::uint32_t frames) noexcept {
        return std::uint64_t{frames} + static_cast<std::uint32_t>(parameters.gap_frames);
    }
    /// Returns false and adds nothing if the timeline would exceed its limit.
    [[nodiscard]] bool add(std::int64_t song, std::uint32_t first_frame, std::uint32_t frames);

    [[nodiscard]] std::span<const TrackRow> rows() const noexcept { return rows_; }
    [[nodiscard]] std::uint32_t frames() const noexcept { return frames_; }
    [[nodiscard]] std::uint32_t slices() const noexcept { return slices_; }
    [[nodiscard]] int frame_bits() const noexcept { return frame_bits_of(frames_); }

private:
    std::uint32_t gap_frames_;
    std::uint32_t frames_;
    std::uint32_t slices_ = 0;
    std::vector<TrackRow> rows_;
};

/// The error if `LineOfTime::add` returns false.
Error line_too_long();

/// Begin sections in the order of `SectionName`; each ends where the next begins. `finish` reports
/// failures; after a failure nothing more is written.
class SegmentWriter {
public:
    explicit SegmentWriter(ByteTarget& target);

    void begin(int section);
    void write(std::span<const std::byte> bytes);
    template <typename T>
    void section(int name, std::span<const T> values) {
        begin(name);
        write(bytes_of(values));
    }
    [[nodiscard]] Result<void> finish(const Parameters& parameters, const LineOfTime& line,
                                      std::uint64_t generation);

private:
    void put(std::span<const std::byte> bytes);
    void pad();

    ByteTarget& target_;
    SegmentHeader header_;
    SectionEntry* current_ = nullptr;
    std::uint64_t written_bytes_ = 0;
    std::optional<Error> failure_;
};

}  // namespace polymux::song
