// The HTTP server and its exchanges.
#pragma once

#include "interpreter.hpp"

namespace polymux::bindings {

void register_front(py::module_& module);

}  // namespace polymux::bindings
