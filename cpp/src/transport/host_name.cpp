#include "transport/host_name.hpp"

#include <algorithm>
#include <array>

namespace polymux::transport {
namespace {

constexpr std::array<std::string_view, 4> local_names{"localhost", "ip6-localhost", "ip6-loopback",
                                                      "metadata"};
constexpr std::array<std::string_view, 6> local_endings{".localhost", ".localdomain", ".local",
                                                        ".internal",  ".home.arpa",   ".onion"};

constexpr bool is_label_character(char character) noexcept {
    return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') ||
           character == '-' || character == '_';
}

/// Resolvers treat such a last label as an address: decimal, octal or hexadecimal.
bool is_number(std::string_view label) noexcept {
    constexpr std::string_view decimal = "0123456789";
    constexpr std::string_view hexadecimal = "0123456789abcdef";
    if (label.starts_with("0x")) {
        return label.find_first_not_of(hexadecimal, 2) == std::string_view::npos;
    }
    return label.find_first_not_of(decimal) == std::string_view::npos;
}

}  // namespace

bool is_host_name(std::string_view name) noexcept {
    if (name.empty() || name.size() > 253) return false;
    for (;;) {
        const std::size_t dot = name.find('.');
        const std::string_view label = name.substr(0, dot);
        if (label.empty() || label.size() > 63 || !std::ranges::all_of(label, is_label_character)) {
            return false;
        }
        if (dot == std::string_view::npos) return !is_number(label);
        name.remove_prefix(dot + 1);
    }
}

bool is_local_name(std::string_view name) noexcept {
    return std::ranges::find(local_names, name) != local_names.end() ||
           std::ranges::any_of(local_endings, [&](std::string_view ending) {
               return name.ends_with(ending) || name == ending.substr(1);
           });
}

}  // namespace polymux::transport
