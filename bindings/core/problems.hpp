// Converts problems of a request to a Python exception.
#pragma once

#include <string_view>

#include "polymux/contract/check.hpp"

namespace polymux::bindings {

/// Raises InvalidRequestError for a report that is not ok. GIL held.
[[noreturn]] void raise_problems(const contract::Operation& operation,
                                 const contract::Report& report);

/// The same for a single problem.
[[noreturn]] void raise_invalid_request(std::string_view field, std::string_view message);

}  // namespace polymux::bindings
