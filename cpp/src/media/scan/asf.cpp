// Tags of ASF (WMA, WMV): the objects with a number of names and values.
#include <string_view>

#include "media/scan/head_scan.hpp"

namespace polymux::media {

namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t guid_bytes = 16;
constexpr std::uint64_t object_header_bytes = 24;

constexpr std::string_view header =
    "\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9\x00\xAA\x00\x62\xCE\x6C"sv;
constexpr std::string_view header_extension =
    "\xB5\x03\xBF\x5F\x2E\xA9\xCF\x11\x8E\xE3\x00\xC0\x0C\x20\x53\x65"sv;
constexpr std::string_view extended_content_description =
    "\x40\xA4\xD0\xD2\x07\xE3\xD2\x11\x97\xF0\x00\xA0\xC9\x5E\xA8\x50"sv;
constexpr std::string_view metadata =
    "\xEA\xCB\xF8\xC5\xAF\x5B\x77\x48\x84\x67\xAA\x8C\x44\xFA\x4C\xCA"sv;
constexpr std::string_view metadata_library =
    "\x94\x1C\x23\x44\x98\x94\xD1\x49\xA1\x41\x1D\x13\x4E\x45\x70\x54"sv;

/// A count, and as many entries: the lengths of a name and of a value, in one of two layouts.
void scan_tags(HeadScan& scan, std::uint64_t offset, bool are_described) {
    const std::uint64_t count = scan.little_endian(offset, 2).value_or(0);
    offset += 2;
    for (std::uint64_t number = 0; number < count && !scan.stopped(); ++number) {
        if (are_described) {
            const std::uint64_t name = scan.little_endian(offset, 2).value_or(0);
            const std::uint64_t value = scan.little_endian(offset + 2 + name + 2, 2).value_or(0);
            scan.add_tag(name);
            offset += 6 + name + value;
        } else {
            const std::uint64_t name = scan.little_endian(offset + 4, 2).value_or(0);
            const std::uint64_t value = scan.little_endian(offset + 8, 4).value_or(0);
            scan.add_tag(name);
            offset += 12 + name + value;
        }
    }
}

void scan_objects(HeadScan& scan, std::uint64_t offset, std::uint64_t end, bool nested) {
    while (!scan.stopped() && offset < end) {
        const std::optional<std::uint64_t> size = scan.little_endian(offset + guid_bytes, 8);
        if (!size || *size < object_header_bytes || *size > INT64_MAX) return;
        const std::uint64_t content = offset + object_header_bytes;
        if (scan.has_text(offset, extended_content_description)) {
            scan_tags(scan, content, true);
        } else if (scan.has_text(offset, metadata) || scan.has_text(offset, metadata_library)) {
            scan_tags(scan, content, false);
        } else if (!nested && scan.has_text(offset, header_extension)) {
            constexpr std::uint64_t reserved_bytes = 22;
            scan_objects(scan, content + reserved_bytes, offset + *size, true);
        }
        offset += *size;
    }
}

}  // namespace

void scan_asf(HeadScan& scan, std::uint64_t offset) {
    if (!scan.has_text(offset, header)) return;
    const std::uint64_t size = scan.little_endian(offset + guid_bytes, 8).value_or(0);
    constexpr std::uint64_t reserved_bytes = 6;
    if (size > INT64_MAX) return;
    scan_objects(scan, offset + object_header_bytes + reserved_bytes, offset + size, false);
}

}  // namespace polymux::media
