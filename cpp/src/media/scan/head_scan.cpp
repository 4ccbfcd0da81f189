#include "media/scan/head_scan.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace polymux::media {

namespace {

// Headers that follow each other, and a header after skipped content, for example a fragment of
// MP4.
constexpr std::size_t window_bytes = 32 * 1024;
constexpr std::size_t small_window_bytes = 4 * 1024;

// Far above real files, and at most about 0.2 s of work for libavformat (measured).
constexpr std::uint64_t max_tags = 1000;
constexpr std::uint64_t max_compared_bytes = 20'000'000;
constexpr std::uint64_t max_copied_bytes = 100'000'000;
constexpr std::uint64_t max_edits = 1000;
constexpr double max_edited_samples = 4e6;

}  // namespace

std::span<const unsigned char> HeadScan::bytes(std::uint64_t offset, std::size_t size) {
    if (stopped()) return {};
    const bool begins_inside = offset >= window_begin_ && offset - window_begin_ <= window_.size();
    if (!begins_inside || size > window_.size() - (offset - window_begin_)) {
        window_.resize(begins_inside ? window_bytes : small_window_bytes);
        Result<std::size_t> count = input_.peek(offset, window_);
        if (!count) {
            fail(std::move(count.error()));
            return {};
        }
        window_.resize(*count);
        window_begin_ = offset;
        if (*count < size) return {};
    }
    const auto* data = reinterpret_cast<const unsigned char*>(window_.data());
    return {data + (offset - window_begin_), size};
}

std::optional<std::uint64_t> HeadScan::big_endian(std::uint64_t offset, std::size_t width) {
    const auto found = bytes(offset, width);
    if (found.empty()) return std::nullopt;
    std::uint64_t value = 0;
    for (const unsigned char byte : found) value = value << 8 | byte;
    return value;
}

std::optional<std::uint64_t> HeadScan::little_endian(std::uint64_t offset, std::size_t width) {
    const auto found = bytes(offset, width);
    if (found.empty()) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t index = width; index > 0; --index) value = value << 8 | found[index - 1];
    return value;
}

std::vector<unsigned char> HeadScan::copy(std::uint64_t offset, std::uint64_t size) {
    constexpr std::uint64_t step_bytes = 4096;
    std::vector<unsigned char> copied;
    size = std::min(size, static_cast<std::uint64_t>(std::max<std::int64_t>(limits_.tag_bytes, 0)));
    while (copied.size() < size) {
        const std::uint64_t step = std::min(size - copied.size(), step_bytes);
        auto found = bytes(offset + copied.size(), step);
        if (found.empty()) break;
        copied.insert(copied.end(), found.begin(), found.end());
    }
    return copied;
}

bool HeadScan::has_text(std::uint64_t offset, std::string_view text) {
    const auto found = bytes(offset, text.size());
    return !found.empty() && std::memcmp(found.data(), text.data(), text.size()) == 0;
}

void HeadScan::add_tag(std::uint64_t name_bytes, std::uint64_t copied_bytes) {
    ++tags_;
    name_bytes_ += name_bytes;
    copied_bytes_ += copied_bytes;
    check_tags();
}

void HeadScan::add_name(std::uint64_t bytes) {
    name_bytes_ += bytes;
    check_tags();
}

void HeadScan::check_tags() {
    if (tags_ > max_tags) exceed("tags", tags_, max_tags);
    if (tags_ <= 1) return;
    const std::uint64_t max_names = max_compared_bytes / (tags_ - 1);
    if (name_bytes_ > max_names) exceed("bytes in the names of tags", name_bytes_, max_names);
    const std::uint64_t max_values = max_copied_bytes / (tags_ - 1);
    if (copied_bytes_ > max_values) exceed("bytes in many tags", copied_bytes_, max_values);
}

void HeadScan::add_edits(std::uint64_t count) {
    edits_ += count;
    if (edits_ > max_edits) exceed("edit-list entries", edits_, max_edits);
}

void HeadScan::add_edited_samples(double count) {
    edited_samples_ += count;
    if (edited_samples_ <= max_edited_samples) return;
    exceed("samples repeated by its edit lists", static_cast<std::uint64_t>(max_edited_samples) + 1,
           static_cast<std::uint64_t>(max_edited_samples));
}

void HeadScan::add_chapter() {
    ++chapters_;
    const auto limit = static_cast<std::uint64_t>(std::max(limits_.chapters, 0));
    if (chapters_ > limit) exceed("chapters", chapters_, limit);
}

void HeadScan::exceed(const char* what, std::uint64_t found, std::uint64_t limit) {
    fail(Error{.code = ErrorCode::limit_exceeded,
               .message = "the input has too many " + std::string(what) + " (got " +
                          std::to_string(found) + " or more, allowed " + std::to_string(limit) +
                          "). Remove them from the file"});
}

void HeadScan::fail(Error error) {
    if (stopped()) return;
    if (error.input_name.empty()) error.input_name = input_.name();
    failure_ = std::move(error);
}

Result<void> scan_head(AvioInput& input, const Limits& limits) {
    HeadScan scan(input, limits);
    if (scan.bytes(0, 1).empty() && !scan.stopped()) {
        scan.fail(Error{.code = ErrorCode::undecodable,
                        .message = input.source().seekable()
                                       ? "the input is empty (0 bytes)"
                                       : "the input is empty (0 bytes), or was read before"});
    }
    const std::uint64_t offset = scan_id3v2(scan, 0);
    scan_flac(scan, offset);
    scan_ogg(scan, offset);
    scan_mp4(scan, offset);
    scan_matroska(scan, offset);
    scan_riff(scan, offset);
    scan_asf(scan, offset);
    scan_ape(scan);
    if (scan.failure()) return *scan.failure();
    return input.rewind();
}

}  // namespace polymux::media
