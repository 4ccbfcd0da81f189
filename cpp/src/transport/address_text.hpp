// Parses addresses, also at compile time: the table of networks is written as text.
#pragma once

#include <optional>
#include <string_view>

#include "polymux/transport/address.hpp"

namespace polymux::transport::address_text {

constexpr bool is_digit(char character) noexcept {
    return character >= '0' && character <= '9';
}

/// A decimal number without leading zeros; -1 if invalid or above `max_value`.
constexpr int decimal(std::string_view text, int max_value) noexcept {
    if (text.empty() || text.size() > 3 || (text.size() > 1 && text.front() == '0')) return -1;
    int value = 0;
    for (const char character : text) {
        if (!is_digit(character)) return -1;
        value = value * 10 + (character - '0');
    }
    return value <= max_value ? value : -1;
}

constexpr int hexadecimal(char character) noexcept {
    if (is_digit(character)) return character - '0';
    if (character >= 'a' && character <= 'f') return character - 'a' + 10;
    if (character >= 'A' && character <= 'F') return character - 'A' + 10;
    return -1;
}

constexpr std::optional<Address> ipv4(std::string_view text) noexcept {
    Address address;
    for (std::size_t part = 0; part < 4; ++part) {
        const std::size_t end = part < 3 ? text.find('.') : text.size();
        if (end == std::string_view::npos) return {};
        const int value = decimal(text.substr(0, end), 255);
        if (value < 0) return {};
        address.bytes[part] = static_cast<std::uint8_t>(value);
        text.remove_prefix(part < 3 ? end + 1 : end);
    }
    return address;
}

/// One group of up to four hexadecimal digits; -1 if invalid.
constexpr int group(std::string_view text) noexcept {
    if (text.empty() || text.size() > 4) return -1;
    int value = 0;
    for (const char character : text) {
        const int digit = hexadecimal(character);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/// Parses groups separated by ':', the last of which may be an IPv4 address, into `bytes`. Returns
/// the number of bytes, or -1. `text` has no "::".
constexpr int groups(std::string_view text, std::array<std::uint8_t, 16>& bytes) noexcept {
    std::size_t count = 0;
    while (!text.empty()) {
        const std::size_t end = text.find(':');
        const std::string_view part = text.substr(0, end);
        if (part.find('.') != std::string_view::npos) {
            const auto inner = ipv4(part);
            if (!inner || end != std::string_view::npos || count > 12) return -1;
            for (std::size_t index = 0; index < 4; ++index) {
                bytes[count++] = inner->bytes[index];
            }
            return static_cast<int>(count);
        }
        const int value = group(part);
        if (value < 0 || count > 14) return -1;
        bytes[count++] = static_cast<std::uint8_t>(value >> 8);
        bytes[count++] = static_cast<std::uint8_t>(value & 0xff);
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
        if (text.empty()) return -1;  // The text ended with a single ':'.
    }
    return static_cast<int>(count);
}

constexpr std::optional<Address> ipv6(std::string_view text) noexcept {
    Address address{.is_ipv6 = true};
    const std::size_t gap = text.find("::");
    if (gap == std::string_view::npos) {
        if (groups(text, address.bytes) != 16) return {};
        return address;
    }
    const std::string_view before = text.substr(0, gap);
    const std::string_view behind = text.substr(gap + 2);
    if (behind.find("::") != std::string_view::npos || before.find('.') != std::string_view::npos) {
        return {};
    }
    std::array<std::uint8_t, 16> tail{};
    const int head_bytes = groups(before, address.bytes);
    const int tail_bytes = groups(behind, tail);
    if (head_bytes < 0 || tail_bytes < 0 || head_bytes + tail_bytes > 14) return {};
    const auto tail_size = static_cast<std::size_t>(tail_bytes);
    for (std::size_t index = 0; index < tail_size; ++index) {
        address.bytes[16 - tail_size + index] = tail[index];
    }
    return address;
}

constexpr std::optional<Address> address(std::string_view text) noexcept {
    if (text.size() > 45) return {};
    return text.find(':') == std::string_view::npos ? ipv4(text) : ipv6(text);
}

/// Whether all bits after the prefix are 0.
constexpr bool starts_network(const Network& network) noexcept {
    const int size_bits = network.first.is_ipv6 ? 128 : 32;
    for (int bit = network.prefix_bits; bit < size_bits; ++bit) {
        const std::uint8_t byte = network.first.bytes[static_cast<std::size_t>(bit / 8)];
        if (((byte >> (7 - bit % 8)) & 1) != 0) return false;
    }
    return true;
}

constexpr std::optional<Network> network(std::string_view text) noexcept {
    const std::size_t slash = text.find('/');
    const auto first = address(text.substr(0, slash));
    if (!first) return {};
    const int size_bits = first->is_ipv6 ? 128 : 32;
    const int bits =
        slash == std::string_view::npos ? size_bits : decimal(text.substr(slash + 1), size_bits);
    const Network found{.first = *first, .prefix_bits = bits};
    if (bits < 0 || !starts_network(found)) return {};
    return found;
}

}  // namespace polymux::transport::address_text
