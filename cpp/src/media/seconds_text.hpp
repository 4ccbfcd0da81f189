// Seconds as text for messages.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace polymux::media {

/// "60", or "0.500": three decimals unless the number is whole.
[[nodiscard]] inline std::string seconds_text(double seconds) {
    std::array<char, 32> text{};
    const int decimals = seconds == std::floor(seconds) ? 0 : 3;
    const auto [end, status] = std::to_chars(text.data(), text.data() + text.size(), seconds,
                                             std::chars_format::fixed, decimals);
    return status == std::errc() ? std::string(text.data(), end) : std::string("?");
}

}  // namespace polymux::media
