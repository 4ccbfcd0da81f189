// What is wrong with a request, as a Python exception.
#pragma once

#include <string_view>

#include "polymux/contract/check.hpp"

namespace polymux::bindings {

/// Raises the InvalidRequestError of a report that is not ok. GIL held.
[[noreturn]] void raise_problems(const contract::Operation& operation,
                                 const contract::Report& report);

/// The same for one problem that stands alone.
[[noreturn]] void raise_invalid_request(std::string_view field, std::string_view message);

}  // namespace polymux::bindings
