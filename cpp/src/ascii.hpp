// ASCII letters and digits, independent of the locale.
#pragma once

#include <cstddef>
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

/// The value of a hexadecimal digit, or -1.
constexpr int hex_digit(char letter) noexcept {
    if (is_digit(letter)) return letter - '0';
    const char small = lower(letter);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/// Compares without regard to the case of ASCII letters.
constexpr bool equals_ignoring_case(std::string_view one, std::string_view other) noexcept {
    if (one.size() != other.size()) return false;
    for (std::size_t index = 0; index < one.size(); ++index) {
        if (lower(one[index]) != lower(other[index])) return false;
    }
    return true;
}

/// Removes spaces and tabs at both ends.
constexpr std::string_view trim(std::string_view text) noexcept {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

}  // namespace polymux
