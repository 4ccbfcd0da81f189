// Letters and digits of ASCII, whatever the locale says.
#pragma once

namespace polymux {

constexpr bool is_digit(char letter) noexcept {
    return letter >= '0' && letter <= '9';
}

constexpr char lower(char letter) noexcept {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// A letter, a digit or the underscore.
constexpr bool is_word(char letter) noexcept {
    return is_digit(letter) || letter == '_' || (lower(letter) >= 'a' && lower(letter) <= 'z');
}

}  // namespace polymux
