// Values and names for error messages: short, printable, without secrets.
#pragma once

#include <string>
#include <string_view>

#include "polymux/contract/value.hpp"

namespace polymux::contract {

/// `"text…"`, `12`, `true`, `null`, `an array of 3 items`, `an object`.
std::string display_value(const ValueSource& value);

/// The first 40 characters of a text, in quotes, with unprintable characters escaped.
std::string quoted_text(std::string_view utf8);

/// The same for a URL: hides user and password.
std::string quoted_url(std::string_view utf8);

/// A member's name for a path. A long or unusual name is formatted by `quoted_text`.
std::string display_name(std::string_view name);

/// Shortens to at most that many bytes at a character boundary, and adds an ellipsis if anything is
/// cut.
std::string truncated(std::string text, std::size_t max_bytes);

/// `application/json` or `multipart/form-data`.
std::string_view media_type(Encoding encoding);

/// `a string`, `an integer or a string`.
std::string type_names(std::uint16_t types);

/// A bound as a readable number: without a fraction if it is whole.
std::string plain_number(double value);

/// `from 8 to 16 px`, `above 0`.
std::string range_text(const Field& field);
std::string with_unit(const Field& field, std::string text);

}  // namespace polymux::contract
