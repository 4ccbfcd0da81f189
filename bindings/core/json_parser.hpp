// Converts received JSON to Python values.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_json_parser(py::module_& module);

}  // namespace polymux::bindings
