#include "polymux/text_parsing.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <system_error>

#include "ascii.hpp"

namespace polymux {

namespace {

bool all_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, is_digit);
}

bool is_one_of(std::string_view text, std::span<const std::string_view> words) {
    return std::ranges::any_of(
        words, [text](std::string_view word) { return std::ranges::equal(text, word, {}, lower); });
}

/// digits[.digits][e[+-]digits], or .digits
bool is_decimal(std::string_view text) {
    const auto skip_digits = [&text] {
        const auto end = std::ranges::find_if_not(text, is_digit);
        const auto count = static_cast<std::size_t>(end - text.begin());
        text.remove_prefix(count);
        return count;
    };
    std::size_t digits = skip_digits();
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        digits += skip_digits();
    }
    if (digits == 0) return false;
    if (text.empty()) return true;
    if (text.front() != 'e' && text.front() != 'E') return false;
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    return all_digits(text);
}

}  // namespace

std::optional<ParsedInteger> parse_integer(std::string_view text) {
    std::string_view digits = text;
    if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
    if (!all_digits(digits)) return {};
    if (text.starts_with('+')) text.remove_prefix(1);
    ParsedInteger written;
    const auto status = std::from_chars(text.data(), text.data() + text.size(), written.value).ec;
    written.fits = status == std::errc();
    return written;
}

std::optional<double> parse_number(std::string_view text) {
    std::string_view unsigned_text = text;
    if (text.starts_with('+') || text.starts_with('-')) unsigned_text.remove_prefix(1);
    if (!is_decimal(unsigned_text)) return {};
    double value = 0;
    const char* const end = unsigned_text.data() + unsigned_text.size();
    if (std::from_chars(unsigned_text.data(), end, value).ec == std::errc::result_out_of_range) {
        // The library does not report whether the value is too large or too small; the power of ten
        // decides.
        const std::size_t e = unsigned_text.find_first_of("eE");
        const bool small =
            e != std::string_view::npos && unsigned_text.substr(e + 1).starts_with('-');
        const bool zeros = unsigned_text.starts_with("0.") || unsigned_text.starts_with('.');
        if (!small && !(zeros && e == std::string_view::npos)) return {};
        value = 0;
    }
    return text.starts_with('-') ? -value : value;
}

std::optional<bool> parse_boolean(std::string_view text) {
    constexpr std::array<std::string_view, 5> yes = {"1", "t", "true", "yes", "on"};
    constexpr std::array<std::string_view, 5> no = {"0", "f", "false", "no", "off"};
    if (is_one_of(text, yes)) return true;
    if (is_one_of(text, no)) return false;
    return {};
}

std::optional<double> parse_bits_per_second(std::string_view text) {
    double unit = 1;
    if (text.ends_with('k') || text.ends_with('K')) unit = 1e3;
    if (text.ends_with('M')) unit = 1e6;
    if (unit > 1) text.remove_suffix(1);
    if (text.find_first_of("eE+-") != std::string_view::npos) return {};
    const std::optional<double> value = parse_number(text);
    if (!value) return {};
    return *value * unit;
}

std::optional<double> parse_time(std::string_view text) {
    if (text.find_first_of("eE+-") != std::string_view::npos) return {};
    const auto seconds_end = text.rfind(':');
    if (seconds_end == std::string_view::npos) {
        constexpr std::size_t max_length = 9;
        const std::string_view whole = text.substr(0, text.find('.'));
        if (whole.empty() || whole.size() > max_length) return {};
        return parse_number(text);
    }
    std::string_view rest = text.substr(0, seconds_end);
    const std::string_view seconds_text = text.substr(seconds_end + 1);
    const std::string_view seconds_whole = seconds_text.substr(0, seconds_text.find('.'));
    const auto seconds = parse_number(seconds_text);
    if (!seconds || seconds_whole.empty() || seconds_whole.size() > 2 || *seconds >= 60) return {};
    const std::size_t hours_end = rest.rfind(':');
    double hours = 0;
    if (hours_end != std::string_view::npos) {
        constexpr std::size_t max_length = 6;
        const std::string_view hours_text = rest.substr(0, hours_end);
        if (!all_digits(hours_text) || hours_text.size() > max_length) return {};
        hours = static_cast<double>(parse_integer(hours_text)->value);
        rest = rest.substr(hours_end + 1);
    }
    if (!all_digits(rest) || rest.size() > 2) return {};
    const double minutes = static_cast<double>(parse_integer(rest)->value);
    if (minutes >= 60) return {};
    return hours * 3600 + minutes * 60 + *seconds;
}

std::optional<int> parse_resolution(std::string_view text) {
    constexpr int lowest = 144;
    constexpr int highest = 4320;
    if (text.empty() || text == "best") return 0;
    if (text.ends_with('p')) text.remove_suffix(1);
    constexpr std::size_t max_length = 4;
    if (!all_digits(text) || text.size() > max_length) return {};
    const auto lines = static_cast<int>(parse_integer(text)->value);
    if (lines < lowest || lines > highest) return {};
    return lines;
}

}  // namespace polymux
