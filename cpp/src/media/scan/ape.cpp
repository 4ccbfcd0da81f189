// APEv2 tags, which are at the end of an input, before an ID3v1 tag.
#include "media/scan/head_scan.hpp"

namespace polymux::media {

namespace {

constexpr std::uint64_t footer_bytes = 32;
constexpr std::uint64_t max_name_bytes = 1024;  // As in libavformat.

void scan_fields(HeadScan& scan, std::uint64_t offset, std::uint64_t count) {
    constexpr std::uint64_t field_header_bytes = 8;
    for (std::uint64_t number = 0; number < count && !scan.stopped(); ++number) {
        const std::optional<std::uint64_t> size = scan.little_endian(offset, 4);
        if (!size) return;
        offset += field_header_bytes;
        const std::uint64_t name = offset;
        while (offset - name < max_name_bytes && scan.big_endian(offset, 1).value_or(0) != 0) {
            ++offset;
        }
        scan.add_tag(offset - name);
        offset += 1 + *size;
    }
}

}  // namespace

void scan_ape(HeadScan& scan) {
    constexpr std::uint64_t id3v1_bytes = 128;
    const std::uint64_t size = scan.size_bytes().value_or(0);
    if (!scan.seekable() || size < footer_bytes + id3v1_bytes) return;
    for (const std::uint64_t footer : {size - footer_bytes - id3v1_bytes, size - footer_bytes}) {
        if (!scan.has_text(footer, "APETAGEX")) continue;
        const std::uint64_t tag_bytes = scan.little_endian(footer + 12, 4).value_or(0);
        const std::uint64_t fields = scan.little_endian(footer + 16, 4).value_or(0);
        const std::uint64_t end = footer + footer_bytes;
        if (tag_bytes >= footer_bytes && tag_bytes <= end) {
            scan_fields(scan, end - tag_bytes, fields);
        }
    }
}

}  // namespace polymux::media
