// Measures JSON text while it arrives.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_json_scan(py::module_& module);

}  // namespace polymux::bindings
