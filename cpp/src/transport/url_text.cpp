#include "transport/url_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "ascii.hpp"
#include "transport/address_text.hpp"

namespace polymux::transport {
namespace {

constexpr char32_t broken = 0x110000;

/// Removes the code point at the start of `text` and returns it; `broken` for invalid UTF-8 (RFC
/// 3629: no overlong form, no lone surrogate, nothing above U+10FFFF).
char32_t take_code_point(std::string_view& text) noexcept {
    const auto first = static_cast<std::uint8_t>(text.front());
    const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 1) {
        text.remove_prefix(1);
        return first;
    }
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return broken;
    char32_t code = first & (0x7fU >> length);
    for (std::size_t index = 1; index < length; ++index) {
        const auto next = static_cast<std::uint8_t>(text[index]);
        if ((next & 0xc0U) != 0x80) return broken;
        code = code << 6 | (next & 0x3fU);
    }
    constexpr std::array<char32_t, 5> min_code{0, 0, 0x80, 0x800, 0x10000};
    if (code < min_code[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return broken;
    }
    text.remove_prefix(length);
    return code;
}

/// Controls, spaces, separators, joiners, direction marks, and characters that have no place in
/// text.
bool does_not_show(char32_t code) noexcept {
    constexpr std::array<std::pair<char32_t, char32_t>, 16> ranges{{{0x80, 0xa0},
                                                                    {0xad, 0xad},
                                                                    {0x34f, 0x34f},
                                                                    {0x61c, 0x61c},
                                                                    {0x115f, 0x1160},
                                                                    {0x1680, 0x1680},
                                                                    {0x17b4, 0x17b5},
                                                                    {0x180b, 0x180f},
                                                                    {0x2000, 0x200f},
                                                                    {0x2028, 0x202f},
                                                                    {0x205f, 0x206f},
                                                                    {0x3000, 0x3000},
                                                                    {0xfe00, 0xfe0f},
                                                                    {0xfeff, 0xfeff},
                                                                    {0xfff0, 0xffff},
                                                                    {0xe0000, 0xe0fff}}};
    return std::ranges::any_of(
        ranges, [code](const auto& range) { return code >= range.first && code <= range.second; });
}

bool has_broken_percent_code(std::string_view text) noexcept {
    for (std::size_t at = text.find('%'); at != std::string_view::npos;
         at = text.find('%', at + 1)) {
        if (at + 2 >= text.size() || address_text::hexadecimal(text[at + 1]) < 0 ||
            address_text::hexadecimal(text[at + 2]) < 0) {
            return true;
        }
    }
    return false;
}

}  // namespace

Error refused_url(std::string_view why) {
    return {.code = ErrorCode::url_refused, .message = std::string(refused_url_prefix).append(why)};
}

Result<void> check_url_bytes(std::string_view text) {
    if (text.empty()) return refused_url("it is empty");
    if (text.size() > max_url_bytes) {
        return refused_url("it is too long (got " + std::to_string(text.size()) +
                           " bytes, allowed " + std::to_string(max_url_bytes) + ")");
    }
    if (has_broken_percent_code(text)) {
        return refused_url(
            "it contains a '%' that is not followed by two hexadecimal digits. Write a literal '%' "
            "as %25");
    }
    while (!text.empty()) {
        const char32_t code = take_code_point(text);
        if (code <= 0x20 || code == 0x7f) {
            return refused_url(
                "it contains a space or a control character. Percent-encode the character");
        }
        if (code == '\\') return refused_url("it contains a backslash");
        if (code == broken) return refused_url("it is not valid UTF-8");
        if (does_not_show(code)) return refused_url("it contains an invisible character");
    }
    return {};
}

Result<void> check_url_form(std::string_view text) {
    const std::string start = lower_case(text.substr(0, 8));
    const std::size_t scheme_bytes = start == "https://" ? 8 : start.starts_with("http://") ? 7 : 0;
    if (scheme_bytes == 0) return refused_url("it must begin with http:// or https://");
    const std::string_view rest = text.substr(scheme_bytes);
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
    if (authority.empty() || authority.front() == ':') return refused_url("it has no host");
    // Up to the first slash, whichever end of the host a parser sees.
    if (rest.substr(0, rest.find('/')).find('@') != std::string_view::npos) {
        return refused_url("it contains a user name, or a '@' before its path");
    }
    if (authority.find('%') != std::string_view::npos) {
        return refused_url("its host contains a percent-encoded character or an IPv6 zone");
    }
    if (authority.back() == ':') return refused_url("its port is empty");
    return {};
}

}  // namespace polymux::transport
