// Classes of bytes in HTTP/1.1 (RFC 9110, section 5.6; RFC 3986, appendix A).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ascii.hpp"

namespace polymux::http1 {

namespace detail {

enum ByteClass : std::uint8_t { token_byte = 1, host_byte = 2, control_byte = 4, target_byte = 8 };

constexpr std::array<std::uint8_t, 256> make_byte_classes() {
    std::array<std::uint8_t, 256> classes = {};
    const auto add = [&](std::string_view bytes, std::uint8_t kind) {
        for (const char byte : bytes) classes[static_cast<unsigned char>(byte)] |= kind;
    };
    for (unsigned byte = 0; byte < 128; ++byte) {
        const char letter = static_cast<char>(byte);
        if (is_digit(letter) || (lower(letter) >= 'a' && lower(letter) <= 'z')) {
            classes[byte] = token_byte | host_byte;
        }
        if ((byte < ' ' && letter != '\t') || byte == 0x7f) classes[byte] = control_byte;
        if (byte > ' ' && byte < 0x7f && letter != '#') classes[byte] |= target_byte;
    }
    add("!#$%&'*+-.^_`|~", token_byte);
    add("-._~!$&'()*+,;=%:[]", host_byte);
    return classes;
}

inline constexpr std::array<std::uint8_t, 256> byte_classes = make_byte_classes();

constexpr bool all_of_class(std::string_view text, std::uint8_t kind) noexcept {
    for (const char byte : text) {
        if ((byte_classes[static_cast<unsigned char>(byte)] & kind) == 0) return false;
    }
    return true;
}

}  // namespace detail

constexpr bool is_token(std::string_view text) noexcept {
    return !text.empty() && detail::all_of_class(text, detail::token_byte);
}

/// CR and LF are control bytes, HTAB is not.
constexpr bool is_control(char byte) noexcept {
    return (detail::byte_classes[static_cast<unsigned char>(byte)] & detail::control_byte) != 0;
}

/// Visible ASCII without '#'.
constexpr bool is_target(std::string_view text) noexcept {
    return !text.empty() && detail::all_of_class(text, detail::target_byte);
}

}  // namespace polymux::http1
