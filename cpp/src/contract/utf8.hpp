// Counts characters in valid UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace polymux::contract {

inline bool continues_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// The first code points of a text.
inline std::string_view first_characters(std::string_view text, std::size_t code_points) {
    if (text.size() <= code_points) return text;
    std::size_t end = 0;
    while (end < text.size() && code_points > 0) {
        ++end;
        while (end < text.size() && continues_character(text[end])) ++end;
        --code_points;
    }
    return text.substr(0, end);
}

/// Number of code points of a text, counted at least up to `limit`.
inline std::size_t count_characters(std::string_view text, std::size_t limit) {
    std::size_t count = 0;
    for (std::size_t index = 0; index < text.size() && count < limit; ++index) {
        if (!continues_character(text[index])) ++count;
    }
    return count;
}

}  // namespace polymux::contract
