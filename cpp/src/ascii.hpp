// ASCII letters and digits, independent of the locale.
#pragma once

#include <string>
#include <string_view>

namespace polymux {

constexpr bool is_digit(char letter) noexcept {
    return letter >= '0' && letter <= '9';
}

constexpr char lower(char letter) noexcept {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// Converts ASCII letters to lower case; other bytes stay.
inline std::string lower_case(std::string_view text) {
    std::string result(text);
    for (char& letter : result) letter = lower(letter);
    return result;
}

constexpr bool is_word(char letter) noexcept {
    return is_digit(letter) || letter == '_' || (lower(letter) >= 'a' && lower(letter) <= 'z');
}

}  // namespace polymux
