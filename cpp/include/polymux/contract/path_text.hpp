// Paths of values inside a request, for messages: `messages[3].content`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polymux::contract {

/// Appends a member's name. A long or unusual name is quoted and shortened.
void append_member(std::string& path, std::string_view name);

/// Appends an item's index, which counts from 0.
void append_item(std::string& path, std::size_t index);

}  // namespace polymux::contract
