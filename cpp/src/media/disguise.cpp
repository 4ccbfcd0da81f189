#include "media/disguise.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace polymux::media {

namespace {

using Bytes = std::span<const unsigned char>;

constexpr std::size_t riff_header_bytes = 12;
constexpr std::size_t chunk_header_bytes = 8;

// These match at any position: DTS (core in its four packings, extension substream), TrueHD.
constexpr std::array<std::array<unsigned char, 4>, 6> sync_words = {{
    {0x7F, 0xFE, 0x80, 0x01},
    {0xFE, 0x7F, 0x01, 0x80},
    {0x1F, 0xFF, 0xE8, 0x00},
    {0xFF, 0x1F, 0x00, 0xE8},
    {0x64, 0x58, 0x20, 0x25},
    {0xF8, 0x72, 0x6F, 0xBA},
}};

bool has_text(Bytes bytes, std::size_t offset, const char (&text)[5]) noexcept {
    return bytes.size() >= offset + 4 && std::memcmp(bytes.data() + offset, text, 4) == 0;
}

/// The bytes after the header of the first "data" chunk; none if it is missing.
std::optional<Bytes> samples(Bytes head) noexcept {
    if (!has_text(head, 0, "RIFF") || !has_text(head, 8, "WAVE")) return std::nullopt;
    std::size_t offset = riff_header_bytes;
    while (offset + chunk_header_bytes <= head.size()) {
        const std::size_t content = offset + chunk_header_bytes;
        if (has_text(head, offset, "data")) return head.subspan(content);
        std::size_t size = 0;
        for (std::size_t index = 0; index < 4; ++index) {
            size |= std::size_t{head[offset + 4 + index]} << (8 * index);
        }
        offset = content + size + size % 2;
    }
    return std::nullopt;
}

/// Whether a frame of MP3, AAC (ADTS or LOAS), AC-3 or E-AC-3, or an ID3 tag, may begin here. These
/// count only as an unbroken chain from the first sample.
bool may_begin_chain(Bytes bytes) noexcept {
    if (bytes.size() < 2) return false;
    const unsigned first = bytes[0];
    const unsigned second = bytes[1];
    const bool eleven_bits = second >= 0xE0;
    if (eleven_bits && (first == 0xFF || first == 0x56)) return true;
    const bool ac3 = (first == 0x0B && second == 0x77) || (first == 0x77 && second == 0x0B);
    return ac3 || (first == 0x01 && second == 0x10) || (first == 'I' && second == 'D');
}

bool holds(Bytes bytes, const std::array<unsigned char, 4>& word) noexcept {
    return ::memmem(bytes.data(), bytes.size(), word.data(), word.size()) != nullptr;
}

}  // namespace

bool may_be_disguised(Bytes head) noexcept {
    const std::optional<Bytes> found = samples(head);
    if (!found) return true;
    const auto audible =
        std::find_if(found->begin(), found->end(), [](unsigned char byte) { return byte != 0; });
    const Bytes from_first_sound{audible, found->end()};
    if (may_begin_chain(*found) || may_begin_chain(from_first_sound)) return true;
    return std::any_of(sync_words.begin(), sync_words.end(),
                       [&](const auto& word) { return holds(*found, word); });
}

}  // namespace polymux::media
