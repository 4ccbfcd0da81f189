// Paths in messages. A path may have any bytes; messages and logs must be valid UTF-8 on one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polymux {

/// Length of the well-formed UTF-8 sequence (RFC 3629) at the front of `text`; 0 if ill-formed.
inline std::size_t utf8_sequence_bytes(std::string_view text) noexcept {
    const auto byte_at = [text](std::size_t index) -> unsigned {
        return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
    };
    const unsigned lead = byte_at(0);
    if (lead < 0x80) return text.empty() ? 0 : 1;
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    for (std::size_t index = 1; index < length; ++index) {
        if ((byte_at(index) & 0xC0U) != 0x80U) return 0;
    }
    // Overlong forms, surrogates and values above U+10FFFF differ only in the second byte.
    const unsigned second = byte_at(1);
    const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                       (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
    return wrong ? 0 : length;
}

/// The path in quotes. Control characters and invalid bytes become \xNN, and a long path loses its
/// middle but keeps its file name.
inline std::string quoted_path(std::string_view path) {
    constexpr std::size_t max_length = 300;
    constexpr std::size_t head = 100;
    constexpr std::string_view digits = "0123456789abcdef";
    bool shorten = path.size() > max_length;
    std::string text = "'";
    for (std::size_t index = 0; index < path.size();) {
        if (shorten && index >= head) {
            shorten = false;
            text += "[...]";
            index = path.size() - (max_length - head);
            while (index < path.size() &&
                   (static_cast<unsigned char>(path[index]) & 0xC0U) == 0x80U) {
                ++index;
            }
            continue;
        }
        const std::string_view sequence =
            path.substr(index, utf8_sequence_bytes(path.substr(index)));
        const auto byte = static_cast<unsigned char>(path[index]);
        // Some terminals interpret U+0080 to U+009F like the ASCII control characters.
        const bool control = byte < 0x20 || byte == 0x7F ||
                             (byte == 0xC2 && sequence.size() == 2 &&
                              static_cast<unsigned char>(sequence[1]) < 0xA0);
        if (sequence.empty() || control) {
            text += {'\\', 'x', digits[byte >> 4U], digits[byte & 0xFU]};
            ++index;
        } else {
            text += sequence;
            index += sequence.size();
        }
    }
    return text + "'";
}

}  // namespace polymux
