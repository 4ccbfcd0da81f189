// Texts: choices, length, addresses and other forms.
#pragma once

#include <string>

#include "polymux/contract/value.hpp"

namespace polymux::contract {

/// What is wrong with a text, to stand after the field's path; empty if nothing.
std::string check_text(const Field& field, const ValueSource& value);

}  // namespace polymux::contract
