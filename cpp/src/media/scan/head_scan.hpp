// Bounds the work of libavformat before it opens an input.
//
// libavformat compares each tag with all tags before it, appends equal comments to each other, and
// walks a track once per edit, in loops that nothing can stop. So a small file with many of them
// would take minutes without a way to cancel. This scan reads the same headers, skips the content
// between them, and refuses such a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "media/avio.hpp"
#include "polymux/media/limits.hpp"

namespace polymux::media {

/// Reads an input's bytes in any order, counts, and stops at the first failure. Not thread-safe.
class HeadScan {
public:
    HeadScan(AvioInput& input, const Limits& limits) : input_(input), limits_(limits) {}

    /// The bytes at `offset`, or nothing: after the end, or after a failure. `size` is at most
    /// 4096. Valid until the next call.
    [[nodiscard]] std::span<const unsigned char> bytes(std::uint64_t offset, std::size_t size);
    [[nodiscard]] std::optional<std::uint64_t> big_endian(std::uint64_t offset, std::size_t width);
    [[nodiscard]] std::optional<std::uint64_t> little_endian(std::uint64_t offset,
                                                             std::size_t width);
    /// Any number of bytes, at most `limits().tag_bytes`; fewer at the end of the input.
    [[nodiscard]] std::vector<unsigned char> copy(std::uint64_t offset, std::uint64_t size);
    [[nodiscard]] bool has_text(std::uint64_t offset, std::string_view text);

    /// Counts one tag. libavformat may compare its name with that of every other tag, and copy its
    /// value as often if names are equal.
    void add_tag(std::uint64_t name_bytes, std::uint64_t copied_bytes = 0);
    /// The name of tags that are counted elsewhere.
    void add_name(std::uint64_t bytes);
    void add_edits(std::uint64_t count);
    /// Counts the samples that edits repeat.
    void add_edited_samples(double count);
    void add_chapter();
    void fail(Error error);

    /// True after a failure. A scan that continues then finds nothing.
    [[nodiscard]] bool stopped() const noexcept { return failure_.has_value(); }
    [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }
    [[nodiscard]] bool seekable() const noexcept { return input_.source().seekable(); }
    [[nodiscard]] std::optional<std::uint64_t> size_bytes() const noexcept {
        return input_.source().size_bytes();
    }
    [[nodiscard]] const Limits& limits() const noexcept { return limits_; }

private:
    void check_tags();
    void exceed(const char* what, std::uint64_t found, std::uint64_t limit);

    AvioInput& input_;
    const Limits& limits_;
    std::vector<std::byte> window_;
    std::uint64_t window_begin_ = 0;
    std::uint64_t tags_ = 0;
    std::uint64_t name_bytes_ = 0;
    std::uint64_t copied_bytes_ = 0;
    std::uint64_t edits_ = 0;
    double edited_samples_ = 0;
    std::uint64_t chapters_ = 0;
    std::optional<Error> failure_;
};

/// Errors: `limit_exceeded`, `undecodable` for an empty input, `cancelled`, and those of the
/// source.
[[nodiscard]] Result<void> scan_head(AvioInput& input, const Limits& limits);

// The parts, each for one format. Each returns at once if the bytes are not of its format.

/// Scans all ID3v2 tags from `offset` on. Returns the offset after them.
std::uint64_t scan_id3v2(HeadScan& scan, std::uint64_t offset);
/// APEv2 at the end of the input.
void scan_ape(HeadScan& scan);
void scan_flac(HeadScan& scan, std::uint64_t offset);
void scan_ogg(HeadScan& scan, std::uint64_t offset);
void scan_mp4(HeadScan& scan, std::uint64_t offset);
void scan_matroska(HeadScan& scan, std::uint64_t offset);
/// RIFF (WAV, AVI) and AIFF.
void scan_riff(HeadScan& scan, std::uint64_t offset);
void scan_asf(HeadScan& scan, std::uint64_t offset);

}  // namespace polymux::media
