// Values and names as error messages show them: short, printable, without secrets.
#pragma once

#include <string>
#include <string_view>

#include "polymux/contract/value.hpp"

namespace polymux::contract {

/// `"text…"`, `12`, `true`, `null`, `an array of 3`, `an object`.
std::string display_value(const ValueSource& value);

/// A text in quotes, its first 40 characters, everything unprintable escaped.
std::string quoted_text(std::string_view utf8);

/// The same for an address: user and password in it are not shown.
std::string quoted_url(std::string_view utf8);

/// A member's name for a path: as it is where it is short and plain, else as `quoted_text`.
std::string display_name(std::string_view name);

/// At most that many bytes, never half a character, with an ellipsis where something is missing.
std::string truncated(std::string text, std::size_t max_bytes);

/// `a string`, `an integer or a string`.
std::string type_names(std::uint16_t types);

/// A bound as people write it: without a fraction where there is none.
std::string plain_number(double value);

/// `from 8 to 16 px`, `above 0`.
std::string range_text(const Field& field);
std::string with_unit(const Field& field, std::string text);

}  // namespace polymux::contract
