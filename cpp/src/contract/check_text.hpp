// Texts: choices, length, URLs and other formats.
#pragma once

#include <string>

#include "polymux/contract/value.hpp"

namespace polymux::contract {

/// Returns the problem of a text, to follow the field's path; empty if valid.
std::string check_text(const Field& field, const ValueSource& value);

}  // namespace polymux::contract
