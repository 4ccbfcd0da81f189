#include "stream/json_hole.hpp"

#include <simdjson.h>

#include <cstdint>
#include <cstring>

#include "stream/scan.hpp"

namespace polymux::stream {

namespace {

constexpr unsigned not_hexadecimal = 0x10000;

unsigned hexadecimal_digit(char byte) noexcept {
    if (byte >= '0' && byte <= '9') return static_cast<unsigned>(byte - '0');
    if (byte >= 'a' && byte <= 'f') return static_cast<unsigned>(byte - 'a') + 10;
    if (byte >= 'A' && byte <= 'F') return static_cast<unsigned>(byte - 'A') + 10;
    return not_hexadecimal;
}

/// The four digits after `\u`; `not_hexadecimal` or more if they are invalid.
unsigned code_unit(const char* at) noexcept {
    unsigned code = 0;
    for (int digit = 0; digit < 4; ++digit) {
        const unsigned value = hexadecimal_digit(at[digit]);
        if (value == not_hexadecimal) return not_hexadecimal;
        code = code << 4U | value;
    }
    return code;
}

constexpr bool is_high_surrogate(unsigned code) {
    return code >= 0xD800 && code < 0xDC00;
}
constexpr bool is_low_surrogate(unsigned code) {
    return code >= 0xDC00 && code < 0xE000;
}

constexpr unsigned joined(unsigned high, unsigned low) {
    return 0x10000 + ((high - 0xD800) << 10U) + (low - 0xDC00);
}

/// Returns the end of the escape at a backslash (for a surrogate pair, of both), or null if it is
/// invalid.
const char* read_escape(const char* at) noexcept {
    switch (at[1]) {
        case '"':
        case '\\':
        case '/':
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't':
            return at + 2;
        case 'u':
            break;
        default:
            return nullptr;
    }
    const unsigned code = code_unit(at + 2);
    if (code >= not_hexadecimal || is_low_surrogate(code)) return nullptr;
    if (!is_high_surrogate(code)) return at + 6;
    if (at[6] != '\\' || at[7] != 'u' || !is_low_surrogate(code_unit(at + 8))) return nullptr;
    return at + 12;
}

char* put_utf8(char* out, unsigned code) noexcept {
    const auto put = [&out](unsigned byte) { *out++ = static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0U | code >> 6U);
        put(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
        put(0xE0U | code >> 12U);
        put(0x80U | (code >> 6U & 0x3FU));
        put(0x80U | (code & 0x3FU));
    } else {
        put(0xF0U | code >> 18U);
        put(0x80U | (code >> 12U & 0x3FU));
        put(0x80U | (code >> 6U & 0x3FU));
        put(0x80U | (code & 0x3FU));
    }
    return out;
}

/// Writes the character of the valid escape at a backslash, and returns the escape's end.
const char* put_escape(char*& out, const char* at) noexcept {
    switch (at[1]) {
        case 'b':
            *out++ = '\b';
            return at + 2;
        case 'f':
            *out++ = '\f';
            return at + 2;
        case 'n':
            *out++ = '\n';
            return at + 2;
        case 'r':
            *out++ = '\r';
            return at + 2;
        case 't':
            *out++ = '\t';
            return at + 2;
        case 'u':
            break;
        default:
            *out++ = at[1];
            return at + 2;
    }
    const unsigned code = code_unit(at + 2);
    if (!is_high_surrogate(code)) {
        out = put_utf8(out, code);
        return at + 6;
    }
    out = put_utf8(out, joined(code, code_unit(at + 8)));
    return at + 12;
}

const char* skip_digits(const char* at) noexcept {
    while (*at >= '0' && *at <= '9') ++at;
    return at;
}

}  // namespace

StringBody read_string_body(const char* at) noexcept {
    const char* const begin = at;
    unsigned bits = 0;
    bool has_escapes = false;
    for (;;) {
        at = find_special(at, bits);
        if (*at == '"') break;
        if (*at != '\\') return {};
        has_escapes = true;
        at = read_escape(at);
        if (at == nullptr) return {};
    }
    if (bits != 0 && !simdjson::validate_utf8(begin, static_cast<std::size_t>(at - begin)))
        return {};
    return {.end = at, .has_escapes = has_escapes};
}

void append_unescaped(json::Buffer& buffer, std::string_view body) {
    char* const begin =
        buffer.reserve(body.size());  // An escape is never shorter than its character.
    char* out = begin;
    const char* at = body.data();
    const char* const end = at + body.size();
    while (at < end) {
        const auto* const escape =
            static_cast<const char*>(std::memchr(at, '\\', static_cast<std::size_t>(end - at)));
        const auto plain = static_cast<std::size_t>((escape == nullptr ? end : escape) - at);
        std::memcpy(out, at, plain);
        out += plain;
        at = escape == nullptr ? end : put_escape(out, escape);
    }
    buffer.advance(static_cast<std::size_t>(out - begin));
}

bool SurrogateMender::mend(char* json, std::size_t bytes) noexcept {
    constexpr std::ptrdiff_t escape_bytes = 6;  // Length of one code unit: \uXXXX.
    constexpr unsigned replacement = 0xFFFD;
    char* const end = json + bytes;
    char* out = json;
    pending_ = std::exchange(high_, 0U);
    bool mended = false;
    bool in_text = false;
    const char* text = nullptr;  // Start of the text.
    for (const char* at = json; at < end;) {
        if (!in_text || *at != '\\' || end - at < 2) {
            if (*at == '"') in_text = !in_text;
            if (*at == '"') text = at + 1;
            *out++ = *at++;
            continue;
        }
        const bool whole = at[1] == 'u' && end - at > escape_bytes;
        const unsigned code = whole ? code_unit(at + 2) : not_hexadecimal;
        const char* const behind = at + escape_bytes;
        const bool high = is_high_surrogate(code);
        if (!high && !is_low_surrogate(code)) {
            for (int i = 0; i < 2; ++i) *out++ = *at++;  // The rest of `\u0041` is copied.
            continue;
        }
        if (high && end - behind > escape_bytes && behind[0] == '\\' && behind[1] == 'u' &&
            is_low_surrogate(code_unit(behind + 2))) {
            for (std::ptrdiff_t i = 0; i < 2 * escape_bytes; ++i) *out++ = *at++;
            continue;
        }
        mended = true;
        if (high && *behind == '"') {
            high_ = code;
        } else if (!high && at == text && pending_ != 0) {
            out = put_utf8(out, joined(pending_, code));
            pending_ = 0;
        } else {
            out = put_utf8(out, replacement);
        }
        at = behind;
    }
    while (out < end) *out++ = ' ';
    return mended;
}

const char* read_number(const char* at) noexcept {
    constexpr std::ptrdiff_t max_digits = 17;  // Fewer digits than any 64-bit integer may have.
    if (*at == '-') ++at;
    const char* const begin = at;
    at = skip_digits(at);
    const bool leading_zero = *begin == '0' && at - begin > 1;
    if (at == begin || at - begin > max_digits || leading_zero) return nullptr;
    if (*at == '.') {
        const char* const fraction = at + 1;
        at = skip_digits(fraction);
        if (at == fraction || at - fraction > max_digits) return nullptr;
    }
    if (*at == 'e' || *at == 'E') {
        ++at;
        if (*at == '+' || *at == '-') ++at;
        const char* const exponent = at;
        at = skip_digits(exponent);
        if (at == exponent || at - exponent > 2) return nullptr;
    }
    return at;
}

}  // namespace polymux::stream
