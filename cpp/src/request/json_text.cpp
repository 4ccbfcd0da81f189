#include "polymux/request/json_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace polymux::json {

void Buffer::grow(std::size_t more_bytes) {
    const std::size_t capacity = std::max({size_ + more_bytes, 2 * capacity_, std::size_t{256}});
    auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(bytes.get(), bytes_.get(), size_);
    bytes_ = std::move(bytes);
    capacity_ = capacity;
}

void Buffer::append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(reserve(text.size()), text.data(), text.size());
    size_ += text.size();
}

namespace {

constexpr std::size_t longest_escape = 6;  // \u001f

char* put_escape(char* out, unsigned code) {
    constexpr std::string_view digits = "0123456789abcdef";
    *out++ = '\\';
    switch (code) {
        case '"':
            *out++ = '"';
            return out;
        case '\\':
            *out++ = '\\';
            return out;
        case '\b':
            *out++ = 'b';
            return out;
        case '\f':
            *out++ = 'f';
            return out;
        case '\n':
            *out++ = 'n';
            return out;
        case '\r':
            *out++ = 'r';
            return out;
        case '\t':
            *out++ = 't';
            return out;
        default:
            break;
    }
    *out++ = 'u';
    *out++ = '0';
    *out++ = '0';
    *out++ = digits[code >> 4U];
    *out++ = digits[code & 15U];
    return out;
}

bool must_escape(unsigned code) {
    return code < 0x20 || code == '"' || code == '\\';
}

char* put_utf8(char* out, std::uint32_t code) {
    const auto byte = [&out](std::uint32_t value) { *out++ = static_cast<char>(value); };
    if (code < 0x80) {
        byte(code);
    } else if (code < 0x800) {
        byte(0xC0U | (code >> 6U));
        byte(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
        byte(0xE0U | (code >> 12U));
        byte(0x80U | ((code >> 6U) & 0x3FU));
        byte(0x80U | (code & 0x3FU));
    } else {
        byte(0xF0U | (code >> 18U));
        byte(0x80U | ((code >> 12U) & 0x3FU));
        byte(0x80U | ((code >> 6U) & 0x3FU));
        byte(0x80U | (code & 0x3FU));
    }
    return out;
}

bool is_character(std::uint32_t code) {
    return code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
}

template <typename Unit>
bool append_units(Buffer& buffer, std::span<const Unit> text) {
    char* const begin = buffer.reserve(2 + longest_escape * text.size());
    char* out = begin;
    *out++ = '"';
    for (const Unit unit : text) {
        if (must_escape(unit)) {
            out = put_escape(out, unit);
        } else if (sizeof(Unit) > 1 && !is_character(unit)) {
            return false;
        } else {
            out = put_utf8(out, unit);
        }
    }
    *out++ = '"';
    buffer.advance(static_cast<std::size_t>(out - begin));
    return true;
}

}  // namespace

void append_utf8(Buffer& buffer, std::string_view text) {
    char* const begin = buffer.reserve(2 + longest_escape * text.size());
    char* out = begin;
    *out++ = '"';
    for (const char byte : text) {
        const auto code = static_cast<unsigned char>(byte);
        if (must_escape(code)) {
            out = put_escape(out, code);
        } else {
            *out++ = byte;
        }
    }
    *out++ = '"';
    buffer.advance(static_cast<std::size_t>(out - begin));
}

void append_latin1(Buffer& buffer, std::span<const std::uint8_t> text) {
    append_units(buffer, text);
}

bool append_ucs2(Buffer& buffer, std::span<const std::uint16_t> text) {
    return append_units(buffer, text);
}

bool append_ucs4(Buffer& buffer, std::span<const std::uint32_t> text) {
    return append_units(buffer, text);
}

void append_integer(Buffer& buffer, std::int64_t value) {
    constexpr std::size_t longest = 20;
    char* const begin = buffer.reserve(longest);
    buffer.advance(
        static_cast<std::size_t>(std::to_chars(begin, begin + longest, value).ptr - begin));
}

bool append_number(Buffer& buffer, double value) {
    if (!std::isfinite(value)) return false;
    // Shortest digits and their exponent, to be laid out anew: d[.ddd]e[+-]dd
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific)
            .ptr;
    std::string_view rest(text.data(), static_cast<std::size_t>(end - text.data()));
    if (rest.front() == '-') {
        buffer.append('-');
        rest.remove_prefix(1);
    }
    const std::size_t e = rest.find('e');
    int exponent = 0;
    std::from_chars(rest.data() + e + (rest[e + 1] == '+' ? 2 : 1), rest.data() + rest.size(),
                    exponent);
    std::array<char, 20> digits{};
    std::size_t count = 0;
    for (const char c : rest.substr(0, e)) {
        if (c != '.') digits[count++] = c;
    }
    const std::string_view all(digits.data(), count);
    if (exponent < -4 || exponent >= 16) {  // Python's repr: float_repr_style "short"
        buffer.append(all.substr(0, 1));
        if (count > 1) {
            buffer.append('.');
            buffer.append(all.substr(1));
        }
        buffer.append(exponent < 0 ? "e-" : "e+");
        const int size = exponent < 0 ? -exponent : exponent;
        if (size < 10) buffer.append('0');
        append_integer(buffer, size);
        return true;
    }
    if (exponent < 0) {
        buffer.append("0.");
        buffer.append(std::string_view("000").substr(0, static_cast<std::size_t>(-exponent - 1)));
        buffer.append(all);
        return true;
    }
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    buffer.append(all.substr(0, std::min(whole, count)));
    for (std::size_t missing = count; missing < whole; ++missing) buffer.append('0');
    buffer.append('.');
    buffer.append(count > whole ? all.substr(whole) : std::string_view("0"));
    return true;
}

}  // namespace polymux::json
