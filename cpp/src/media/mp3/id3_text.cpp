#include <algorithm>
#include <array>

#include "media/mp3/id3_parts.hpp"

namespace polymux::media::mp3::id3 {

namespace {

constexpr char32_t replacement = 0xFFFD;

unsigned byte_at(std::string_view text, std::size_t index) {
    return static_cast<unsigned char>(text[index]);
}

struct Decoded {
    char32_t letter = replacement;
    std::size_t length = 1;
};

// Decodes one code point from `text`, which must not be empty. A broken sequence extends as far as
// it could have been valid, as Unicode recommends.
Decoded decode_one(std::string_view text) {
    const unsigned lead = byte_at(text, 0);
    if (lead < 0x80) return {static_cast<char32_t>(lead), 1};
    if (lead < 0xC2 || lead > 0xF4) return {};
    const std::size_t following = lead < 0xE0 ? 1 : (lead < 0xF0 ? 2 : 3);

    // The range of the second byte excludes overlong forms, surrogates and code points above
    // U+10FFFF.
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    auto letter = static_cast<char32_t>(lead & (0x3FU >> following));
    for (std::size_t i = 1; i <= following; ++i) {
        if (i >= text.size() || byte_at(text, i) < low || byte_at(text, i) > high) {
            return {replacement, i};
        }
        letter = letter << 6 | (byte_at(text, i) & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    return {letter, following + 1};
}

bool is_control(char32_t letter) {
    return letter < 0x20 || (letter >= 0x7F && letter < 0xA0);
}

void append_byte(Bytes& bytes, unsigned value) {
    bytes.push_back(static_cast<std::byte>(value & 0xFF));
}

void append_utf16_unit(Bytes& bytes, unsigned unit) {
    append_byte(bytes, unit);
    append_byte(bytes, unit >> 8);
}

void append_utf16(Bytes& bytes, std::u32string_view text) {
    append_utf16_unit(bytes, 0xFEFF);
    for (const char32_t letter : text) {
        const auto value = static_cast<unsigned>(letter);
        if (value < 0x10000) {
            append_utf16_unit(bytes, value);
        } else {
            append_utf16_unit(bytes, 0xD800 | (value - 0x10000) >> 10);
            append_utf16_unit(bytes, 0xDC00 | ((value - 0x10000) & 0x3FF));
        }
    }
}

void append_utf8(Bytes& bytes, std::u32string_view text) {
    for (const char32_t letter : text) {
        const auto value = static_cast<unsigned>(letter);
        if (value < 0x80) {
            append_byte(bytes, value);
            continue;
        }
        const unsigned following = value < 0x800 ? 1 : (value < 0x10000 ? 2 : 3);
        constexpr std::array<unsigned, 4> marks = {0, 0xC0, 0xE0, 0xF0};
        append_byte(bytes, marks[following] | value >> (6 * following));
        for (unsigned i = following; i-- > 0;) append_byte(bytes, 0x80 | (value >> (6 * i) & 0x3F));
    }
}

}  // namespace

std::u32string decode_text(std::string_view utf8) {
    std::u32string text;
    text.reserve(utf8.size());
    while (!utf8.empty()) {
        const auto [letter, length] = decode_one(utf8);
        const bool is_crlf = letter == U'\r' && utf8.size() > 1 && utf8[1] == '\n';
        utf8.remove_prefix(length);
        if (is_crlf) continue;
        if (letter == U'\n' || letter == U'\r') {
            text.push_back(U'\n');
        } else if (letter == U'\t') {
            text.push_back(U' ');
        } else if (!is_control(letter)) {
            text.push_back(letter);
        }
    }
    return text;
}

std::u32string single_line(std::u32string text) {
    std::ranges::replace(text, U'\n', U' ');
    return text;
}

Encoding choose_encoding(int version, std::span<const std::u32string_view> texts) {
    if (version == 4) return Encoding::utf8;
    const bool fits = std::ranges::all_of(texts, [](std::u32string_view text) {
        return std::ranges::all_of(text, [](char32_t letter) { return letter <= 0xFF; });
    });
    return fits ? Encoding::latin1 : Encoding::utf16;
}

void append_number(Bytes& bytes, std::uint32_t value, SizeCoding coding) {
    const unsigned bits = coding == SizeCoding::synchsafe ? 7 : 8;
    const std::uint32_t mask = (1U << bits) - 1;
    for (unsigned i = 4; i-- > 0;) append_byte(bytes, value >> (bits * i) & mask);
}

void append_raw(Bytes& bytes, std::string_view text) {
    for (const char letter : text) bytes.push_back(static_cast<std::byte>(letter));
}

void append_text(Bytes& bytes, std::u32string_view text, Encoding encoding) {
    switch (encoding) {
        case Encoding::latin1:
            for (const char32_t letter : text) append_byte(bytes, static_cast<unsigned>(letter));
            break;
        case Encoding::utf16:
            append_utf16(bytes, text);
            break;
        case Encoding::utf8:
            append_utf8(bytes, text);
            break;
    }
}

void append_terminator(Bytes& bytes, Encoding encoding) {
    bytes.insert(bytes.end(), encoding == Encoding::utf16 ? 2 : 1, std::byte{0});
}

bool FrameList::add(std::string_view id, std::span<const std::byte> head,
                    std::span<const std::byte> tail, std::optional<SizeCoding> coding) {
    constexpr std::size_t header_bytes = 10;
    const std::size_t size = head.size() + tail.size();
    if (size > max_tag_bytes || size + header_bytes > free_bytes()) return false;
    const auto standard = version_ == 4 ? SizeCoding::synchsafe : SizeCoding::plain;
    append_raw(bytes_, id);
    append_number(bytes_, static_cast<std::uint32_t>(size), coding.value_or(standard));
    bytes_.insert(bytes_.end(), 2, std::byte{0});
    bytes_.insert(bytes_.end(), head.begin(), head.end());
    bytes_.insert(bytes_.end(), tail.begin(), tail.end());
    return true;
}

bool FrameList::add_frames(std::span<const std::byte> frames) {
    if (frames.size() > free_bytes()) return false;
    bytes_.insert(bytes_.end(), frames.begin(), frames.end());
    return true;
}

Bytes FrameList::as_tag() const {
    Bytes tag;
    tag.reserve(10 + bytes_.size() + padding_bytes);
    append_raw(tag, "ID3");
    append_byte(tag, static_cast<unsigned>(version_));
    tag.insert(tag.end(), 2, std::byte{0});  // revision, flags
    append_number(tag, static_cast<std::uint32_t>(bytes_.size() + padding_bytes),
                  SizeCoding::synchsafe);
    tag.insert(tag.end(), bytes_.begin(), bytes_.end());
    tag.insert(tag.end(), padding_bytes, std::byte{0});
    return tag;
}

}  // namespace polymux::media::mp3::id3
