// ID3v2 tags, by libavformat's rules: several in a row, and ID3v2.4 frames whose writer did not
// know how to write sizes.
#include <algorithm>
#include <string>
#include <string_view>

#include "media/scan/head_scan.hpp"

namespace polymux::media {

namespace {

constexpr std::uint64_t tag_header_bytes = 10;
constexpr std::uint64_t max_frame_bytes = std::uint64_t{1} << 28U;
constexpr unsigned has_extended_header = 0x40;
constexpr unsigned has_footer = 0x10;
constexpr unsigned frame_is_compressed = 0x08;

std::uint64_t seven_bits_each(std::uint64_t size) {
    return (size & 0x7FU) | (size & 0x7F00U) >> 1U | (size & 0x7F'0000U) >> 2U |
           (size & 0x7F00'0000U) >> 3U;
}

struct Tag {
    unsigned version = 4;
    std::uint64_t end = 0;

    [[nodiscard]] bool has_short_ids() const noexcept { return version < 3; }
    [[nodiscard]] std::size_t id_bytes() const noexcept { return has_short_ids() ? 3 : 4; }
    [[nodiscard]] std::uint64_t frame_header_bytes() const noexcept {
        return has_short_ids() ? 6 : 10;
    }
};

bool is_frame_id(std::string_view id) {
    return std::ranges::all_of(id, [](unsigned char letter) {
        return (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    });
}

std::string frame_id(HeadScan& scan, std::uint64_t offset, const Tag& tag) {
    const auto found = scan.bytes(offset, tag.id_bytes());
    return {found.begin(), found.end()};
}

/// Whether a frame or padding begins here.
bool may_be_frame(HeadScan& scan, std::uint64_t offset) {
    const auto id = scan.bytes(offset, 4);
    if (id.empty()) return false;
    const std::string_view text(reinterpret_cast<const char*>(id.data()), id.size());
    return text == std::string_view("\0\0\0\0", 4) || is_frame_id(text);
}

/// The size of the frame's content, or nothing if the tag ends here.
std::optional<std::uint64_t> content_bytes(HeadScan& scan, std::uint64_t frame, const Tag& tag) {
    if (tag.has_short_ids()) return scan.big_endian(frame + 3, 3);
    const std::optional<std::uint64_t> size = scan.big_endian(frame + 4, 4);
    if (!size || tag.version == 3 || *size <= 0x7F) return size;
    const std::uint64_t content = frame + tag.frame_header_bytes();
    if (*size >= tag.end - frame) return seven_bits_each(*size);
    if (may_be_frame(scan, content + seven_bits_each(*size))) return seven_bits_each(*size);
    if (may_be_frame(scan, content + *size)) return size;
    return std::nullopt;
}

/// The bytes of a frame's content before the description that becomes a part of the tag's name, or
/// nothing if the name is short.
std::optional<std::uint64_t> description_offset(std::string_view id) {
    if (id == "TXXX" || id == "TXX") return 1;
    if (id == "COMM" || id == "COM" || id == "USLT" || id == "ULT") return 4;
    if (id == "PRIV") return 0;
    return std::nullopt;
}

/// The length of a text that ends at a zero: of two bytes in UTF-16.
std::uint64_t description_bytes(HeadScan& scan, std::uint64_t offset, std::uint64_t size,
                                std::uint64_t encoding) {
    constexpr std::uint64_t max_searched_bytes = 4096;
    const std::uint64_t width = encoding == 1 || encoding == 2 ? 2 : 1;
    const auto text = scan.bytes(offset, std::min(size, max_searched_bytes));
    for (std::size_t index = 0; index + width <= text.size(); index += width) {
        if (text[index] == 0 && text[index + width - 1] == 0) return index;
    }
    return size;
}

std::uint64_t name_bytes(HeadScan& scan, std::string_view id, std::uint64_t content,
                         std::uint64_t size, std::uint64_t flags) {
    const std::optional<std::uint64_t> offset = description_offset(id);
    if (!offset || *offset >= size) return id.size();
    if ((flags & frame_is_compressed) != 0) {
        return std::max(size, scan.big_endian(content, 4).value_or(0));
    }
    const std::uint64_t encoding = *offset == 0 ? 0 : scan.big_endian(content, 1).value_or(0);
    return description_bytes(scan, content + *offset, size - *offset, encoding);
}

/// Each chapter has its own tags, usually one. Only an unusual number of them counts.
void scan_chapter(HeadScan& scan, std::uint64_t offset, std::uint64_t end) {
    constexpr std::uint64_t times_bytes = 16;
    constexpr std::uint64_t header_bytes = 10;
    constexpr int usual_tags = 16;
    scan.add_chapter();
    while (offset < end && scan.big_endian(offset, 1).value_or(0) != 0) ++offset;
    offset += 1 + times_bytes;
    for (int tags = 0; !scan.stopped() && offset + header_bytes < end; ++tags) {
        const std::optional<std::uint64_t> size = scan.big_endian(offset + 4, 4);
        if (!size) return;
        if (tags >= usual_tags) scan.add_tag(*size);
        offset += header_bytes + *size;
    }
}

void scan_frames(HeadScan& scan, std::uint64_t offset, const Tag& tag) {
    while (!scan.stopped() && offset + tag.frame_header_bytes() <= tag.end) {
        const std::string id = frame_id(scan, offset, tag);
        const std::optional<std::uint64_t> size = content_bytes(scan, offset, tag);
        if (id.empty() || id.front() == '\0' || !size || *size > max_frame_bytes) return;
        const std::uint64_t content = offset + tag.frame_header_bytes();
        const std::uint64_t flags =
            tag.has_short_ids() ? 0 : scan.big_endian(offset + 8, 2).value_or(0);
        offset = content + *size;
        if (offset > tag.end) return;
        if (id == "CHAP") {
            scan_chapter(scan, content, offset);
            continue;
        }
        scan.add_tag(name_bytes(scan, id, content, *size, flags));
    }
}

void check_size(HeadScan& scan, std::uint64_t bytes) {
    const std::int64_t limit = scan.limits().tag_bytes;
    if (static_cast<std::int64_t>(bytes) <= limit) return;
    scan.fail(Error{.code = ErrorCode::limit_exceeded,
                    .message = "the input's ID3v2 tag is too large (got " + std::to_string(bytes) +
                               " bytes, limit tag_bytes=" + std::to_string(limit) + ")"});
}

}  // namespace

std::uint64_t scan_id3v2(HeadScan& scan, std::uint64_t offset) {
    for (;;) {
        const auto header = scan.bytes(offset, tag_header_bytes);
        const std::string_view mark = "ID3";
        if (header.empty() || !std::equal(mark.begin(), mark.end(), header.begin())) return offset;
        const unsigned version = header[3];
        const unsigned flags = header[5];
        const std::uint64_t begin = offset + tag_header_bytes;
        const std::uint64_t size = seven_bits_each(*scan.big_endian(offset + 6, 4));
        check_size(scan, tag_header_bytes + size);
        const Tag tag{.version = version, .end = begin + size};
        std::uint64_t frames = begin;
        if (version >= 3 && (flags & has_extended_header) != 0) {
            const std::uint64_t extension = seven_bits_each(scan.big_endian(begin, 4).value_or(0));
            frames += version == 4 ? extension : extension + 4;
        }
        scan_frames(scan, frames, tag);
        offset = tag.end;
        if (version == 4 && (flags & has_footer) != 0) offset += tag_header_bytes;
    }
}

}  // namespace polymux::media
