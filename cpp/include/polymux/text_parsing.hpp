// How people write numbers, switches, bitrates and times, wherever a text stands for one: form
// fields, command lines, options. ASCII digits only, no spaces around, nothing left over.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace polymux {

/// A whole number as written; `fits` is false where it is beyond 64 bits.
struct ParsedInteger {
    std::int64_t value = 0;
    bool fits = true;
};

/// `[+-]digits`; not `5.0`, `1_000`, `0x10` or ` 5 `.
std::optional<ParsedInteger> parse_integer(std::string_view text);

/// A decimal number with or without fraction and exponent. Not `nan`, `inf` or one beyond a double;
/// one that is too small to be told from 0 is 0.
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
