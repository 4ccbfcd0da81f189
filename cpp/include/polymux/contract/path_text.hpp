// Paths of values inside a request as messages show them: `messages[3].content`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polymux::contract {

/// Adds a member's name: as it is where it is short and plain, else in quotes and cut.
void append_member(std::string& path, std::string_view name);

/// Adds an item's place, counted from 0.
void append_item(std::string& path, std::size_t index);

}  // namespace polymux::contract
