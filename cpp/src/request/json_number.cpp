// Numbers in Python's format: json.dumps produces the same text.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "polymux/request/json_text.hpp"

namespace polymux::json {

namespace {

constexpr int first_large_exponent = 16;  // From this exponent on, and below -4, with an exponent.
constexpr int last_small_exponent = -4;

/// The shortest digits that read back as the number, and the exponent of the first one.
struct Decimal {
    std::array<char, 20> digits{};
    std::size_t count = 0;
    int exponent = 0;

    std::string_view all() const { return {digits.data(), count}; }
};

Decimal shortest_decimal(double magnitude) {
    std::array<char, 32> text;
    const char* const end = std::to_chars(text.data(), text.data() + text.size(), magnitude,
                                          std::chars_format::scientific)
                                .ptr;
    Decimal decimal;
    const char* at = text.data();
    for (; *at != 'e'; ++at) {
        if (*at != '.') decimal.digits[decimal.count++] = *at;
    }
    const bool negative = at[1] == '-';
    std::from_chars(at + 2, end, decimal.exponent);
    if (negative) decimal.exponent = -decimal.exponent;
    return decimal;
}

void append_scientific(Buffer& buffer, const Decimal& decimal) {
    buffer.append(decimal.digits[0]);
    if (decimal.count > 1) {
        buffer.append('.');
        buffer.append(decimal.all().substr(1));
    }
    buffer.append(decimal.exponent < 0 ? "e-" : "e+");
    const int size = std::abs(decimal.exponent);
    if (size < 10) buffer.append('0');
    append_integer(buffer, size);
}

void append_small(Buffer& buffer, const Decimal& decimal) {
    buffer.append("0.");
    buffer.append(
        std::string_view("000").substr(0, static_cast<std::size_t>(-decimal.exponent - 1)));
    buffer.append(decimal.all());
}

void append_plain(Buffer& buffer, const Decimal& decimal) {
    const auto whole = static_cast<std::size_t>(decimal.exponent) + 1;
    buffer.append(decimal.all().substr(0, std::min(whole, decimal.count)));
    for (std::size_t zeros = decimal.count; zeros < whole; ++zeros) buffer.append('0');
    buffer.append('.');
    buffer.append(decimal.count > whole ? decimal.all().substr(whole) : std::string_view("0"));
}

}  // namespace

void append_integer(Buffer& buffer, std::int64_t value) {
    constexpr std::size_t max_length = 20;
    char* const begin = buffer.reserve(max_length);
    buffer.advance(
        static_cast<std::size_t>(std::to_chars(begin, begin + max_length, value).ptr - begin));
}

bool append_number(Buffer& buffer, double value) {
    if (!std::isfinite(value)) return false;
    if (std::signbit(value)) buffer.append('-');
    const Decimal decimal = shortest_decimal(std::abs(value));
    if (decimal.exponent < last_small_exponent || decimal.exponent >= first_large_exponent) {
        append_scientific(buffer, decimal);
    } else if (decimal.exponent < 0) {
        append_small(buffer, decimal);
    } else {
        append_plain(buffer, decimal);
    }
    return true;
}

}  // namespace polymux::json
