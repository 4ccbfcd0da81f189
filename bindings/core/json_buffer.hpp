// The function `write_json` and the type `JsonBuffer` of Python.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_json_buffer(py::module_& module);

}  // namespace polymux::bindings
