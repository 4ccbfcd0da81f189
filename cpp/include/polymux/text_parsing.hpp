// Parses numbers, switches, bitrates and times in text: form fields, command lines, options.
// Accepts ASCII digits only, without surrounding spaces or trailing text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace polymux {

/// A parsed whole number; `fits` is false if it exceeds 64 bits.
struct ParsedInteger {
    std::int64_t value = 0;
    bool fits = true;
};

/// `[+-]digits`; not `5.0`, `1_000`, `0x10` or ` 5 `.
std::optional<ParsedInteger> parse_integer(std::string_view text);

/// A decimal number with or without fraction and exponent. Rejects `nan`, `inf` and values beyond a
/// double. A value too small for a double is 0.
std::optional<double> parse_number(std::string_view text);

/// `1 t true yes on` and `0 f false no off`, in any case.
std::optional<bool> parse_boolean(std::string_view text);

/// Bits per second: `128000`, `128k`, `1.5M`.
std::optional<double> parse_bits_per_second(std::string_view text);

/// Seconds: `93.5`, or `[HH:]MM:SS[.mmm]` such as `1:33.5`.
std::optional<double> parse_time(std::string_view text);

/// Height of a video in lines: `720` or `720p`, 144 to 4320; 0 for `best` and an empty text.
std::optional<int> parse_resolution(std::string_view text);

}  // namespace polymux
