// Vorbis comments in FLAC and in Ogg (Vorbis, Opus, Speex, FLAC, Theora, VP8 and others).
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "media/scan/head_scan.hpp"

namespace polymux::media {

namespace {

using namespace std::string_view_literals;
using Bytes = std::vector<unsigned char>;

bool begins_with(std::string_view text, std::string_view prefix) {
    return text.starts_with(prefix);
}

std::string_view as_text(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Takes a number of four bytes from the front; nothing if there are fewer.
std::optional<std::uint32_t> take_number(std::string_view& text) {
    if (text.size() < 4) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t index = 4; index > 0; --index) {
        value = value << 8U | static_cast<unsigned char>(text[index - 1]);
    }
    text.remove_prefix(4);
    return value;
}

/// A vendor, a count, and as many texts "KEY=value", each after its length.
void scan_comments(HeadScan& scan, std::string_view text) {
    constexpr std::string_view picture = "METADATA_BLOCK_PICTURE=";
    const std::optional<std::uint32_t> vendor = take_number(text);
    if (!vendor || *vendor > text.size()) return;
    text.remove_prefix(*vendor);
    for (std::uint32_t count = take_number(text).value_or(0); count > 0; --count) {
        const std::optional<std::uint32_t> size = take_number(text);
        if (!size || *size > text.size() || scan.stopped()) return;
        const std::string_view comment = text.substr(0, *size);
        // A picture is not kept as text.
        if (comment.starts_with(picture)) {
            scan.add_tag(picture.size());
        } else {
            scan.add_tag(std::min(comment.find('='), comment.size()), comment.size());
        }
        text.remove_prefix(*size);
    }
}

/// Where the comments of an Ogg stream are, by the beginning of its first packet.
struct CommentPacket {
    std::string_view stream;
    std::string_view packet;  ///< Begins a packet with comments; if empty, it is the second.
    std::size_t offset = 0;   ///< Of the comments in the packet.
};

constexpr std::array<CommentPacket, 14> comment_packets = {{
    {"\x01vorbis"sv, "\x03vorbis"sv, 7},
    {"OpusHead"sv, "OpusTags"sv, 8},
    {"\x7f\x46LAC"sv, "\x04"sv, 4},
    {"\x7f\x46LAC"sv, "\x84"sv, 4},
    {"fLaC"sv, "\x04"sv, 4},
    {"fLaC"sv, "\x84"sv, 4},
    {"Speex   "sv, ""sv, 0},
    {"CELT    "sv, ""sv, 0},
    {"\x80theora"sv, "\x81theora"sv, 7},
    {"\x80\x64\x61\x61la"sv, "\x81\x64\x61\x61la"sv, 6},
    {"OVP80"sv, "OVP80\x02"sv, 7},
    {"\x01\x61udio"sv, "\x03"sv, 7},
    {"\x01video"sv, "\x03"sv, 7},
    {"\x01text"sv, "\x03"sv, 7},
}};

/// One Ogg stream up to its first samples.
struct OggStream {
    Bytes first;   ///< The first packet.
    Bytes packet;  ///< The packet that is not yet complete.
    int packets = 0;
    bool has_samples = false;

    void end_packet(HeadScan& scan) {
        if (++packets == 1) {
            first.swap(packet);
        } else {
            for (const CommentPacket& one : comment_packets) {
                const std::string_view text = as_text(packet);
                if (!begins_with(as_text(first), one.stream) || text.size() < one.offset) continue;
                const bool found =
                    one.packet.empty() ? packets == 2 : begins_with(text, one.packet);
                if (found) scan_comments(scan, text.substr(one.offset));
            }
        }
        packet.clear();
    }
};

constexpr std::uint64_t page_header_bytes = 27;

/// Adds the packets of a page with `segments` lengths. Returns the offset after the page.
std::uint64_t scan_page(HeadScan& scan, std::uint64_t offset, const Bytes& segments,
                        OggStream& stream) {
    for (const unsigned char size : segments) {
        if (!stream.has_samples) {
            const auto found = scan.bytes(offset, size);
            stream.packet.insert(stream.packet.end(), found.begin(), found.end());
            if (size < 255) stream.end_packet(scan);
        }
        offset += size;
    }
    return offset;
}

}  // namespace

void scan_flac(HeadScan& scan, std::uint64_t offset) {
    constexpr unsigned comment_block = 4;
    constexpr unsigned last_block = 0x80;
    if (!scan.has_text(offset, "fLaC")) return;
    offset += 4;
    for (bool last = false; !last && !scan.stopped();) {
        const std::optional<std::uint64_t> type = scan.big_endian(offset, 1);
        const std::optional<std::uint64_t> size = scan.big_endian(offset + 1, 3);
        if (!type || !size) return;
        offset += 4;
        last = (*type & last_block) != 0;
        if ((*type & ~last_block) == comment_block) {
            scan_comments(scan, as_text(scan.copy(offset, *size)));
        }
        offset += *size;
    }
}

void scan_ogg(HeadScan& scan, std::uint64_t offset) {
    std::map<std::uint64_t, OggStream> streams;
    const std::uint64_t end = offset + static_cast<std::uint64_t>(scan.limits().tag_bytes);
    while (offset < end && scan.has_text(offset, "OggS")) {
        const std::uint64_t position = scan.little_endian(offset + 6, 8).value_or(0);
        const std::uint64_t serial = scan.little_endian(offset + 14, 4).value_or(0);
        const std::uint64_t count = scan.big_endian(offset + 26, 1).value_or(0);
        const Bytes segments = scan.copy(offset + page_header_bytes, count);
        OggStream& stream = streams[serial];
        // Headers have position 0, and pages within which no packet ends have -1.
        stream.has_samples |= position != 0 && position != UINT64_MAX;
        offset = scan_page(scan, offset + page_header_bytes + count, segments, stream);
        const bool all = std::ranges::all_of(
            streams, [](const auto& entry) { return entry.second.has_samples; });
        if (all) return;
    }
}

}  // namespace polymux::media
