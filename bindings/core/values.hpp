// From the core's values to Python's.
#pragma once

#include <string_view>

#include "interpreter.hpp"
#include "polymux/contract/value.hpp"

namespace polymux::bindings {

/// A str of valid UTF-8. GIL held.
py::object to_str(std::string_view utf8);

/// None, bool, int, float, str, list or dict. A file has no value: the parts' owner has it.
py::object to_python(const contract::ValueSource& value);

/// The number as int or float.
py::object to_python(const contract::Number& number);

}  // namespace polymux::bindings
